"""Stores."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from moto.server import ThreadedMotoServer

from tests.sources.stores import Store


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    """Storage options of an S3 server in this process."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield {"endpoint_url": f"http://{host}:{port}", "key": "an-access-key", "secret": "a-secret-word"}
    finally:
        server.stop()


@pytest.fixture(params=["memory", "s3", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty place in each of three stores."""
    name = uuid4().hex
    if request.param == "memory":
        return Store(f"memory://{name}", {})
    if request.param == "file":
        (tmp_path / name).mkdir()
        return Store((tmp_path / name).as_uri(), {"auto_mkdir": True})
    options = request.getfixturevalue("s3")
    made = Store(f"s3://{name}/some/prefix", options)
    made.filesystem.mkdir(name)
    return made
