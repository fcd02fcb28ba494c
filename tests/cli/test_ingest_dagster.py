"""`qedge ingest` as a run of Dagster: what the home holds afterwards, and that nothing else is different."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import dagster as dg
import pytest
import yaml
from click.testing import CliRunner, Result
from dagster._core.instance.ref import InstanceRef

from qedge_dagster.cli import main
from qedge_dagster.cli.orchestrated import OrchestratedRun
from qedge_dagster.collection import Collection
from qedge_dagster.orchestration import IngestionSettings
from qedge_dagster.orchestration.location import build_location
from qedge_dagster.orchestration.recorded import read_recorded
from qedge_dagster.orchestration.resource import DocxConfig
from tests.cli.conftest import finish, start
from tests.cli.test_failure import FAILURES, USAGE
from tests.cli.test_formats import words_of, write_word_document
from tests.cli.test_process import _count, _until

STAGES = ("extracted_documents", "document_chunks", "chunk_embeddings", "collection")
IDS = ["boats/engine.md", "boats/mooring.md", "notes.txt"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home that `qedge.db` in the current folder has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QEDGE_DB", raising=False)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    return tmp_path / "qedge.db.dagster"


def ingest(*args: object) -> Result:
    return CliRunner().invoke(main, ["ingest", *map(str, args)])


@contextmanager
def opened(home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance:
        yield instance


def runs(home: Path) -> list[tuple[str, dict[str, str]]]:
    """Status and outcome tags of the runs, oldest first."""
    with opened(home) as instance:
        return [
            (run.status.value, {k: v for k, v in run.tags.items() if k in ("qedge/outcome", "qedge/suspend_reason")})
            for run in reversed(instance.get_runs())
        ]


def asset_events(home: Path) -> list[list[tuple[str, str, str]]]:
    """(type, last part of the key, partition) of the asset events of each run, oldest first."""
    found: list[list[tuple[str, str, str]]] = []
    with opened(home) as instance:
        for run in reversed(instance.get_runs()):
            events = [entry.dagster_event for entry in instance.all_logs(run.run_id)]
            found.append(
                [
                    (event.event_type_value, event.asset_key.path[-1], event.partition or "")
                    for event in events
                    if event is not None
                    and event.asset_key is not None
                    and event.event_type_value in ("ASSET_MATERIALIZATION", "ASSET_OBSERVATION")
                ]
            )
    return found


def test_the_home_shows_what_the_command_did(home: Path, docs: Path, model: Path) -> None:
    """A run that succeeded, a partition for each document and a materialisation for each of its stages; the second run
    logs no event of an asset and embeds nothing."""
    first = ingest(docs, "--model", model)
    assert (first.exit_code, first.stderr) == (0, "")
    second = ingest(docs, "--model", model, "--json")
    assert (second.exit_code, second.stderr) == (0, "")
    assert json.loads(second.stdout)["texts_embedded"] == 0
    assert runs(home) == [("SUCCESS", {}), ("SUCCESS", {})]
    of_first, of_second = asset_events(home)
    materialised = [(stage, key) for kind, stage, key in of_first if kind == "ASSET_MATERIALIZATION"]
    assert sorted(materialised) == sorted((stage, key) for stage in STAGES for key in IDS)
    assert of_second == []
    with opened(home) as instance:
        assert sorted(instance.get_dynamic_partitions(f"chunks/{docs}")) == IDS


def test_output_is_that_of_the_engine_alone(home: Path, docs: Path, model: Path) -> None:
    """--json with and without Dagster differ in run id and times only; without it there is no home."""
    with_dagster = json.loads(ingest(docs, "--model", model, "--json").stdout)
    alone = json.loads(ingest(docs, "--model", model, "--json", "--no-dagster", "--db", "alone.db").stdout)
    assert with_dagster.keys() == alone.keys()
    same = [key for key in alone if key not in ("run_id", "documents") and "duration" not in key and "utc" not in key]
    assert {key: with_dagster[key] for key in same} == {key: alone[key] for key in same}
    assert home.is_dir()
    assert not Path("alone.db.dagster").exists()


def test_without_dagster_none_is_imported(home: Path, docs: Path, model: Path) -> None:
    """--no-dagster does not pay for Dagster, and makes no home."""
    database = home.with_suffix("")
    args = ["ingest", docs, "--model", model, "--db", database, "--no-dagster"]
    result = finish(*args, env_changes={"PYTHONPROFILEIMPORTTIME": "1"})
    assert result.returncode == 0
    imported = {line.rsplit("|", 1)[-1].strip() for line in result.stderr.splitlines() if "import time:" in line}
    assert "onnxruntime" in imported
    assert not imported & {"dagster", "sqlalchemy", "pydantic"}
    assert not home.exists()


def test_run_options_are_in_the_config_of_the_run(home: Path, docs: Path, model: Path) -> None:
    """What the command line asked of this run can be read in the UI."""
    assert ingest(docs, "--model", model, "--force", "--no-prune", "--max-chunks", 100).exit_code == 0
    with opened(home) as instance:
        config = instance.get_runs()[0].run_config["ops"]["chunks_ingest_documents"]["config"]
    assert config["budget"] == {"max_chunks": 100}
    assert (config["force"], config["delete_missing"], config["fail_fast"]) == (True, False, False)


def test_a_spent_budget(home: Path, docs: Path, model: Path) -> None:
    """Exit code 75, the run is CANCELED with outcome and reason, and the next one goes on."""
    first = ingest(docs, "--model", model, "--max-documents", 1)
    assert first.exit_code == 75
    assert first.stderr == "qedge: suspended (budget:documents): run the same command again to go on\n"
    assert ingest(docs, "--model", model).exit_code == 0
    assert runs(home) == [
        ("CANCELED", {"qedge/outcome": "suspended", "qedge/suspend_reason": "budget:documents"}),
        ("SUCCESS", {}),
    ]


def test_a_failed_document(home: Path, docs: Path, model: Path) -> None:
    """The run completes, the document is on stdout, and an observation has its error."""
    (docs / "bad.txt").write_bytes(b"A caf\xe9 at the quay.")
    result = ingest(docs, "--model", model, "--strict-utf8")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "6106" in result.stdout
    assert runs(home) == [("SUCCESS", {})]
    kinds = {kind for kind, _, key in asset_events(home)[0] if key == "bad.txt"}
    assert kinds == {"ASSET_OBSERVATION"}


def test_errors_before_the_run(home: Path, docs: Path, model: Path) -> None:
    """An error of the engine is the same one line, and what came to nothing is not recorded for the UI."""
    assert ingest(docs, "--model", model, "--no-dagster").exit_code == 0
    result = ingest("nowhere", "--model", model)
    assert result.exit_code == 1
    assert result.stderr.startswith("qedge: 6051 SourceUnavailable: ")
    assert result.stderr.count("\n") == 1
    assert read_recorded(home) == ({}, {})
    assert ingest(docs, "--model", model).exit_code == 0
    assert [status for status, _ in runs(home)] == ["FAILURE", "SUCCESS"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run(number: signal.Signals, many: Path, model: Path, home: Path) -> None:
    """Exit code 130, one line that says so, no traceback, and a run that is CANCELED with outcome `cancelled`."""
    database = home.with_suffix("")
    with start("ingest", many, "--db", database, "--model", model, "--json") as process:
        _until(lambda: _count(database, "SELECT count(*) FROM qedge_ingest_document"), process)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, json.loads(stdout)["outcome"]) == (130, "cancelled")
    assert stderr.splitlines()[0] == "qedge: stopping at the next committed boundary; Ctrl-C again leaves at once"
    assert len(stderr.splitlines()) == 2
    assert runs(home) == [("CANCELED", {"qedge/outcome": "cancelled", "qedge/suspend_reason": "lifecycle:stopping"})]


def test_two_commands_at_once(many: Path, docs: Path, model: Path, home: Path) -> None:
    """A second one of the same source is refused with 6008 at once; one of another source of the home completes."""
    database = home.with_suffix("")
    args = ["ingest", many, "--db", database, "--model", model, "--json"]
    with start(*args) as first:
        _until(lambda: _count(database, "SELECT count(*) FROM qedge_ingest_document"), first)
        assert finish(*args).stderr.startswith("qedge: 6008 RunAlreadyActive: ")
        other = finish("ingest", docs, "--db", database, "--model", model)
        assert (other.returncode, other.stderr) == (0, "")
        assert first.poll() is None
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=60)
    assert sorted(status for status, _ in runs(home)) == ["CANCELED", "FAILURE", "SUCCESS"]
    assert len(read_recorded(home)[0]) == 2


def test_recorded_settings_are_the_same_recipe(home: Path, docs: Path, model: Path) -> None:
    """A job of the location that is made of the recorded settings skips every document, whatever the options were; an
    edit is one document's work."""
    options = ["--chunk-tokens", 60, "--split-levels", "1,2", "--strict-utf8", "--distance", "l2", "--exclude", "no*"]
    options += ["--docx-no-notes", "--docx-hidden-text"]
    write_word_document(docs / "word.docx")
    assert ingest(docs, "--model", model, *options, "--fts-tokenizer", "porter").exit_code == 0
    (settings,) = read_recorded(home)[0].values()
    assert settings.docx == DocxConfig(notes=False, hidden_text=True)
    assert words_of(Path("qedge.db"), "word.docx") == {"body", "box", "hidden"}
    assert ingest(docs, "--model", model, *options).exit_code == 0  # those of the collection hold
    job = build_location(home).resolve_job_def("chunks_ingest")
    with opened(home) as instance:
        assert job.execute_in_process(instance=instance).success
        (docs / "boats" / "engine.md").write_text("# Engine\n\nIt is new.\n", "utf-8")
        assert job.execute_in_process(instance=instance).success
    *_, unchanged, edited = asset_events(home)
    assert unchanged == []
    assert {key for _, _, key in edited} == {"boats/engine.md"}


