"""`parco quota`: who shares how much of a budget, and how much of it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from parco.cli import show
from parco.cli.options import print_json
from parco.errors import RequestError
from parco.measure import COST_UNIT, decimal_text

if TYPE_CHECKING:
    from parco.stores.records import QuotaRow

__all__ = ["quota_records", "quota_table", "register"]

_OUT = Console(highlight=False, emoji=False)

_NOTE = (
    "Quotas are a matter of fairness, not of privacy: names can be invented, and the account alone is the guarantee."
)


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command(
        epilog="""Examples:

`parco quota team --ledger purchases.ledger --member ana --member bob --amount 0.3 --reason "two of five analysts"`

`parco quota team --ledger purchases.ledger --lift --reason "the project ended"`

`parco quota --list --ledger purchases.ledger --json`
"""
    )(quota)


def quota(  # noqa: PLR0913 - each option of the command is a parameter
    name: Annotated[str | None, typer.Argument(help="The quota's name.", show_default=False)] = None,
    *,
    ledger: Annotated[str, typer.Option("--ledger", help="The ledger's file, or postgresql://…", show_default=False)],
    member: Annotated[list[str] | None, typer.Option("--member", help="An actor; repeat for several.")] = None,
    amount: Annotated[str | None, typer.Option("--amount", help="The most they may take, together.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why: it stands in the ledger's history.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Where several data sets are on the ledger.")] = None,
    actor: Annotated[str | None, typer.Option("--actor", help="Who says so [default: the login name].")] = None,
    lift: Annotated[bool, typer.Option("--lift", help="End the quota of this name.")] = False,
    show_all: Annotated[bool, typer.Option("--list", help="Show the quotas in force.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; numbers are exact decimal text.")] = False,
) -> None:
    """Limit what one analyst, or several who may collude, can take of a data set's budget.

    In the account's measure, on each of its accounts; what they asked before counts, and of several quotas all must
    have room. A quota of the same name is replaced. It is fairness, not privacy: names can be invented, and the account
    alone is the guarantee.
    """
    from parco.session.governance import lift_quota, quotas, set_quota

    options = (member, amount, reason, dataset)
    if show_all:
        if name is not None or lift or any(options):
            raise RequestError("--list takes nothing but --ledger and --json")
    elif name is None:
        raise RequestError("name the quota, or show those in force with --list")
    elif reason is None:
        raise RequestError("say why with --reason: it stands in the ledger's history")
    elif lift:
        if member or amount is not None or dataset is not None:
            raise RequestError("--lift ends the quota whole: leave out --member, --amount and --dataset")
        lift_quota(name, reason=reason, ledger=ledger, actor=actor)
    else:
        if not member or amount is None:
            raise RequestError("a quota needs at least one --member, and an --amount")
        set_quota(name, members=member, amount=amount, reason=reason, ledger=ledger, dataset=dataset, actor=actor)
    found = [row for row in quotas(ledger) if show_all or row.name == name]
    if as_json:
        print_json({"quotas": quota_records(found), "note": _NOTE})
        return
    if found:
        _OUT.print(quota_table(found))
    else:
        _OUT.print("No quota is in force." if show_all else "The quota is lifted.")
    _OUT.print(_NOTE)


def quota_records(rows: Sequence[QuotaRow]) -> list[dict[str, object]]:
    """Quotas as `--json` prints them: exact decimal text."""
    amounts = ("amount", "used", "remaining")
    return [
        {
            "quota": row.name,
            "members": list(row.members),
            "account": row.account,
            "measure": str(row.measure),
            **{name: decimal_text(getattr(row, name) * COST_UNIT) for name in amounts},
        }
        for row in rows
    ]


def quota_table(rows: Sequence[QuotaRow]) -> Table:
    """Quotas, one line for each account that they limit."""
    table = Table()
    for name in ("quota", "members", "account", "amount", "used", "remaining"):
        table.add_column(name, overflow="fold", justify="right" if name in ("amount", "used", "remaining") else "left")
    for record in quota_records(rows):
        members = record["members"]
        cells = {**record, "members": ", ".join(members if isinstance(members, list) else [])}
        table.add_row(*(show.plain(cells[str(column.header)]) for column in table.columns))
    return table
