"""`parco ledger …`: what the keeper of a ledger does with it, beside what is released from it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Make and keep ledgers.", rich_markup_mode="markdown")

Ledger = Annotated[str, typer.Option("--ledger", help="The ledger's file, or postgresql://…", show_default=False)]


@app.command(epilog="Example:  `parco ledger sql --role parco | psql postgresql://admin@host/database`")
def sql(
    role: Annotated[str, typer.Option("--role", help="The role that parco will connect as.")] = "parco",
    reader: Annotated[
        str | None, typer.Option("--reader", help="A role that may read all but the data sets' secrets.")
    ] = None,
) -> None:
    """Print the SQL by which an administrator makes a ledger in a PostgreSQL database.

    The role can add entries and delete nothing; it is made without a password, which the administrator gives it.
    """
    from parco.stores.postgres_schema import administrators_sql

    sys.stdout.write(administrators_sql(role, reader=reader))


@app.command(epilog="Example:  `parco ledger tidy --ledger postgresql://parco@host/database --gone laptop-7`")
def tidy(
    ledger: Ledger,
    gone: Annotated[list[str] | None, typer.Option("--gone", help="A host that is gone for good; repeat.")] = None,
) -> None:
    """End the releases that nobody will end: those whose process died, and reservations whose lease is over.

    Every command does so for what stands in its way on this host; another host's releases are left alone, unless that
    host is named as gone. A release that was started is forfeited: its charge stands.
    """
    from parco.stores.address import open_ledger

    ended = open_ledger(ledger).recover(gone=gone or ())
    sys.stdout.write(f"{len(ended)} ended{''.join(f', {number}' for number in ended)}\n")


@app.command(epilog="Example:  `parco ledger journal wal --ledger purchases.ledger`")
def journal(mode: Annotated[str, typer.Argument(help="wal or rollback.", show_default=False)], ledger: Ledger) -> None:
    """Keep a ledger's file with a write-ahead log, or with the rollback journal again, which is the default.

    The log is faster, and refused where this machine's SQLite is known to lose entries with it.
    """
    from parco.errors import RequestError
    from parco.stores.address import is_url, open_ledger
    from parco.stores.sqlite import SqliteStore

    store = None if is_url(ledger) else open_ledger(ledger)
    if not isinstance(store, SqliteStore):
        raise RequestError("PostgreSQL has a log of its own: there is nothing to choose")
    store.choose_journal(mode)