def test_two_sources_of_one_collection(home: Path, docs: Path, model: Path, tmp_path: Path) -> None:
    """The second gets a name of its own, which it keeps, and one location holds both; a broken file costs itself."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.txt").write_text("Another text.", "utf-8")
    for folder in (docs, other, docs, other):
        assert ingest(folder, "--model", model).exit_code == 0
    (home / "qedge" / "broken.yaml").write_text("source: [", "utf-8")
    names = sorted(settings.name or "" for settings in read_recorded(home)[0].values())
    assert names[0] == ""
    assert "other_" in names[1]
    jobs = {job.name for job in build_location(home).resolve_all_job_defs()}
    assert {"chunks_ingest", f"chunks_{names[1]}_ingest"} <= jobs


def test_files_given_one_by_one(home: Path, docs: Path, model: Path) -> None:
    """Their record adds up, and a run of it removes none that was ingested besides."""
    assert docs.is_dir()
    for name in ("docs/notes.txt", "docs/boats/engine.md"):
        assert ingest(name, "--model", model).exit_code == 0
    (settings,) = read_recorded(home)[0].values()
    assert settings.source.files == ["docs/notes.txt", "docs/boats/engine.md"]
    assert not settings.delete_missing
    (docs / "other.md").write_text("One more text.", "utf-8")
    assert ingest("docs/other.md", "--model", model, "--no-dagster").exit_code == 0
    with opened(home) as instance:
        assert build_location(home).resolve_job_def("chunks_ingest").execute_in_process(instance=instance).success
    assert asset_events(home)[-1] == []
    with Collection.open("qedge.db") as collection:
        assert {"docs/other.md", "docs/notes.txt"} <= {chunk.document_id for chunk in collection.chunks()}


def test_the_home_is_no_document(home: Path, docs: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Database and home in the ingested folder are left out, also a home that the environment names."""
    assert home
    inside = ["docs", "--model", model, "--db", "docs/own.db", "--json"]
    assert json.loads(ingest(*inside).stdout)["documents_seen"] == 3
    assert Path("docs/own.db.dagster").is_dir()
    monkeypatch.setenv("DAGSTER_HOME", str(docs / "dagster"))
    assert json.loads(ingest(*inside).stdout)["documents_seen"] == 3
    assert (docs / "dagster" / "history").is_dir()
    assert json.loads(ingest(*inside).stdout)["documents_seen"] == 3


