"""The program with the default model, stopped by SIGTERM wherever it is. What a stop took is printed, not asserted."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.conftest import finish, start
from tests.extractors.pdf.long_document import write as write_pdf
from tests.pipeline.support import check_integrity, prose, write

_BEGUN = "SELECT count(*) FROM qedge_ingest_run WHERE finished_utc IS NULL"
_STAGED = "SELECT count(*) FROM qedge_ingest_staged"
_INDEXED = "SELECT count(*) > 20 FROM qedge_ingest_document"


def _small(docs: Path) -> None:
    """Many documents of a sentence: most of the time goes into hashing and writing."""
    write(docs, {f"{n:04}.txt": f"Boat {n} lies at berth {n * 7}." for n in range(120)})


def _long_chunks(docs: Path) -> None:
    """Full windows of 32 chunks that are as long as the model takes."""
    write(docs, {"long.txt": "\n\n".join(prose(1, 260))})


def _long_pdf(docs: Path) -> None:
    docs.mkdir()
    write_pdf(docs / "long.pdf", 60)


#: When the signal comes: documents, what must be true of the database, seconds after that.
MOMENTS: dict[str, tuple[Callable[[Path], None], str, float]] = {
    "hash": (_small, _BEGUN, 0.0),
    "extract": (_long_pdf, _BEGUN, 0.5),
    "embed": (_long_chunks, _STAGED, 0.3),
    "write": (_small, _INDEXED, 0.0),
}


def _is_true(database: Path, query: str) -> bool:
    try:
        with apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY) as connection:
            connection.set_busy_timeout(10_000)
            return bool(connection.execute(query).get)
    except (apsw.CantOpenError, apsw.SQLError):  # not made yet
        return False


def _stop(args: list[object], database: Path, query: str, after: float, signals: int) -> tuple[int, str, float]:
    """Exit code, stdout and the seconds from the first signal to the end of the process."""
    with start(*args) as process:
        while not _is_true(database, query):
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        time.sleep(after)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        for _ in range(signals - 1):
            time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=120)
        return process.returncode, stdout, time.monotonic() - begin


def _succeed(result: subprocess.CompletedProcess[str]) -> Any:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.long
@pytest.mark.parametrize("signals", [1, 3], ids=["once", "thrice"])
@pytest.mark.parametrize("dagster", [False, True], ids=["alone", "dagster"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_sigterm(moment: str, dagster: bool, signals: int, tmp_path: Path) -> None:
    """Exit code 130, a sound file without a WAL, and the next run embeds what is left and nothing twice. More signals
    of the same kind change nothing."""
    prepare, query, after = MOMENTS[moment]
    docs, database = tmp_path / "docs", tmp_path / "x.db"
    prepare(docs)
    args: list[object] = ["ingest", *([] if dagster else ["--no-dagster"]), docs, "--db", database, "--json"]
    code, stdout, seconds = _stop(args, database, query, after, signals)
    log = database.with_name("x.db-wal")
    assert not log.exists() or log.stat().st_size == 0
    facts = json.loads(finish("diagnostics", "--db", database, "--json").stdout)
    steps = {step: facts.get(f"last_stop_{step}_seconds") for step in ("boundary", "merge", "checkpoint")}
    stopped = json.loads(stdout)
    print(
        f"\n{moment}, {'Dagster' if dagster else 'alone'}, {signals} x SIGTERM: {steps}, process gone after "
        f"{seconds:.2f} s, {stopped['texts_embedded']} texts"
    )
    assert (code, stopped["outcome"]) == (130, "cancelled")
    check_integrity(database)
    rest = _succeed(finish(*args))
    fresh = _succeed(finish("ingest", "--no-dagster", docs, "--db", tmp_path / "fresh.db", "--json"))
    assert stopped["texts_embedded"] + rest["texts_embedded"] == fresh["texts_embedded"]
    check_integrity(database)
