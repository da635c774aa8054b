"""`parco show`, and the commands that correct a ledger: `amend`, `supersede`, `recost`, `flag`, `close`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from parco.cli import show as shown
from parco.cli.options import DoerOption, JsonOption, ReasonOption, print_json
from parco.measure import COST_UNIT, DELTA_UNIT, decimal_text
from parco.session.correcting import Ledger

if TYPE_CHECKING:
    from parco.stores.records import Correction, Recosted

__all__ = ["register"]

_OUT = Console(highlight=False, emoji=False)
_LISTED_MAX = 20

LedgerPlace = Annotated[str, typer.Argument(help="The ledger's file, or postgresql://…", show_default=False)]
EntryNumber = Annotated[
    int, typer.Argument(help="A release or act, by its entry as `parco history` shows it.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Adds all six commands."""
    app.command(epilog="Example:  `parco show purchases.ledger 2`")(show)
    app.command(
        epilog="""Examples:

`parco amend purchases.ledger 2 title "Purchases by month" --reason "for the report"`

`parco amend purchases.ledger 2 question --erase --reason "it named a customer, who asked for it"`
"""
    )(amend)
    app.command(
        epilog="""Examples:

`parco supersede purchases.ledger 2 --by 5 --reason "the bounds of entry 2 were in cents"`

`parco supersede purchases.ledger 2 --withdraw --reason "the file was another shop's"`

`parco supersede purchases.ledger 2 --by 2 --reason "it was right: it stands again"`
"""
    )(supersede)
    app.command(
        epilog="""Examples:

`parco recost purchases.ledger --mechanism gaussian --factor 4 --dry-run`

`parco recost purchases.ledger --mechanism two-sided-geometric --factor 4 --reason "advisory 7"`

`parco recost purchases.ledger --mechanism gaussian --cost 0.3 --only 2 --reason "audit of May"`

`parco recost purchases.ledger --mechanism gaussian --factor 2 --corrects 40 --reason "advisory 7, revised"`
"""
    )(recost)
    app.command(epilog='Example:  `parco flag purchases.ledger 2 --reason "March lacks one shop"`')(flag)
    app.command(epilog='Example:  `parco close purchases.ledger --reason "the table was deleted"`')(close)


def show(ledger: LedgerPlace, entry: EntryNumber, *, as_json: JsonOption = False) -> None:
    """Show a release or act as it is stored, and all that corrects it: by what, by whom and why.

    The answer's bytes are checked against the digest that was settled, and printed as they are.
    """
    with Ledger(ledger) as keeper:
        found = keeper.show(entry)
        (record,) = shown.history_records([found.row], {})
        told: dict[str, object] = {"release" if found.row.mechanism else "act": record}
        if found.answer is not None:
            told["answer"] = found.answer.answer.decode()
    if as_json:
        print_json(told)
        return
    _OUT.print(shown.history_table([record]))
    if found.answer is not None:
        _OUT.print(shown.plain(f"answer  {told['answer']}"), soft_wrap=True)
    _show_corrections(found.row.corrections)


