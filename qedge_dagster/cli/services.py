"""Dagster's web server and daemon as child processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from qedge_dagster.cli.home import LOCATION
from qedge_dagster.errors import QedgeError

__all__ = ["Services", "running_services"]

_STDERR = 2
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 30.0


class Services:
    """`dagster dev`, which starts the web server, the daemon and the code server; all in a process group of their own,
    so that Ctrl-C on the terminal reaches this process only. They end with it, also where it is killed."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, stopped: threading.Event, log: Path | None) -> None:
        self.url = url
        self._process = process
        self._stopped = stopped
        self._log = log

    def wait_for_answer(self) -> bool:
        """Whether the web server answered before a signal came. Raises `QedgeError` 6013 if the services end."""
        # The address is this machine's own, so no proxy is asked.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while not self._stopped.wait(_POLL_SECONDS):
            self._check()
            with suppress(OSError), opener.open(f"{self.url}/server_info", timeout=5):
                return not self._stopped.is_set()
        return False

    def wait_for_signal(self) -> None:
        """Raises as `wait_for_answer`."""
        while not self._stopped.wait(_POLL_SECONDS):
            self._check()

    def end(self) -> None:
        """Ask, then kill: nothing of the group is left. A run that is active is asked too, and ends as cancelled at its
        next committed boundary, which may take it a window of embeddings."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_SECONDS
        while self._group_lives() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _group_lives(self) -> bool:
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def _check(self) -> None:
        if self._process.poll() is not None:
            where = "--verbose shows why" if self._log is None else f"see {self._log}"
            raise QedgeError(6013, f"Dagster's services ended with code {self._process.returncode}", remedy=where)


@contextmanager
def running_services(home: Path, host: str, port: int, log: Path | None) -> Generator[Services]:
    """The services of a home, until the context ends. SIGINT and SIGTERM only end what waits for them.

    `log` is the file for what they print, None for this process's stderr. Raises `QedgeError` 6013.
    """
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    # Before the child starts, which inherits a signal that is ignored, and Dagster then does not end on it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with ExitStack() as stack:
        output: int | BinaryIO = _STDERR
        if log is not None:
            try:
                output = stack.enter_context(log.open("ab"))
            except OSError as error:
                raise QedgeError(6013, f"the Dagster home {home} cannot be used: {error}") from error
        command = [sys.executable, "-m", "qedge_dagster.cli.lifeline"]
        command += [sys.executable, "-m", "dagster", "dev", "-m", LOCATION, "--working-directory", str(home)]
        process = subprocess.Popen(  # noqa: S603 - our own interpreter, and arguments that click has checked
            [*command, "--host", host, "--port", str(port)],
            env={**os.environ, "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "yes"},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        services = Services(process, f"http://{_in_url(host)}:{port}", stopped, log)
        stack.callback(services.end)
        yield services


def _in_url(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 - listened on, not connected to
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
