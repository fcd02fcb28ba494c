"""Runs a command as part of a process group that ends when whoever started it has gone, however it went.

`python -m qedge_dagster.cli.lifeline COMMAND…`, as the leader of its group. Its standard input is a pipe that nobody
writes to: it comes to its end with the process that holds the other end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

_GRACE_SECONDS = 30.0


def main() -> None:
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)  # noqa: S603 - what `cli.services` asks for
    orphaned = threading.Event()
    threading.Thread(target=_end_with, args=(command, orphaned), daemon=True).start()
    while os.read(0, 1):
        pass
    orphaned.set()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        command.wait(_GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)


def _end_with(command: subprocess.Popen[bytes], orphaned: threading.Event) -> None:
    code = command.wait()
    if not orphaned.is_set():
        os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
