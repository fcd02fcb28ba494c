"""The Component, loaded from YAML in a project as Dagster loads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

from qedge_dagster.embedding.base import Embedder
from qedge_dagster.orchestration import DocumentIngestionComponent, IngestionResource
from tests.pipeline.support import CountingEmbedder, write

EMBEDDER = CountingEmbedder()


class OwnResource(IngestionResource):
    def embedder(self) -> Embedder:
        return EMBEDDER


class OwnComponent(DocumentIngestionComponent):
    resource_type = OwnResource


@contextmanager
def loaded(
    attributes: dict[str, Any], component: type[DocumentIngestionComponent] = DocumentIngestionComponent
) -> Iterator[tuple[Path, dg.Definitions]]:
    """The project's root, and the definitions of `attributes` in `defs/team/notes/defs.yaml`."""
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component,
            defs_path="team/notes",
            defs_yaml_contents={"type": f"{component.__module__}.{component.__name__}", "attributes": attributes},
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
            yield sandbox.project_root, definitions


def partitions_names(definitions: dg.Definitions) -> set[str]:
    graph = definitions.resolve_asset_graph()
    return {graph.get(key).partitions_def.name for key in graph.get_all_asset_keys()}  # type: ignore[union-attr]


def database(definitions: dg.Definitions) -> Path:
    (resource,) = (definitions.resources or {}).values()
    return Path(resource.database)


def test_everything_of_a_target() -> None:
    """The YAML makes assets, checks, jobs, sensor and schedule, which Dagster can load."""
    attributes = {"source": {"folder": "docs"}, "database": "notes.db", "collection": "notes", "schedule": "0 4 * * *"}
    with loaded(attributes) as (_, definitions):
        dg.Definitions.validate_loadable(definitions)
        repository = definitions.get_repository_def()
        assert {key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys()} == {
            f"notes/{name}"
            for name in (
                "source_documents",
                "extracted_documents",
                "document_chunks",
                "chunk_embeddings",
                "collection",
            )
        }
        assert [schedule.cron_schedule for schedule in repository.schedule_defs] == ["0 4 * * *"]
        assert [sensor.name for sensor in repository.sensor_defs] == ["notes_reindex"]


def test_relative_paths_are_below_the_component() -> None:
    """As in other components: beside the YAML file, with `{{ context.project_root }}` for the root of the project."""
    with loaded({"source": {"folder": "docs"}, "database": "notes.db"}) as (root, definitions):
        (folder,) = root.glob("src/*/defs/team/notes")
        assert database(definitions) == folder / "notes.db"
    with loaded({"source": {"folder": "docs"}, "database": "{{ context.project_root }}/notes.db"}) as (
        root,
        definitions,
    ):
        assert database(definitions) == root / "notes.db"


@pytest.mark.parametrize("folder", ["{{ context.project_root }}/docs", "../../../../../docs"])
def test_ids_do_not_depend_on_where_the_project_lies(folder: str) -> None:
    """A folder of the project is known by its path from the root, however it is written; so is the resource."""
    found = []
    for _ in range(2):
        with loaded({"source": {"folder": folder}, "database": "{{ context.project_root }}/a.db"}) as (_, definitions):
            found.append((partitions_names(definitions), list(definitions.resources or {})))
    assert found[0] == found[1]
    assert found[0][0] == {"chunks/docs"}


def test_a_folder_elsewhere_is_known_by_its_full_path(tmp_path: Path) -> None:
    """What lies outside the project has the id that the Python API and the command line give it, or its own."""
    with loaded({"source": {"folder": str(tmp_path)}, "database": "a.db"}) as (_, definitions):
        assert partitions_names(definitions) == {f"chunks/{tmp_path.resolve().as_posix()}"}
    with loaded({"source": {"folder": str(tmp_path), "id": "mail"}, "database": "a.db"}) as (_, definitions):
        assert partitions_names(definitions) == {"chunks/mail"}


def test_an_embedder_of_ones_own(instance: dg.DagsterInstance) -> None:
    """A subclass names its resource; listed files are indexed under their paths from the project's root."""
    attributes = {
        "source": {"files": ["a.md", "{{ context.project_root }}/b.md"]},
        "database": "{{ context.project_root }}/notes.db",
    }
    with loaded(attributes, OwnComponent) as (root, definitions):
        (folder,) = root.glob("src/*/defs/team/notes")
        write(folder, {"a.md": "alpha"})
        write(root, {"b.md": "beta"})
        result = definitions.resolve_job_def("chunks_ingest").execute_in_process(instance=instance)
        assert result.success
        assert sorted(EMBEDDER.texts) == ["alpha", "beta"]
        keys = instance.get_dynamic_partitions("chunks/files")
        assert sorted(keys) == sorted([(folder / "a.md").relative_to(root).as_posix(), "b.md"])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"source": {"folder": "docs", "files": ["a.md"]}, "database": "a.db"}, "either a folder or files"),
        ({"source": {"folder": ["docs"]}, "database": "a.db"}, "folder.*valid string"),
        ({"source": {"folder": ""}, "database": "a.db"}, "either a folder or files"),
        ({"source": {"folder": "docs", "patern": "*.md"}, "database": "a.db"}, "patern.*Extra inputs"),
        ({"source": {"folder": "docs"}, "database": "a.db", "model": "x"}, "attributes.model.*Extra inputs"),
        ({"source": {"folder": "docs"}}, "database.*Field required"),
        ({"source": {"folder": "docs"}, "database": ""}, "database.*at least 1 "),
        ({"source": {"folder": "docs", "id": ""}, "database": "a.db"}, "SourceSettingsModel.id.*at least 1 "),
    ],
)
def test_mistakes_in_the_yaml(attributes: dict[str, Any], message: str) -> None:
    """The error names the file, the key and what is wrong with it."""
    with pytest.raises(Exception, match=r"defs\.yaml \(DocumentIngestionComponent\)") as raised, loaded(attributes):
        pass
    cause = str(raised.value.__cause__).replace("\n", " ")
    assert re.search(message, cause)
    assert "notes/defs.yaml:" in cause
