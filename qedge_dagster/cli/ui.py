"""`qedge ui`."""

from __future__ import annotations

import errno
import socket
from collections.abc import Generator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import click

from qedge_dagster.cli.home import RECORDS, dagster_home
from qedge_dagster.cli.options import common_without_collection
from qedge_dagster.errors import QedgeError

_FIRST_PORT = 3000
_PORTS_TRIED = 100

_EPILOG = """\b
Examples:
  qedge ui --db notes.db
  qedge ui --db notes.db --port 8080
  DAGSTER_HOME=/srv/dagster qedge ui           # what was ingested with this home

Ctrl-C or SIGTERM ends it, with every process that it started. A source that is ingested for the first time while it
runs shows after "Reload" of the code location."""


@click.command(epilog=_EPILOG, short_help="Show runs and documents in Dagster's web UI.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of the web UI.  [default: 3000, or the next one that is free]",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on. The UI asks nobody for a password."
)
@click.option("--verbose", is_flag=True, help="Show the log of Dagster's services instead of keeping it in a file.")
@common_without_collection
@click.pass_context
def command(ctx: click.Context, database: Path, as_json: bool, port: int | None, host: str, verbose: bool) -> None:
    """Start Dagster's web UI and daemon for a database that was ingested, and say the address.

    While it runs, the sensor of each source brings new, changed and removed documents up to date, and the schedule
    reads everything once a night. What it shows is in the Dagster home: $DAGSTER_HOME, or else the folder
    DATABASE.dagster beside the database.
    """
    from qedge_dagster.cli.output import emit, emit_json
    from qedge_dagster.cli.services import running_services

    home = dagster_home(database)
    if find_spec("dagster_webserver") is None:
        raise QedgeError(6013, "the web UI is not installed", remedy="install it with: pip install 'qedge-dagster[ui]'")
    if not any((home / RECORDS).glob("*.yaml")):
        raise QedgeError(
            6002,
            f"{home} holds no run of `qedge ingest`",
            remedy=f"run `qedge ingest PATH --db {database}` first, without --no-dagster",
        )
    port = _free_port(host, port)

    from qedge_dagster.cli.instance import faults_of, open_instance
    from qedge_dagster.collection.connection import Database
    from qedge_dagster.collection.schema import check_file

    # What is wrong with the database and the home is said here, rather than in a log.
    if database.exists():
        with closing(Database(database, read_only=True)) as opened:
            check_file(opened)
    with faults_of(home), open_instance(home):
        pass
    log = None if verbose else home / "ui.log"
    with _alone(home), running_services(home, host, port, log) as services:
        if services.wait_for_answer():
            if as_json:
                emit_json({"url": services.url})
            else:
                where = "" if log is None else f"; the log is {log}"
                emit(f"{services.url} (Ctrl-C ends it{where})")
            services.wait_for_signal()
    ctx.exit(0)


@contextmanager
def _alone(home: Path) -> Generator[None]:
    """Two daemons of one home would launch every run twice. The operating system frees the lock of a process that was
    killed."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(home / "ui.lock", timeout=0):
            yield
    except Timeout:
        raise QedgeError(
            6013, f"another `qedge ui` shows the Dagster home {home}", remedy="use that one, or end it first"
        ) from None


def _free_port(host: str, port: int | None) -> int:
    """`port` if it is free; without one, the first free port from 3000 on."""
    if port is not None:
        if (fault := _fault(host, port)) is not None:
            raise click.UsageError(f"port {port} of {host} cannot be used ({fault}); choose another with --port")
        return port
    for candidate in range(_FIRST_PORT, _FIRST_PORT + _PORTS_TRIED):
        fault = _fault(host, candidate)
        if fault is None:
            return candidate
        if fault.errno != errno.EADDRINUSE:
            raise click.UsageError(f"{host} cannot be used ({fault})")
    raise click.UsageError(f"the ports of {host} from {_FIRST_PORT} on are taken; choose another with --port")


def _fault(host: str, port: int) -> OSError | None:
    """Why nobody can listen there now."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            # As the web server does it: what a closed one left behind is no obstacle.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        return error
    return None
