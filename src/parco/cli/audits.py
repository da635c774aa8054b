"""`parco controls`: what an auditor runs over a ledger, beside `parco ledger verify`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from parco.errors import VerificationError
from parco.measure import significant_text

if TYPE_CHECKING:
    from parco.audit.controls import Control

__all__ = ["register"]

_OUT = Console(highlight=False, emoji=False)
_DIGITS, _SHOWN_MAX = 7, 20
_VERDICTS = {True: "bites", False: "DOES NOT BITE", None: "nothing depends on it"}

GivenLedger = Annotated[str, typer.Option("--ledger", help="The ledger's file, or postgresql://…", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; numbers are decimal text.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(epilog="Example:  `parco controls --ledger purchases.ledger`")(controls)


def controls(ledger: GivenLedger, as_json: JsonOption = False) -> None:
    """Plant faults in the claims of a ledger, in memory, and show that each claim changes as it must.

    Each release is left out, each bound doubled, the neighbours are swapped, the split into parts or periods is
    dropped. Exit code 4 where a claim does not move in the right direction: then it does not depend on what it says.
    Nothing is written, and no data is read.
    """
    from parco.audit.controls import controls as controls_of
    from parco.stores.address import open_ledger

    found = controls_of(open_ledger(ledger))
    if as_json:
        sys.stdout.write(json.dumps({"controls": [one.record() for one in found]}, indent=2) + "\n")
    else:
        _OUT.print(_table(found) if found else "Nothing was charged on this ledger: there is no claim to try.")
    failed = [one for one in found if one.bites is False]
    if failed:
        raise VerificationError(
            f"{len(failed)} of {len(found)} controls do not bite, first: {failed[0].fault}, on {failed[0].account}"
        )


def _table(found: Sequence[Control]) -> Table:
    """One line a control; of many releases left out on one account, those that bite are shown up to a few."""
    table = Table(box=SIMPLE, pad_edge=False, caption=_counts(found), caption_justify="left")
    for name in ("account", "fault", "claimed", "with the fault", "must be", ""):
        table.add_column(name, justify="right" if name in ("claimed", "with the fault") else "left", overflow="fold")
    left_out: dict[str, int] = {}
    for one in found:
        if one.expected == "lower" and one.fault.endswith("left out"):
            left_out[one.account] = left_out.get(one.account, 0) + 1
            if left_out[one.account] > _SHOWN_MAX and one.bites:
                continue
        cells = (one.account, one.fault, _epsilon(one.before), _epsilon(one.after), one.expected, _VERDICTS[one.bites])
        table.add_row(*map(Text, cells))
    for account, count in left_out.items():
        if count > _SHOWN_MAX:
            table.add_row(Text(account), Text(f"… and {count - _SHOWN_MAX} more left out"))
    return table


def _epsilon(value: Fraction | None) -> str:
    return "-" if value is None else significant_text(value, _DIGITS, up=True)


def _counts(found: Sequence[Control]) -> str:
    bite, idle = sum(one.bites is True for one in found), sum(one.bites is None for one in found)
    told = f"{bite} of {len(found)} controls bite"
    return f"{told}; nothing depends on {idle} of them." if idle else f"{told}."
