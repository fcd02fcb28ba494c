"""Ingestion assets from YAML, in a project of Dagster components."""

from __future__ import annotations

from dagster import Component, ComponentLoadContext, ComponentTypeSpec, Definitions

from qedge_dagster.orchestration.settings import IngestionSettings

__all__ = ["DocumentIngestionComponent"]


class DocumentIngestionComponent(IngestionSettings, Component):
    """A folder of documents, kept searchable in one SQLite file.

    In `defs.yaml`:

        type: qedge_dagster.orchestration.DocumentIngestionComponent
        attributes:
          source:
            folder: "{{ context.project_root }}/docs"
            pattern: "*.md"
          database: "{{ context.project_root }}/handbook.db"
          collection: handbook

    In place of the folder, `files` lists them, or `url` is that of a store that fsspec knows.

    As with other components, relative paths are below the folder of the YAML file; `{{ context.project_root }}` is the
    project's root. What is stored is the same on every machine that has the project: a folder of the project is known
    by its path from the root, and so is a listed file. A folder that lies elsewhere is known by its full path, unless
    it has an `id`.

    For an embedder or extractors of your own, subclass it and set `resource_type` to a subclass of `IngestionResource`.
    """

    @classmethod
    def get_spec(cls) -> ComponentTypeSpec:
        return ComponentTypeSpec(
            description="A folder of documents, kept searchable in one SQLite file.",
            produces=["asset", "asset_check", "job", "sensor", "schedule", "resource"],
        )

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        """Raises `QedgeError` 6005 or 6055 for a source that cannot be."""
        folder = context.path if context.path.is_dir() else context.path.parent
        return self.relative_to(context.project_root, folder).definitions(context.project_root)
