"""`qedge ingest`: what it prints, what it leaves in the database, and its exit codes."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import fields
from itertools import count
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from qedge_dagster.cli import main
from qedge_dagster.pipeline.results import DocumentResult, RunResult
from tests.cli.conftest import DOCUMENTS, Invoke


def _rows(database: Path) -> list[tuple[object, ...]]:
    columns = "key, source_id, document_id, ordinal, text, heading_path, hex(content_hash), char_start, char_end"
    with apsw.Connection(str(database)) as connection:
        return list(connection.execute(f"SELECT {columns} FROM chunks ORDER BY key"))


def test_summary(qedge: Invoke, docs: Path, model: Path) -> None:
    """A run says its outcome, the counts and what was embedded; the next one embeds nothing."""
    first = qedge("ingest", docs, "--model", model)
    assert first.exit_code == 0
    assert first.stdout.splitlines()[0].endswith("s: 3 documents seen, 3 indexed")
    assert "\nembedded: " in first.stdout
    second = qedge("ingest", docs, "--model", model)
    assert second.exit_code == 0
    assert second.stdout.splitlines()[0].endswith("s: 3 documents seen, 3 unchanged")
    assert "\nembedded: 0 texts, 0 tokens, 0 calls\n" in second.stdout
    assert first.stderr == second.stderr == ""


def test_json_is_the_result(qedge: Invoke, docs: Path, model: Path) -> None:
    """--json prints the fields of RunResult by their names, and nothing else."""
    result = qedge("ingest", docs, "--model", model, "--json", "--source-id", "club")
    printed = json.loads(result.stdout)
    assert list(printed) == [field.name for field in fields(RunResult)]
    assert printed["outcome"] == "completed"
    assert printed["source_id"] == "club"
    assert [document["document_id"] for document in printed["documents"]] == sorted(DOCUMENTS)
    assert list(printed["documents"][0]) == [field.name for field in fields(DocumentResult)]
    assert result.stderr == ""


def test_database_of_the_environment(qedge: Invoke, docs: Path, model: Path) -> None:
    """QEDGE_DB is the default of --db."""
    assert qedge("ingest", docs, "--model", model, env={"QEDGE_DB": "other.db"}).exit_code == 0
    assert Path("other.db").exists()
    assert not Path("qedge.db").exists()
    assert qedge("status", env={"QEDGE_DB": "other.db"}).exit_code == 0


def test_suspended_runs_go_on(qedge: Invoke, docs: Path, model: Path) -> None:
    """A budget suspends with exit code 75, says to run it again, and the runs together do what one run does."""
    codes, texts = [], 0
    for _ in range(6):
        result = qedge(
            "ingest", docs, "--source-id", "club", "--model", model, "--max-documents", 1, "--json", "--db", "parts.db"
        )
        printed = json.loads(result.stdout)
        codes.append(result.exit_code)
        texts += printed["texts_embedded"]
        if result.exit_code == 0:
            break
        assert (result.exit_code, printed["suspend_reason"]) == (75, "budget:documents")
        assert result.stderr == "qedge: suspended (budget:documents): run the same command again to go on\n"
    assert codes == [75, 75, 0]
    whole = json.loads(
        qedge("ingest", docs, "--source-id", "club", "--model", model, "--json", "--db", "one.db").stdout
    )
    assert texts == whole["texts_embedded"]
    assert _rows(Path("parts.db")) == _rows(Path("one.db"))


@pytest.mark.parametrize(
    ("option", "reason"),
    [("--max-chunks", "budget:chunks"), ("--max-tokens", "budget:tokens"), ("--max-seconds", "budget:duration")],
)
def test_every_limit(option: str, reason: str, qedge: Invoke, docs: Path, model: Path) -> None:
    """Each limit suspends for its own reason, and not before something was done."""
    value = "1e-9" if option == "--max-seconds" else "1"
    result = qedge("ingest", docs, "--model", model, option, value, "--json")
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["suspend_reason"]) == (75, reason)
    assert printed["texts_embedded"] > 0


def test_failed_documents_do_not_fail_the_run(qedge: Invoke, docs: Path, model: Path) -> None:
    """A completed run with failures exits with 0 and names them by code, with the remedy and the documents."""
    (docs / "core.log").write_bytes(b"\x7fELF" + bytes(1000))
    (docs / "photo.jpeg").write_bytes(b"\xff\xd8\xff")
    result = qedge("ingest", docs, "--model", model)
    assert result.exit_code == 0
    assert "5 documents seen, 3 indexed, 1 failed" in result.stdout
    assert "  6101 ExtractorNotFound: 1 document. " in result.stdout
    assert "  6104 DocumentMalformed: 1 document. Check that the content is" in result.stdout
    assert "\n    core.log: " in result.stdout
    assert result.stderr == ""


def test_fail_fast(qedge: Invoke, docs: Path, model: Path) -> None:
    """--fail-fast makes the first failure the run's: exit code 1, its line on stderr, the result on stdout."""
    (docs / "a.txt").write_bytes(bytes(1000))
    result = qedge("ingest", docs, "--model", model, "--fail-fast", "--json")
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["outcome"], printed["failure"]["code"]) == (1, "failed", 6104)
    assert result.stderr.startswith("qedge: 6104 DocumentMalformed: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("ingested")
def test_failed_run_has_a_result(qedge: Invoke, model: Path) -> None:
    """A run that fails as a whole prints its result with the failure, and the failure on stderr."""
    result = qedge("ingest", "nowhere", "--model", model, "--json")
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["failure"]["name"]) == (1, "SourceUnavailable")
    assert result.stderr.startswith("qedge: 6051 SourceUnavailable: ")


