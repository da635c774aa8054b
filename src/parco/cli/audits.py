"""`parco controls` and `parco report`: what an auditor tries on a ledger, and what is handed to a stranger."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from parco.cli.options import GivenLedger, RoundedJsonOption, print_json
from parco.errors import RequestError, StorageError, VerificationError
from parco.measure import significant_text

if TYPE_CHECKING:
    from parco.audit.controls import Control
    from parco.reports.frozen import Frozen

__all__ = ["register"]

_OUT = Console(highlight=False, emoji=False)
_DIGITS, _SHOWN_MAX = 7, 20
_VERDICTS = {True: "bites", False: "DOES NOT BITE", None: "nothing depends on it"}


def register(app: typer.Typer) -> None:
    """Adds both commands."""
    app.command(epilog="Example:  `parco controls --ledger purchases.ledger`")(controls)
    app.command(
        epilog="""Examples:

`parco report --ledger purchases.ledger`

`parco report --ledger purchases.ledger --freeze 2025.report.json`

`parco report --check 2025.report.json --ledger purchases.ledger`
""",
    )(report)


def controls(ledger: GivenLedger, as_json: RoundedJsonOption = False) -> None:
    """Plant faults in the claims of a ledger, in memory, and show that each claim changes as it must.

    Each release is left out, each bound doubled, the neighbours are swapped, the split into parts or periods is
    dropped. Exit code 4 where a claim does not move in the right direction: then it does not depend on what it says.
    Nothing is written, and no data is read.
    """
    from parco.audit.controls import controls as controls_of
    from parco.stores.address import open_ledger

    found = controls_of(open_ledger(ledger))
    if as_json:
        print_json({"controls": [one.record() for one in found]})
    else:
        _OUT.print(_table(found) if found else "Nothing was charged on this ledger: there is no claim to try.")
    failed = [one for one in found if one.bites is False]
    if failed:
        raise VerificationError(
            f"{len(failed)} of {len(found)} controls do not bite, first: {failed[0].fault}, on {failed[0].account}"
        )


def report(
    ledger: Annotated[
        str | None, typer.Option("--ledger", help="The ledger's file, or postgresql://…", show_default=False)
    ] = None,
    freeze: Annotated[Path | None, typer.Option("--freeze", help="Write the report to this new file.")] = None,
    check: Annotated[Path | None, typer.Option("--check", help="Check this frozen report.")] = None,
) -> None:
    """Say what may be claimed of a ledger; freeze it for a stranger to verify, or check what was frozen.

    A frozen report holds the claims, what they follow from, the contracts and the whole history, signed. It is checked
    by itself (also by `parco/audit/offline_life.py`, which needs only Python), and with --ledger also rebuilt from the
    ledger, byte for byte. It holds every question, answer and actor's name: whoever gets it sees them.
    """
    if check is not None and freeze is None:
        _check(check, ledger)
        return
    if ledger is None or check is not None:
        raise RequestError("name the ledger with --ledger; --freeze and --check are two runs")
    from parco.reports.frozen import freeze as freeze_ledger
    from parco.reports.frozen import read
    from parco.stores.address import open_ledger

    data = freeze_ledger(open_ledger(ledger))
    if freeze is None:
        _show(read(data))
        return
    _write_new(freeze, data)
    _OUT.print(Text(f"Frozen in {freeze}: {len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}."))


def _check(path: Path, ledger: str | None) -> None:
    from parco.audit.report import check_report
    from parco.reports.frozen import read
    from parco.stores.address import open_ledger

    try:
        data = path.read_bytes()
    except OSError:
        raise RequestError(f"cannot read {path}") from None
    remarks = check_report(data, store=None if ledger is None else open_ledger(ledger))
    size = read(data).head.size
    rebuilt = "" if ledger is None else ", and the ledger gives the same bytes"
    _OUT.print(Text(f"The report holds: it was frozen at entry {size}, by the key that signed it{rebuilt}."))
    for remark in remarks:
        _OUT.print(Text(remark))


def _show(frozen: Frozen) -> None:
    head = frozen.head
    _OUT.print(Text(f"At entry {head.size}, root {head.root[:16]}…"))
    for one in frozen.record["data"]:
        _OUT.print(Text(f"\n{one['name']}: {', '.join(one['labels'])}"))
        for protected in dict.fromkeys(claim["protected"] for claim in one["claims"]):
            _OUT.print(Text(protected))
            for claim in one["claims"]:
                if claim["protected"] == protected:
                    _OUT.print(Text(f"• {claim['words']} ({claim['accountant']}, {claim['status']})"))
        for caveat in dict.fromkeys(caveat for claim in one["claims"] for caveat in claim["caveats"]):
            _OUT.print(Text(caveat))
        _OUT.print(Text(one["unprotected"]))


def _write_new(path: Path, data: bytes) -> None:
    """A frozen report is never written over: another one gets another name."""
    try:
        with path.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except FileExistsError:
        raise RequestError(f"{path} is there already: give a new report another name") from None
    except OSError:
        raise StorageError(f"cannot write {path}") from None


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
