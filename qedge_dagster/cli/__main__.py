from __future__ import annotations

from qedge_dagster.cli import main

main()
