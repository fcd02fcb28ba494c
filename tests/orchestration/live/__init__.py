"""Webserver, daemon and code server as real processes over a folder of documents."""