def amend(
    ledger: LedgerPlace,
    entry: EntryNumber,
    field: Annotated[
        str, typer.Argument(help="actor, key, question or reason; or a title or note.", show_default=False)
    ],
    text: Annotated[str | None, typer.Argument(help="How it reads from here on.", show_default=False)] = None,
    *,
    reason: ReasonOption,
    erase: Annotated[bool, typer.Option("--erase", help="Remove the text for good, wherever it was given.")] = False,
    actor: DoerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how a text of an entry is to be read, or erase it: its digest stands, and every proof with it."""
    with Ledger(ledger, actor=actor) as keeper:
        position = keeper.amend(entry, field, text, reason=reason, erase=erase)
    _done(position, f"the {field} of entry {entry} {'is erased' if erase else 'was amended'}", as_json=as_json)


def supersede(
    ledger: LedgerPlace,
    release: EntryNumber,
    *,
    reason: ReasonOption,
    by: Annotated[int | None, typer.Option("--by", help="The release that stands instead; itself to restore.")] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Nothing stands instead.")] = False,
    actor: DoerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace an answer by another release, withdraw it, or let it stand again.

    It can still be shown; asking its question again is told that it was superseded, and costs nothing.
    """
    with Ledger(ledger, actor=actor) as keeper:
        position = keeper.supersede(release, by, reason=reason, withdraw=withdraw)
    told = "is withdrawn" if withdraw else "stands again" if by == release else f"is superseded by release {by}"
    _done(position, f"release {release} {told}", as_json=as_json)


def recost(  # noqa: PLR0913 - each option of the command is a parameter
    ledger: LedgerPlace,
    *,
    mechanism: Annotated[str, typer.Option("--mechanism", help="gaussian, two-sided-geometric or exponential.")],
    reason: Annotated[str, typer.Option("--reason", help="Why: it stands in the ledger's history.")] = "",
    factor: Annotated[str | None, typer.Option("--factor", help="So many times the recorded cost.")] = None,
    cost: Annotated[str | None, typer.Option("--cost", help="What each release costs in all.")] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="What each takes of the delta in all.")] = None,
    only: Annotated[list[int] | None, typer.Option("--only", help="This release; repeat for several.")] = None,
    corrects: Annotated[int | None, typer.Option("--corrects", help="An earlier recost that was too much.")] = None,
    actor: DoerOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what it would charge; charge nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Charge every release of a mechanism that was under-charged what it costs in all, and list them.

    What the budget does not hold shows as overdrawn: such an account takes no more spending. Claims count the new cost.
    """
    with Ledger(ledger, actor=actor) as keeper:
        done = keeper.recost(
            mechanism,
            reason=reason,
            factor=factor,
            cost=cost,
            delta=delta,
            only=only or None,
            corrects=corrects,
            dry_run=dry_run,
        )
        titles = {row.account: row.title for row in keeper.accounts()}
        overdrawn = [row.title for row in keeper.accounts() if row.remaining < 0 or row.delta_remaining < 0]
    if as_json:
        print_json(_recost_record(done, titles, overdrawn))
        return
    _show_recost(done, titles)
    if done.position is not None:
        _done(done.position, f"{len({one.request for one in done.releases})} releases were charged", as_json=False)
    if overdrawn:
        _OUT.print(shown.plain(f"Overdrawn, no more spending on: {', '.join(overdrawn)}."))


def flag(
    ledger: LedgerPlace,
    entry: EntryNumber,
    *,
    reason: Annotated[str, typer.Option("--reason", help="The remark.")],
    actor: DoerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a remark on a release, an act or a correction; it stands beside it wherever that is shown."""
    with Ledger(ledger, actor=actor) as keeper:
        position = keeper.flag(entry, reason=reason)
    _done(position, f"entry {entry} is flagged", as_json=as_json)


def close(
    ledger: LedgerPlace,
    *,
    reason: ReasonOption,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Where the ledger has several.")] = None,
    actor: DoerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Close a data set's accounts: their caps fall to what is spent or reserved, and nothing more is released.

    Releases, answers and receipts stay; what is stored is still free. Schedules are left. `parco cap` opens it again.
    """
    with Ledger(ledger, actor=actor) as keeper:
        done = keeper.close_account(dataset, reason=reason)
    if as_json:
        caps = {str(one.account): decimal_text(one.cap * COST_UNIT) for one in done.caps}
        print_json(
            {"entry": done.position, "caps": caps, "given_back": list(done.queued), "schedules_left": list(done.left)}
        )
        return
    _done(done.position, f"{len(done.caps)} accounts are closed", as_json=False)


def _recost_record(done: Recosted, titles: dict[int, str], overdrawn: Sequence[str]) -> dict[str, object]:
    return {
        "entry": done.position,
        "releases": [
            {
                "release": one.request,
                "account": titles[one.account],
                **{name: _cost(getattr(one, name)[0]) for name in ("charged", "before", "total")},
                **({"delta": _delta(one.total[1])} if one.total[1] else {}),
            }
            for one in done.releases
        ],
        "added": [
            {"account": titles[one.account], "cost": _cost(one.cost), "delta": _delta(one.delta)} for one in done.added
        ],
        "overdrawn": list(overdrawn),
        "given_back": list(done.queued),
    }


def _show_recost(done: Recosted, titles: dict[int, str]) -> None:
    table = Table(box=SIMPLE, pad_edge=False)
    for name in ("release", "account", "charged", "before", "in all"):
        table.add_column(name, justify="left" if name == "account" else "right", overflow="fold")
    for one in done.releases[:_LISTED_MAX]:
        amounts = (_cost(pair[0]) for pair in (one.charged, one.before, one.total))
        table.add_row(str(one.request), shown.plain(titles[one.account]), *amounts)
    _OUT.print(table)
    if len(done.releases) > _LISTED_MAX:
        _OUT.print(f"and {len(done.releases) - _LISTED_MAX} more: --json lists them all")
    for sum_ in done.added:
        _OUT.print(shown.plain(f"Added to {titles[sum_.account]}: {_cost(sum_.cost)}"))


def _show_corrections(corrections: Sequence[Correction], depth: int = 0) -> None:
    for one in corrections:
        _OUT.print(shown.plain(f"{'  ' * depth}• {one.in_words()}"), soft_wrap=True)
        _show_corrections(one.corrections, depth + 1)


def _done(position: int, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"entry": position})
        return
    _OUT.print(shown.plain(f"Entry {position}: {what}."))


def _cost(units: int) -> str:
    return decimal_text(units * COST_UNIT)


def _delta(units: int) -> str:
    return decimal_text(units * DELTA_UNIT)
