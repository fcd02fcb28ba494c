"""A command that fails says so in one line, with code and remedy, and with the right exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from qedge_dagster.cli.failure import ExitCode, failure_lines, recorded_failure, report
from qedge_dagster.cli.output import note
from qedge_dagster.errors import CATALOGUE, Failure, QedgeError
from qedge_dagster.state import DocumentRow
from tests.cli.conftest import ROOT, Invoke, finish

ONE_LINE = re.compile(r"qedge: (\d{4}) (\w+): \S.*[.!?] [A-Z`].*[.!?]\n")


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
    ["inspect", "caf\udce9.txt"],
    ["inspect", "notes.txt", "--source-id", "caf\udce9"],
    ["remove", "notes.txt", "caf\udce9.txt"],
    ["remove", "--all", "--source-id", "caf\udce9"],
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
    assert result.stderr == "qedge: unexpected ZeroDivisionError: two lines. --debug shows where.\n"
    result = qedge("status", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "in fail" in result.stderr


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("ingested")
@pytest.mark.parametrize(
    "where", ["import_module", "click.Group.make_context", "click.Group.invoke", "existing_spec", "report"]
)
def test_ctrl_c_is_one_line_wherever_it_comes(where: str, qedge: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the command line is read, a command is loaded, or an error is reported: one line and 130."""
    target = {
        "existing_spec": "qedge_dagster.cli.opening.existing_spec",
        "report": "qedge_dagster.cli.report",
        "import_module": "qedge_dagster.cli.import_module",
    }
    monkeypatch.setattr(target.get(where, where), _interrupt)
    result = qedge("remove", "notes.txt" if where == "existing_spec" else "no-such-document")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.split("\n")[-2:] == ["qedge: interrupted", ""]
    assert result.stderr.strip() == "qedge: interrupted"


def test_a_second_ctrl_c_while_the_first_is_reported(qedge: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt inside the handling of an interrupt changes nothing about line and exit code."""
    pending = [KeyboardInterrupt()]

    def interrupted_note(text: str) -> None:
        if pending:
            raise pending.pop()
        note(text)

    monkeypatch.setattr("qedge_dagster.cli.import_module", _interrupt)
    monkeypatch.setattr("qedge_dagster.cli.note", interrupted_note)
    result = qedge("status")
    assert (result.exit_code, result.stderr.strip()) == (130, "qedge: interrupted")
    assert not pending


def test_ctrl_c_after_the_end_prints_nothing() -> None:
    """An interrupt that comes while the interpreter shuts down changes neither output nor exit code."""
    program = (
        "import os, signal, threading\n"
        "from qedge_dagster.cli import main\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=late).start()\n"
        "main(['--version'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, b"")


NAMED = [
    (["ingest", "docs", "--max-seconds", "0"], "max_duration"),
    (["ingest", "docs", "--db", "bad.db"], "bad.db"),
    (["remove", "copy.md"], "collection chunks holds no document copy.md"),
]


@pytest.mark.usefixtures("ingested")
@pytest.mark.parametrize(("args", "begin"), NAMED, ids=[" ".join(args) for args, _ in NAMED])
def test_messages_are_printed_as_they_are(args: list[str], begin: str, qedge: Invoke, model: Path) -> None:
    """The first letter of a message is not changed: it may be that of a file, an option or an id."""
    Path("bad.db").write_text("no database, " * 100, "utf-8")
    result = qedge(*args, *(["--model", model] if args[0] == "ingest" else []))
    assert result.exit_code != 0
    assert f": {begin}" in result.stderr


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