def test_strict_utf8(qedge: Invoke, docs: Path, model: Path) -> None:
    """--strict-utf8 refuses (6106) what is otherwise recognised."""
    (docs / "old.txt").write_bytes("Die Hütte öffnet im Juni, schön früh.".encode("cp1252"))
    strict = json.loads(qedge("ingest", docs, "--model", model, "--strict-utf8", "--json", "--db", "a.db").stdout)
    assert [d["failure"]["code"] for d in strict["documents"] if d["failure"]] == [6106]
    assert json.loads(qedge("ingest", docs, "--model", model, "--json", "--db", "b.db").stdout)["documents_failed"] == 0


def test_too_large(qedge: Invoke, docs: Path, model: Path) -> None:
    """--max-document-mib bounds what is read."""
    (docs / "large.txt").write_bytes(b"x" * (1024 * 1024 + 1))
    result = json.loads(qedge("ingest", docs, "--model", model, "--max-document-mib", 1, "--json").stdout)
    assert [d["failure"]["code"] for d in result["documents"] if d["failure"]] == [6052]


def test_selection(qedge: Invoke, docs: Path, model: Path) -> None:
    """--pattern, --exclude and --hidden choose documents; patterns may be repeated."""
    (docs / ".secret.md").write_text("hidden", "utf-8")

    databases = (f"{number}.db" for number in count())

    def ids(*args: str) -> list[str]:
        result = qedge("ingest", docs, "--model", model, "--json", "--db", next(databases), *args)
        return [document["document_id"] for document in json.loads(result.stdout)["documents"]]

    assert ids("--pattern", "*.txt") == ["notes.txt"]
    assert ids("--pattern", "*.txt", "--pattern", "engine.*") == ["boats/engine.md", "notes.txt"]
    assert ids("--exclude", "boats") == ["notes.txt"]
    assert ids("--hidden", "--exclude", "boats") == [".secret.md", "notes.txt"]


