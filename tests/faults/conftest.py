from tests.cli.conftest import docs, ingested, many, model, qedge, template

__all__ = ["docs", "ingested", "many", "model", "qedge", "template"]
