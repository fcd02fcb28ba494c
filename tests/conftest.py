"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a time: on a busy machine it would fail without a fault.
settings.register_profile("suite", deadline=None, print_blob=True)
settings.load_profile("suite")
