"""A command that fails says so in one line, with code and remedy, and with the right exit code."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from qedge_dagster.cli.failure import ExitCode, failure_lines, recorded_failure, report
from qedge_dagster.errors import CATALOGUE, Failure, QedgeError
from qedge_dagster.state import DocumentRow
from tests.cli.conftest import Invoke, finish

ONE_LINE = re.compile(r"qedge: (\d{4}) (\w+): [A-Z'\"`/-].*[.!?] [A-Z`].*[.!?]\n")


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_error_is_one_line(code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Code, name, message and remedy on one line, whatever the message holds."""
    exit_code = report(QedgeError(code, "what happened\nat /some/path\x1b[1m"))
    line = ONE_LINE.fullmatch(capsys.readouterr().err)
    assert line
    assert line.groups() == (str(code), CATALOGUE[code].name)
    assert exit_code == (ExitCode.USAGE if code == 6005 else ExitCode.FAILED)


USAGE = [
    ["ingets"],
    ["ingest"],
    ["ingest", "--no-such-option", "docs"],
    ["ingest", "docs", "--budget", "huge"],
    ["ingest", "docs", "--max-documents", "0"],
    ["ingest", "docs", "--max-seconds", "nan"],
    ["ingest", "docs", "--overlap", "60", "--chunk-tokens", "100"],
    ["ingest", "docs", "--split-levels", "one"],
    ["ingest", "docs", "--split-levels", "7"],
    ["ingest", "docs", "--pattern", ""],
    ["ingest", "docs", "--profile", "bge-small-en-v1.5"],
    ["ingest", "docs", "--collection", "no-dash"],
    ["ingest", "docs", "docs"],
    ["ingest", "docs/notes.txt", "--pattern", "*.md"],
    ["ingest", ""],
    ["search"],
    ["search", "x", "--top", "0"],
    ["search", "x", "--mode", "vector", "--keywords", "y"],
    ["search", "x", "--filter", "color=red"],
    ["inspect", "no-such-document"],
    ["inspect", "notes.txt", "--source-id", "other"],
    ["remove", "notes.txt", "no-such-document"],
    ["prune", "docs/notes.txt"],
    ["export"],
    ["status", "--db", "caf\udce9.db"],
]


