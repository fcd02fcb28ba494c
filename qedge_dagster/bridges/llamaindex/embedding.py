"""An embedder of this library as LlamaIndex's embedding model."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from qedge_dagster.embedding import default_embedder
from qedge_dagster.embedding.base import Embedder

__all__ = ["QedgeEmbedding"]


class QedgeEmbedding(BaseEmbedding):
    """`embedder` is by default that of the extra `[onnx]`. Prefixes of its profile are applied."""

    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder | None = None, *, embed_batch_size: int = 32) -> None:
        embedder = embedder or default_embedder()
        super().__init__(model_name=embedder.profile.id, embed_batch_size=embed_batch_size)
        self._embedder = embedder

    @classmethod
    def class_name(cls) -> str:
        return "QedgeEmbedding"

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._embedder.load()
        return self._embedder.embed_documents(texts).vectors.tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        self._embedder.load()
        return self._embedder.embed_query(query).tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)
