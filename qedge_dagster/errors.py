"""Every error code of the product, with its name and its remedy, in one place.

60xx are configuration errors, raised at start-up. 605x and 61xx are recorded per document and never stop a run.
Messages carry numbers, ids and paths; never document text.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["CATALOGUE", "SETTLED_CODES", "SYSTEMIC_CODES", "Failure", "QedgeError"]


class _Entry(NamedTuple):
    name: str
    remedy: str


# fmt: off
CATALOGUE = MappingProxyType(
    {
        6001: _Entry("TokenCounterMissing", "give the embedder a tokenizer: tokenizer.json or vocab.txt beside the model, or tokenizer=…"),
        6002: _Entry("CollectionNotConfigured", "check --db and --collection, or run `qedge ingest` first"),
        6003: _Entry("ChunkBudgetInvalid", "lower max_tokens (--chunk-tokens) first, else the heading path budget, overlap or minimum, or use a model with a longer input"),
        6004: _Entry("DuplicateExtractorId", "give each registered extractor an id of its own"),
        6005: _Entry("OptionsInvalid", "correct the option that the message names"),
        6006: _Entry("DimensionMismatch", "use the model that the collection was built with, or `--rebuild` with the new one"),
        6007: _Entry("MigrationVersionConflict", "choose a free pair of schema versions with --first-migration, or another database file"),
        6008: _Entry("RunAlreadyActive", "wait for the active run to end, or stop it"),
        6009: _Entry("RecipeChanged", "restore the old options, or run without the strict recipe to re-index"),
        6010: _Entry("RunAborted", "see the failures listed before it: a disk, a mount or the embedder is likely at fault; then run again"),
        6011: _Entry("SchemaMismatch", "open the collection with the options it was made with, or use another collection name"),
        6012: _Entry("ModelChanged", "use the old model, another collection, or `qedge ingest --rebuild` to re-embed everything; a collection made with a function of your own is rebuilt from Python, with RunOptions(rebuild=True)"),
        6013: _Entry("DagsterUnavailable", "make the Dagster home writable or delete it (it holds history only), or run with --no-dagster"),
        6051: _Entry("SourceUnavailable", "check that the path exists, is mounted and may be read"),
        6052: _Entry("DocumentTooLarge", "raise --max-document-mib, or split or exclude the file"),
        6053: _Entry("DocumentUnreadable", "check permissions and that the file still exists; the next run tries again"),
        6054: _Entry("DuplicateDocumentId", "make the source give each document an id of its own"),
        6055: _Entry("SourceIdInvalid", "use a printable id without control characters"),
        6101: _Entry("ExtractorNotFound", "exclude the file, or install or register an extractor for its type"),
        6102: _Entry("ExtractionFailed", "open the file in its own program and save it again; the next run tries again"),
        6103: _Entry("DocumentEncrypted", "give the password, or save the file without one"),
        6104: _Entry("DocumentMalformed", "check that the content is what the file's name says; replace or exclude the file"),
        6105: _Entry("NoTextLayer", "run OCR on the file first, then ingest it again"),
        6106: _Entry("EncodingUndecodable", "save the file as UTF-8, or leave out --strict-utf8"),
        6107: _Entry("PageBudgetExceeded", "raise the page budget, or split the file; the next run tries again"),
        6151: _Entry("ChunkExceedsBudget", "this is a fault of the chunker: report it, with its id and version"),
        6152: _Entry("ContextTooLong", "use overflow `split` or `truncate`, or shorten the passage"),
        6153: _Entry("TokenizerCeilingExceeded", "use the tokenizer and the profile of the same model"),
        6154: _Entry("EmptyChunk", "this is a fault of the chunker: report it, with its id and version"),
        6155: _Entry("MarkdownParseFailed", "simplify the construct that the parser cannot take, or ingest the file as text/plain"),
        6201: _Entry("StateMissing", "restore the database from a backup, or ingest into a new one"),
        6202: _Entry("HashAlgorithmMismatch", "open the database with the release that wrote it, or ingest into a new one"),
        6203: _Entry("StateSchemaUnsupported", "upgrade qedge-dagster: the database was written by a newer release"),
        6204: _Entry("StateCorrupt", "restore the database from a backup, or delete the file and ingest anew"),
        6205: _Entry("CheckpointWriteFailed", "check that the disk has room and that no other program holds the database, then run again"),
        6206: _Entry("EmbeddingFailed", "see the cause in the message; the next run tries the document again"),
        6207: _Entry("WriteFailed", "check that the disk has room and the database may be written, then run again"),
        6208: _Entry("EmbeddingGeneratorMissing", 'install the default model: pip install "qedge-dagster[onnx]", or give an embedder of your own'),
    }
)
# fmt: on

#: Settled by the document's bytes and the recipe: not tried again until one of them changes.
SETTLED_CODES = frozenset({6101, 6104, 6105, 6106, 6152})

#: May be a fault of the machine rather than of one document; twenty in a row abort the run (6010).
SYSTEMIC_CODES = frozenset({6053, 6102, 6201, 6202, 6203, 6204, 6205, 6206, 6207, 6208})


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, in a form that can be stored, printed and compared."""

    code: int
    message: str
    remedy: str

    @property
    def name(self) -> str:
        return CATALOGUE[self.code].name

    def error(self) -> QedgeError:
        return QedgeError(self.code, self.message, remedy=self.remedy)

    def as_dict(self) -> dict[str, object]:
        return {"code": self.code, "name": self.name, "message": self.message, "remedy": self.remedy}

    def __str__(self) -> str:
        return f"{self.code} {self.name}: {self.message}"


class QedgeError(Exception):
    """An error with a stable code, a message with the numbers and a remedy.

    `remedy` replaces the catalogue's, where the place that raises knows better.
    """

    def __init__(self, code: int, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = CATALOGUE[code].remedy if remedy is None else remedy

    @property
    def name(self) -> str:
        return CATALOGUE[self.code].name

    def failure(self) -> Failure:
        return Failure(self.code, self.message, self.remedy)

    def __str__(self) -> str:
        return f"{self.code} {self.name}: {self.message} ({self.remedy})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.code, self.message, self.remedy)


def _restore(code: int, message: str, remedy: str) -> QedgeError:
    return QedgeError(code, message, remedy=remedy)