@pytest.mark.parametrize("args", USAGE, ids=[ascii(" ".join(args)) for args in USAGE])
def test_wrong_usage(args: list[str], qedge: Invoke, ingested: Path) -> None:
    """Wrong usage is 6005 with exit code 2, on one line; nothing is on stdout and nothing is written."""
    before = ingested.read_bytes()
    result = qedge(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    line = ONE_LINE.fullmatch(result.stderr)
    assert line, result.stderr
    assert line[1] == "6005"
    assert ingested.read_bytes() == before


FAILURES = [
    (["ingest", "no-such-folder"], 6051),
    (["ingest", "docs/notes.txt", "docs/gone.txt"], 6051),
    (["ingest", "docs", "--chunk-tokens", "5000"], 6003),
    (["ingest", "docs", "--model", "docs"], 6005),
    (["ingest", "docs", "--model", "no-such-model"], 6208),
    (["ingest", "docs", "--db", "no-such-folder/x.db"], 6002),
    (["ingest", "docs", "--db", "docs/notes.txt"], 6204),
    (["ingest", "docs", "--db", "foreign.db"], 6007),
    (["ingest", "docs", "--distance", "l2"], 6011),
    (["search", "x", "--db", "no-such.db"], 6002),
    (["search", "x", "--collection", "other"], 6002),
    (["search", "x", "--model", "no-such-model"], 6208),
    (["status", "--db", "no-such.db"], 6002),
    (["status", "--db", "docs/notes.txt"], 6204),
    (["status", "--db", "foreign.db"], 6002),
    (["status", "--collection", "other"], 6002),
    (["inspect", "notes.txt", "--db", "no-such.db"], 6002),
    (["prune", "docs", "--db", "no-such.db"], 6002),
    (["prune", "no-such-folder", "--source-id", "club"], 6051),
    (["remove", "notes.txt", "--db", "no-such.db"], 6002),
    (["export", "x.parquet", "--db", "no-such.db"], 6002),
    (["export", "no-such-folder/x.parquet"], 6207),
    (["diagnostics", "--db", "no-such.db"], 6002),
]


@pytest.mark.usefixtures("ingested")
@pytest.mark.parametrize(("args", "code"), FAILURES, ids=[" ".join(args) for args, _ in FAILURES])
def test_failures(args: list[str], code: int, qedge: Invoke, model: Path) -> None:
    """Each failure has its code on one line, exit code 1 (2 for 6005), and nothing on stdout with --json."""
    foreign = apsw.Connection("foreign.db")
    foreign.pragma("user_version", 9)
    foreign.close()
    if args[0] == "ingest" and "--model" not in args:
        args = [*args, "--model", str(model)]
    result = qedge(*args, "--json")
    line = ONE_LINE.fullmatch(result.stderr)
    assert line, result.stderr
    assert int(line[1]) == code
    assert result.exit_code == (2 if code == 6005 else 1)
    if code != 6051:  # that one is met by a run, which has a result
        assert result.stdout == ""
    assert not Path("no-such.db").exists()


@pytest.mark.usefixtures("ingested")
def test_unexpected_exceptions_are_one_line(qedge: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is one line too, and --debug shows where it was."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("qedge_dagster.state.StateStore.documents", fail)
    result = qedge("status")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "qedge: unexpected ZeroDivisionError: Two lines. --debug shows where.\n"
    result = qedge("status", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "in fail" in result.stderr


def test_debug_shows_where_an_error_was_raised(qedge: Invoke) -> None:
    """--debug gives the traceback of an ordinary error as well, before its line."""
    result = qedge("status", "--debug")
    assert "Traceback" in result.stderr
    assert ONE_LINE.fullmatch(result.stderr.splitlines(keepends=True)[-1])


def test_damaged_database(qedge: Invoke, ingested: Path) -> None:
    """A damaged file is 6204 for every reader."""
    data = bytearray(ingested.read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    ingested.write_bytes(data)
    for args in (["status"], ["search", "x", "--mode", "keyword"], ["inspect", "notes.txt"], ["export", "x.parquet"]):
        result = qedge(*args)
        assert result.exit_code == 1
        assert ONE_LINE.fullmatch(result.stderr), result.stderr
        assert "6204 StateCorrupt" in result.stderr, args


def test_locked_database(qedge: Invoke, ingested: Path) -> None:
    """A file that another program holds is 6205 after a short wait."""
    with closing(apsw.Connection(str(ingested))) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert qedge("status").exit_code == 0
        result = qedge("remove", "notes.txt")
    assert result.exit_code == 1
    assert ONE_LINE.fullmatch(result.stderr), result.stderr
    assert result.stderr.startswith("qedge: 6205 CheckpointWriteFailed: ")


def test_full_disk(ingested: Path) -> None:
    """Output that cannot be written is an error of one line, not a success and not a traceback."""
    with open("/dev/full", "w") as full:
        result = finish("status", "--db", ingested, stdout=full)
    assert result.returncode == 1
    assert re.fullmatch(r"qedge: unexpected OSError: .*No space left.*\n", result.stderr)


def _row(error: str | None) -> DocumentRow:
    return DocumentRow("a.md", None, None, 1, None, None, 0, "failed", error, "run", "now")


def test_recorded_failure() -> None:
    """The state's text of a failure gives code and message back; what is no such text gives none."""
    failure = Failure(6104, "NUL bytes: 3", "unused")
    assert recorded_failure(_row(str(failure))) == Failure(6104, "NUL bytes: 3", CATALOGUE[6104].remedy)
    for error in (None, "", "something else", "9999 Unknown: x"):
        assert recorded_failure(_row(error)) is None


def test_failures_are_grouped() -> None:
    """Many failed documents take a few lines: by code, with the remedy and the first five."""
    failed = [(f"{number}.bin", Failure(6104, "NUL bytes", "replace it")) for number in range(1000)]
    lines = failure_lines([*failed, ("x.pdf", Failure(6101, "no extractor", "exclude it"))])
    assert lines[0] == "  6101 ExtractorNotFound: 1 document. Exclude it."
    assert lines[2] == "  6104 DocumentMalformed: 1,000 documents. Replace it."
    assert lines[3:] == [*(f"    {number}.bin: NUL bytes" for number in range(5)), "    and 995 more"]