def test_removed_files_are_pruned(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:
    """A completed run removes what is gone, unless --no-prune says otherwise."""
    (docs / "notes.txt").unlink()
    kept = qedge("ingest", docs, "--model", model, "--source-id", "club", "--no-prune", "--json")
    assert json.loads(kept.stdout)["documents_removed"] == 0
    pruned = qedge("ingest", docs, "--model", model, "--source-id", "club")
    assert "2 documents seen, 2 unchanged, 1 removed" in pruned.stdout
    assert {row[2] for row in _rows(ingested)} == {"boats/engine.md", "boats/mooring.md"}


def test_an_empty_folder_is_not_everything_deleted(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:
    """An empty folder removes nothing and says so; --allow-empty means it."""
    before = _rows(ingested)
    shutil.rmtree(docs)
    docs.mkdir()
    result = qedge("ingest", docs, "--model", model, "--source-id", "club")
    assert result.exit_code == 0
    (warning,) = (line for line in result.stdout.splitlines() if line.startswith("warning: "))
    assert warning.startswith("warning: 3 document")
    assert "the source holds no document at all; --allow-empty" in warning
    assert _rows(ingested) == before
    assert qedge("ingest", docs, "--model", model, "--source-id", "club", "--allow-empty").exit_code == 0
    assert _rows(ingested) == []


@pytest.mark.usefixtures("docs")
def test_single_files(qedge: Invoke, model: Path) -> None:
    """Files are taken by name under the source `files`; naming others does not remove the first."""
    first = qedge("ingest", "docs/notes.txt", "--model", model, "--json")
    assert json.loads(first.stdout)["source_id"] == "files"
    second = qedge("ingest", "./docs/boats/engine.md", "docs/boats/mooring.md", "--model", model, "--json")
    assert json.loads(second.stdout)["documents_removed"] == 0
    again = json.loads(qedge("ingest", "./docs/notes.txt", "--model", model, "--json").stdout)
    assert (again["documents_skipped"], again["documents_removed"]) == (1, 0)
    assert {row[2] for row in _rows(Path("qedge.db"))} == {
        "docs/notes.txt",
        "docs/boats/engine.md",
        "docs/boats/mooring.md",
    }


@pytest.mark.usefixtures("docs")
def test_the_database_is_no_document(qedge: Invoke, model: Path) -> None:
    """A database in the ingested folder, whatever its name, is left out, with all its files; its namesake is not."""
    Path("docs/boats/my [1].db").write_text("no database", "utf-8")
    for _ in range(2):
        result = qedge("ingest", "docs", "--model", model, "--db", "docs/my [1].db", "--json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["documents_seen"] == 4


def test_an_existing_collection_keeps_its_settings(qedge: Invoke, docs: Path, model: Path) -> None:
    """Distance and full-text tokenizer need not be repeated; another value is refused (6011)."""
    assert qedge("ingest", docs, "--model", model, "--distance", "l2", "--fts-tokenizer", "trigram").exit_code == 0
    assert qedge("ingest", docs, "--model", model).exit_code == 0
    result = qedge("ingest", docs, "--model", model, "--fts-tokenizer", "porter")
    assert result.exit_code == 1
    assert "6011 SchemaMismatch" in result.stderr


def test_chunk_options(qedge: Invoke, docs: Path, model: Path) -> None:
    """Chunk options reach the chunker; --strict-recipe refuses (6009) to index again because of them."""
    (docs / "long.txt").write_text(" ".join(f"word{n}" for n in range(400)), "utf-8")
    assert qedge("ingest", docs, "--model", model, "--source-id", "club").exit_code == 0
    small = ["--chunk-tokens", "40", "--overlap", "0", "--min-tokens", "5"]
    refused = qedge("ingest", docs, "--model", model, "--source-id", "club", "--strict-recipe", *small)
    assert refused.exit_code == 1
    assert "6009 RecipeChanged" in refused.stderr
    before = len(_rows(Path("qedge.db")))
    assert qedge("ingest", docs, "--model", model, "--source-id", "club", *small).exit_code == 0
    assert len(_rows(Path("qedge.db"))) > before


def test_another_model_is_refused(qedge: Invoke, ingested: Path, docs: Path) -> None:
    """The default model on a collection of another one is an error that names the way out."""
    result = qedge("ingest", docs, "--source-id", "club")
    assert result.exit_code == 1
    assert "6006 DimensionMismatch" in result.stderr or "6012 ModelChanged" in result.stderr
    assert "--rebuild" in result.stderr
    assert ingested.exists()


def test_file_names_from_hell(qedge: Invoke, docs: Path, model: Path) -> None:
    """Names that are no UTF-8, or hold control characters, are indexed and printed harmlessly."""
    for name in (b"caf\xe9.txt", b"clear\x1b[2Jscreen.txt", b"two\nlines.md", "\u202egnp.txt".encode()):
        Path(os.fsdecode(os.path.join(os.fsencode(docs), name))).write_bytes(bytes(500))
    for args in (["ingest", docs, "--model", model], ["status"]):
        result = qedge(*args)
        assert result.exit_code == 0, result.stderr
        assert "6104 DocumentMalformed: 4 documents" in result.stdout
        assert not {"\x1b", "\u202e"} & set(result.stdout)
        assert all(line.isprintable() for line in result.stdout.splitlines())


@pytest.mark.usefixtures("qedge")
@pytest.mark.parametrize("options", [["--no-dagster"], []], ids=["engine", "dagster"])
def test_a_first_ingest_of_nothing_leaves_nothing(options: list[str], tmp_path: Path) -> None:
    """6051 for a path that does not exist; no database, lock or home is made for it."""
    result = CliRunner().invoke(main, ["ingest", "no-such-folder", "--db", "new.db", *options])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qedge: 6051 SourceUnavailable: there is no file or folder no-such-folder")
    assert list(tmp_path.iterdir()) == []
