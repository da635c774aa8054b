"""PostgreSQL's connections, to a ledger of this format, on a server that keeps what it acknowledges."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, NullPool, create_engine, event

from parco.errors import LedgerFormatError, RequestError, StorageError
from parco.stores.postgres_cursor import LedgerConnection, ServerCursor
from parco.stores.postgres_schema import SCHEMA, WRITING
from parco.stores.statements import foreseen
from parco.stores.upgrade import VERSION

__all__ = ["BEGIN_READ", "Target", "begin_repeat", "begin_write", "identity_of", "may_read_secrets", "opener", "target"]

BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_VERSION_MIN = 130_000
_CONNECT_SECONDS = 10
_KEEPALIVE_SECONDS = 60

# What has to hold for an acknowledged commit to survive a crash, and the advice where it does not. `data_sync_retry`
# would take a failed sync for a passing one. Of `synchronous_commit`, every value but `off` waits for the local disk.
_SAFE: dict[str, Callable[[str], bool]] = {
    "fsync": lambda value: value == "on",
    "full_page_writes": lambda value: value == "on",
    "synchronous_commit": lambda value: value != "off",
    "data_sync_retry": lambda value: value == "off",
}
_SETTINGS = ", ".join(f"current_setting('{name}')" for name in _SAFE)


@dataclass(frozen=True)
class Target:
    """Where a ledger's database is: what to connect with, and how to name it without a password."""

    arguments: dict[str, Any]
    name: str


def target(url: str) -> Target:
    """For every libpq URL, where it leads; RequestError for one that libpq cannot read."""
    try:
        arguments = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise RequestError("the ledger's address is not a URL like postgresql://role@host/database") from None
    host, port = arguments.get("host", ""), arguments.get("port")
    name = f"postgresql://{host}{f':{port}' if port else ''}/{arguments.get('dbname', '')}"
    own = {
        # No statement here is long enough to be worth compiling, and a false estimate would have it compiled each time.
        "options": f"{arguments.get('options', '')} -c search_path={SCHEMA} -c jit=off".strip(),
        "client_encoding": "utf8",
        "application_name": arguments.get("application_name", "parco"),
        "connect_timeout": arguments.get("connect_timeout", _CONNECT_SECONDS),
        "keepalives_idle": arguments.get("keepalives_idle", _KEEPALIVE_SECONDS),
    }
    return Target(arguments | own, name)


def opener(where: Target) -> Callable[[], Connection]:
    """A function that opens connections whose transactions begin as their option `begin` says, and by nothing else."""

    def open_connection() -> Connection:
        _OPENED.target = where
        return _engine().connect().execution_options(ledger=where.name, cursor=_server_cursor)

    return open_connection


# What the one engine of this process is to open next, a thread each.
_OPENED = threading.local()


def _server_cursor(driver: LedgerConnection) -> ServerCursor:
    return driver.server


@cache
def _engine() -> Engine:
    """One for all ledgers: what it has once compiled, it knows for each of them, and for the children of a fork.

    It keeps no connection.
    """
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: _connect(_OPENED.target),
        poolclass=NullPool,
        hide_parameters=True,
        use_native_hstore=False,
    )

    # autocommit is on in the driver, so that it begins nothing by itself.
    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        driver: Any = connection.connection.driver_connection
        settings = driver.server.begin(options["begin"], foreseen(connection))
        if settings:
            _check_safe(settings, options["ledger"])

    return engine


def begin_write(busy_seconds: float) -> str:
    """How a writer begins: it takes its turn before it sees anything, so that it sees all that came before."""
    return (
        f"BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL lock_timeout = {max(1, round(busy_seconds * 1000))};"
        f" LOCK TABLE {WRITING} IN EXCLUSIVE MODE; SELECT {_SETTINGS}"
    )


def begin_repeat(request: int) -> str:
    """All of a transaction that counts a repeat: it waits for no disk, and is over when its beginning is answered."""
    return f"BEGIN; SET LOCAL synchronous_commit = off; INSERT INTO repeats VALUES ({int(request)}); COMMIT"  # noqa: S608


def identity_of(connection: Connection) -> object:
    """The identity the ledger was made with; LedgerFormatError for another version of its tables."""
    row = connection.exec_driver_sql("SELECT version, identity FROM ledger").one()
    # The first version that a database could hold is this one: there is no older one to upgrade from.
    if row.version != VERSION:
        raise LedgerFormatError(
            f"the ledger has version {row.version} of its tables, and this parco reads version {VERSION}: use the parco"
            " that made it, or a newer one",
            found=row.version,
            supported=VERSION,
        )
    return row.identity


def may_read_secrets(connection: Connection) -> bool:
    """Whether the role may read the data sets' secrets and the private signing key: a reader's may not."""
    asked = "SELECT has_table_privilege('secrets', 'SELECT') AND has_column_privilege('keys', 'private', 'SELECT')"
    return bool(connection.exec_driver_sql(asked).scalar())


def _connect(where: Target) -> LedgerConnection:
    # psycopg prepares nothing by itself: with a rollback, it would have the server forget what `server` prepared.
    connection = LedgerConnection.connect(**where.arguments, autocommit=True, prepare_threshold=None)
    try:
        if connection.info.server_version < _VERSION_MIN:
            raise StorageError(f"{where.name} is older than PostgreSQL 13: it cannot hold a ledger")
        row = connection.execute(f"SELECT current_setting('server_encoding'), {_SETTINGS}").fetchone()
        encoding, *settings = row or ("",)
        if encoding != "UTF8":
            raise StorageError(f"{where.name} has the encoding {encoding}: a ledger needs a database in UTF8")
        _check_safe(settings, where.name)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_safe(values: Any, name: str) -> None:  # noqa: ANN401 - a row of the driver
    """Raises StorageError where an acknowledged commit might not survive a crash."""
    unsafe = [
        f"{setting} = {value}" for (setting, safe), value in zip(_SAFE.items(), values, strict=True) if not safe(value)
    ]
    if unsafe:
        raise StorageError(
            f"{name} could lose entries it has acknowledged: the server, database or role has {', '.join(unsafe)}; an"
            " administrator sets that back"
        )
