"""The processes, and how a test talks to them: as the UI does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg

ROOT = Path(__file__).parents[3]
T = TypeVar("T")

_LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_BACKFILL = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_BACKFILL_STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status error { message }
    assetBackfillData { assetBackfillStatuses { ... on AssetPartitionsStatusCounts {
      assetKey { path } numPartitionsMaterialized numPartitionsFailed } } } } } }"""
_TERMINATE = """mutation($id: String!) { terminateRun(runId: $id, terminatePolicy: SAFE_TERMINATE) { __typename } }"""


def wait_for(what: Callable[[], T | None], seconds: float = 120.0) -> T:
    """What `what` returns as soon as that is true."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end, f"nothing came of {what}"
        time.sleep(0.05)


class Live:
    """A running Dagster over `root`: documents in `docs`, database `t.db`, home `home`."""

    def __init__(self, root: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self.root, self._port, self._process = root, port, process

    def kill(self) -> None:
        """Every process of it at once, runs included."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """A GraphQL request; its one answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - loopback
            answer = json.load(response)
        assert "errors" not in answer, answer
        (value,) = answer["data"].values()
        return value

    def answers(self) -> bool:
        query = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"
        try:
            return bool(self.ask(query).get("nodes"))
        except OSError:
            return False

    def launch(self, job: str, config: dict[str, Any] | None = None, tags: dict[str, str] | None = None) -> str:
        selector = {
            "repositoryLocationName": "tests.orchestration.live.location",
            "repositoryName": "__repository__",
            "jobName": job,
        }
        answer = self.ask(
            _LAUNCH,
            params={
                "selector": selector,
                "runConfigData": config or {},
                "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in (tags or {}).items()]},
            },
        )
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return answer["run"]["runId"]

    def backfill(self, stages: list[str], partitions: list[str]) -> str:
        keys = [{"path": ["notes", stage]} for stage in stages]
        answer = self.ask(_BACKFILL, params={"assetSelection": keys, "partitionNames": partitions})
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return answer["backfillId"]

    def finished_backfill(self, backfill_id: str) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            answer = self.ask(_BACKFILL_STATUS, id=backfill_id)
            return answer if answer["status"] not in ("REQUESTED", "CANCELING", "FAILING") else None

        return wait_for(ended, 300)

    def terminate(self, run_id: str) -> None:
        assert self.ask(_TERMINATE, id=run_id)["__typename"] == "TerminateRunSuccess"


@contextmanager
def live(root: Path, **settings: str) -> Iterator[tuple[Live, dg.DagsterInstance]]:
    """`dagster dev` over `root`, and its instance. `settings` are QEDGE_TEST_… variables of the code location."""
    home = root / "home"
    home.mkdir(exist_ok=True)
    (root / "docs").mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(home),
        "QEDGE_TEST_ROOT": str(root),
        **{f"QEDGE_TEST_{name.upper()}": value for name, value in settings.items()},
    }
    command = [sys.executable, "-m", "dagster", "dev", "-m", "tests.orchestration.live.location", "-p", str(port)]
    with (root / "dagster.log").open("a") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    running = Live(root, port, process)
    try:
        wait_for(running.answers, 60)
        with dg.DagsterInstance.from_config(str(home)) as instance:
            yield running, instance
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