def test_a_lost_home_loses_history_only(home: Path, docs: Path, model: Path) -> None:
    """After the home was deleted the next run makes another, and embeds nothing."""
    assert ingest(docs, "--model", model).exit_code == 0
    shutil.rmtree(home)
    result = ingest(docs, "--model", model, "--json")
    assert (result.exit_code, json.loads(result.stdout)["texts_embedded"]) == (0, 0)
    assert runs(home) == [("SUCCESS", {})]


@pytest.mark.parametrize("broken", ["history/runs.db", "history/runs/index.db", "dagster.yaml"])
def test_a_damaged_home(broken: str, home: Path, docs: Path, model: Path) -> None:
    """One line with 6013 and what to do; --no-dagster goes on."""
    assert ingest(docs, "--model", model).exit_code == 0
    (home / broken).write_bytes(b"this: is: neither [ SQLite nor YAML" * 100)
    (docs / "new.txt").write_text("Something new.", "utf-8")
    result = ingest(docs, "--model", model)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qedge: 6013 DagsterUnavailable: ")
    assert "--no-dagster" in result.stderr
    assert result.stderr.count("\n") == 1
    assert ingest(docs, "--model", model, "--no-dagster").exit_code == 0


def test_a_home_that_cannot_be_made(home: Path, docs: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with 6013 and what to do, where a file is in the way or the folder cannot be written."""
    assert home
    Path("file").write_text("", "utf-8")
    unwritable = ["file/home", "/proc/home"]
    if os.geteuid() != 0:  # root may write anywhere
        Path("closed").mkdir(mode=0o500)
        unwritable.append("closed/home")
    for name in unwritable:
        monkeypatch.setenv("DAGSTER_HOME", name)
        result = ingest(docs, "--model", model)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("qedge: 6013 DagsterUnavailable: ")
        assert "--no-dagster" in result.stderr


def test_a_home_that_fails_when_the_work_is_done(
    home: Path, docs: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is shown all the same, with a line about the history."""
    assert home

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("qedge_dagster.orchestration.execution.tag_outcome", full)
    result = ingest(docs, "--model", model, "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents_indexed"]) == (0, 3)
    assert "history of this run is not complete" in result.stderr
    assert "disk is full" in result.stderr


