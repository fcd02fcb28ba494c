"""LlamaIndex, in both directions: its readers as sources of a pipeline, and the sources, extractors, chunkers and
collections of this library as its readers, node parsers, vector stores and retrievers. The extra is `[llamaindex]`."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("llama_index") is None:
    raise ImportError('LlamaIndex is missing: pip install "qedge-dagster[llamaindex]"')

from qedge_dagster.bridges.llamaindex.embedding import QedgeEmbedding
from qedge_dagster.bridges.llamaindex.node_parser import QedgeNodeParser
from qedge_dagster.bridges.llamaindex.reader import QedgeReader
from qedge_dagster.bridges.llamaindex.retriever import QedgeRetriever
from qedge_dagster.bridges.llamaindex.source import ReaderSource
from qedge_dagster.bridges.llamaindex.vector_store import QedgeVectorStore

__all__ = ["QedgeEmbedding", "QedgeNodeParser", "QedgeReader", "QedgeRetriever", "QedgeVectorStore", "ReaderSource"]
