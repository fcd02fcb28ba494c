"""What can be wrong with a database, in one place: a stable name, the words for it, and what is to be done."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["KINDS", "Finding"]

_RESTORE = "restore the file from a backup, or ingest into a new one (6204)"


@dataclass(frozen=True, slots=True)
class _Kind:
    message: str
    remedy: str
    mendable: bool = True


#: `{count}` and `{detail}` in a message are those of the finding.
KINDS = MappingProxyType(
    {
        # the file
        "file_damaged": _Kind("SQLite: {detail}", _RESTORE, mendable=False),
        "index_damaged": _Kind("{count} indexes do not agree with their table", "the index is built again"),
        "other_index_damaged": _Kind(
            "{count} indexes of tables that are no collection's do not agree with them",
            "whoever owns them can build them again: REINDEX",
            mendable=False,
        ),
        "state_without_tables": _Kind("state of a collection that has no tables", "the state is deleted"),
        "locks_stale": _Kind("{count} lock files of sources that are not in the database", "the files are deleted"),
        # the tables of a collection
        "triggers_missing": _Kind("{count} triggers or unique indexes are missing", "they are made again"),
        "chunks_damaged": _Kind(
            "{count} chunks whose hash or key is not that of their text",
            "they are deleted, and their documents are indexed again by the next run",
        ),
        "ordinals_wrong": _Kind(
            "{count} documents whose ordinals are not 0, 1, 2 and so on",
            "they are numbered again, and indexed again by the next run",
        ),
        "vectors_missing": _Kind(
            "{count} chunks without a vector",
            "the vector is taken from a chunk of the same text; else the chunk is deleted, and its document is indexed"
            " again by the next run",
        ),
        "vectors_orphaned": _Kind("{count} vectors without a chunk", "they are deleted"),
        "vectors_unusable": _Kind("{count} vectors are zero or not finite", "as for chunks without a vector"),
        "vectors_misplaced": _Kind(
            "the vector table does not find its vectors where it keeps them",
            "the table is built again from the vectors that can be read",
        ),
        "vectors_of_wrong_size": _Kind(
            "{count} blocks of vectors are not of the collection's dimension",
            "the table is built again from the vectors that can be read",
        ),
        "full_text_missing": _Kind("{count} chunks without a full-text entry", "the index is built again"),
        "full_text_orphaned": _Kind("{count} full-text entries without a chunk", "the index is built again"),
        "full_text_stale": _Kind("the full-text index is out of step with the text", "the index is built again"),
        "full_text_damaged": _Kind("the full-text index is damaged", "the index is built again"),
        # its state
        "model_damaged": _Kind("the record of the model is damaged", _RESTORE, mendable=False),
        "notes_damaged": _Kind("{count} notes of runs cannot be read", "they are deleted; the next run does without"),
        "state_damaged": _Kind(
            "{count} documents whose recorded hash is no hash", "the documents are indexed again by the next run"
        ),
        "state_disagrees": _Kind(
            "{count} documents with another number of chunks than their state says",
            "the documents are indexed again by the next run",
        ),
        "state_missing": _Kind(
            "{count} documents with chunks but without a state",
            "a state is made, and the documents are indexed again, or removed, by the next run",
        ),
        "versions_wrong": _Kind("{count} stage versions that are damaged or of no document", "they are deleted"),
        "staged_damaged": _Kind("{count} staged vectors that no document can use", "they are deleted"),
        "staged_leftover": _Kind("{count} staged vectors of sources that are gone", "they are deleted"),
        "artifacts_leftover": _Kind("{count} artefacts of no current version", "the files are deleted"),
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong. `kind` is a key of `KINDS`; `collection` is None where it is about the file.

    `examples` are ids of some of the documents (or names of files or tables) that it is about, never text.
    """

    kind: str
    collection: str | None = None
    count: int = 1
    detail: str = ""
    examples: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return KINDS[self.kind].message.format(count=self.count, detail=self.detail)

    @property
    def remedy(self) -> str:
        """What a repair does; where none is possible, what the reader can do."""
        return KINDS[self.kind].remedy

    @property
    def mendable(self) -> bool:
        return KINDS[self.kind].mendable

    def as_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "collection": self.collection,
            "count": self.count,
            "message": self.message,
            "mendable": self.mendable,
            "remedy": self.remedy,
            "examples": list(self.examples),
        }