INGEST_ERRORS = [args for args in (*USAGE, *(args for args, _ in FAILURES)) if args[0] == "ingest"]


@pytest.mark.usefixtures("ingested")
@pytest.mark.parametrize("args", INGEST_ERRORS, ids=" ".join)
def test_errors_are_those_of_the_engine(args: list[str], home: Path, model: Path) -> None:
    """What goes wrong is said with the same words and exit code as without Dagster, and wrong usage makes no home."""
    with closing(apsw.Connection("foreign.db")) as foreign:
        foreign.pragma("user_version", 9)
    rest = args[1:] if "--model" in args or "--profile" in args else [*args[1:], "--model", str(model)]
    found, expected = ingest(*rest), ingest("--no-dagster", *rest)
    assert found.exit_code == expected.exit_code != 0
    words = [result.stderr.replace(f"{Path.cwd()}/", "") for result in (found, expected)]  # Dagster's are absolute
    assert words[0] == words[1]
    if args in USAGE:
        assert not home.exists()


def test_a_removed_source_is_not_ingested_again(home: Path, docs: Path, model: Path) -> None:
    """`qedge remove --all` takes the source out of what `qedge ui` runs; `qedge remove DOCUMENT` does not."""
    assert ingest(docs, "--model", model, "--source-id", "club").exit_code == 0
    assert CliRunner().invoke(main, ["remove", "notes.txt"]).exit_code == 0
    assert len(read_recorded(home)[0]) == 1
    assert CliRunner().invoke(main, ["remove", "--all", "--source-id", "club"]).exit_code == 0
    assert read_recorded(home) == ({}, {})


def test_a_stop_before_the_run_begins(home: Path, docs: Path, model: Path) -> None:
    """What is asked before the pipeline is open is done when it opens: a cancelled run that did nothing."""
    source = {"folder": str(docs), "id": "club"}
    settings = IngestionSettings.model_validate(
        {"database": str(home.with_suffix("")), "model_folder": str(model), "source": source}
    )
    run = OrchestratedRun(home, settings, lambda _: None)
    run.cancel()
    result = run.run({})
    assert (result.outcome, result.documents_indexed) == ("cancelled", 0)
    assert runs(home) == [("CANCELED", {"qedge/outcome": "cancelled", "qedge/suspend_reason": "lifecycle:stopping"})]


def test_settings_are_plain_yaml(home: Path, docs: Path, model: Path) -> None:
    """What is recorded can be read and pasted: absolute paths, and the names of the settings."""
    assert ingest("docs", "--model", model, "--pattern", "*.md").exit_code == 0
    (path,) = (home / "qedge").glob("*.yaml")
    written = yaml.safe_load(path.read_text("utf-8"))
    assert written["database"] == str(home.with_suffix(""))
    assert written["model_folder"] == str(model)
    assert written["source"]["folder"] == str(docs)
    assert (written["source"]["pattern"], written["delete_missing"]) == (["*.md"], True)


def test_a_database_under_two_names_is_one(home: Path, docs: Path, model: Path, tmp_path: Path) -> None:
    """Through a link, or a path with `..`, it has the same home, artefacts and record: the UI shows its source once."""
    link = tmp_path / "elsewhere"
    link.mkdir()
    (link / "linked.db").symlink_to(tmp_path / "qedge.db")
    for database in ("qedge.db", "elsewhere/../qedge.db", "elsewhere/linked.db"):
        assert ingest(docs, "--model", model, "--source-id", "club", "--db", database).exit_code == 0
    assert len(list((home / "qedge").glob("*.yaml"))) == 1
    assert len(runs(home)) == 3
    assert sorted(path.name for path in tmp_path.glob("**/*.dagster")) == ["qedge.db.dagster"]
    assert sorted(path.name for path in tmp_path.glob("**/*.artifacts")) == ["qedge.db.artifacts"]
    assert finish("remove", "--all", "--source-id", "club", "--db", link / "linked.db").returncode == 0
    assert list((home / "qedge").glob("*.yaml")) == []
