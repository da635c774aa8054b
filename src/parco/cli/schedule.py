"""`parco schedule …`: releases fixed in advance, priced, signed, exported and left; and `parco panel`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from parco.cli import show
from parco.cli.options import DoerOption, GivenLedger, JsonOption, LedgerOption, print_json
from parco.cli.progress import progress_after_a_second
from parco.contract.contract import Contract
from parco.errors import ForfeitedError, QuestionError, RequestError
from parco.measure import COST_UNIT, decimal_text, significant_text
from parco.privacy.claim import Claim
from parco.session import schedules
from parco.session.ask import Ask
from parco.session.prices import Price, price
from parco.session.schedules import ScheduledAsk, accounting, drawn_of, open_charges, sign_schedule
from parco.session.session import Session, default_actor, default_ledger
from parco.session.signing import sign as sign_contract

if TYPE_CHECKING:
    from parco.stores.records import Scheduled

__all__ = ["app", "panel"]

_OUT = Console(highlight=False, emoji=False)
_DIGITS = 7

app = typer.Typer(
    name="schedule",
    help="Fix releases in advance, so that a tight claim holds of them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

ScheduleFile = Annotated[Path, typer.Argument(help="A TOML file of [[step]] tables.", show_default=False)]
DeltaOption = Annotated[str | None, typer.Option("--delta", help="Of the claims [default: the contract's].")]


@app.command(
    epilog="""Examples:

`parco schedule plan contract.toml count --times 104 --error 50`

`parco schedule plan contract.toml mean dollars --by channel --times 12 --cost 0.01 --delta 1e-7 --json`

`parco schedule plan --file weekly.toml`
"""
)
def plan(  # noqa: PLR0913 - each option of the command is a parameter
    contract: Annotated[Path | None, typer.Argument(help="The contract, a TOML file.", show_default=False)] = None,
    statistic: Annotated[str | None, typer.Argument(help="As for `parco release`.", show_default=False)] = None,
    *,
    column: Annotated[str | None, typer.Argument(help="The column it is about.", show_default=False)] = None,
    times: Annotated[int, typer.Option("--times", min=1, help="How often it will be asked.")] = 1,
    by: Annotated[list[str] | None, typer.Option("--by", help="A grouping; repeat for several.")] = None,
    where: Annotated[str | None, typer.Option("--where", help="Only rows that meet this condition.")] = None,
    cost: Annotated[str | None, typer.Option("--cost", help="Of each.")] = None,
    error: Annotated[str | None, typer.Option("--error", help="The half-width of each.")] = None,
    scale: Annotated[str | None, typer.Option("--scale", help="Of the noise of each.")] = None,
    confidence: Annotated[str | None, typer.Option("--confidence", help="Of the intervals [default: 0.95].")] = None,
    part: Annotated[str | None, typer.Option("--part", help="A declared part of the units; it alone pays.")] = None,
    delta: DeltaOption = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Instead: a file of steps, as it would be signed.")
    ] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Price a schedule: its cost in the account, what would be left, and what could be claimed. Nothing is signed.

    Without a ledger the contract's whole budget is there to spend.
    """
    from parco.cli.schedule_files import read_schedule

    if (file is None) == (contract is None):
        raise QuestionError("name a contract and a statistic, or with --file a file of steps: one of them")
    if file is not None:
        read = read_schedule(file)
        agreed, asks, name = Contract.read(read.contract), read.asks, read.name
    elif contract is not None and statistic is not None:
        ask = Ask(
            statistic,
            column,
            by=by or (),
            where=where,
            cost=cost,
            error=error,
            confidence=confidence,
            part=part,
        )
        agreed, name = Contract.read(contract), "this schedule"
        asks = (ScheduledAsk(ask, tuple(f"{number}" for number in range(1, times + 1)), scale),)
    else:
        raise QuestionError("name a statistic, such as count")
    with progress_after_a_second(), _session(agreed, ledger) as session:
        found = price(session, asks, name=name, delta=delta)
    if as_json:
        print_json(found.record())
    else:
        _show_price(found)


@app.command(epilog="Example:  `parco schedule sign weekly.toml --ledger purchases.ledger --actor ana`")
def sign(
    schedule: ScheduleFile, ledger: LedgerOption = None, actor: DoerOption = None, as_json: JsonOption = False
) -> None:
    """Sign a schedule: one entry that sets its whole charge aside. Its releases are then drawn from it.

    Sign it before the first release of the data set: only then does the tight claim hold. Signing the same again
    changes nothing; a schedule never changes.
    """
    from parco.cli.schedule_files import read_schedule

    read = read_schedule(schedule)
    with Session(Contract.read(read.contract), ledger=ledger, actor=actor) as session:
        scheduled = sign_schedule(session, read.name, read.asks)
        found = session.standing()
    _tell(scheduled, as_json=as_json)
    if not as_json and (found is None or scheduled.name not in [one.name for one in found.schedules]):
        _OUT.print("Something was released before it was signed: no tight claim holds of it, the cap's claim does.")


@app.command(epilog='Example:  `parco schedule leave weekly --ledger purchases.ledger --reason "the survey ends"`')
def leave(
    name: Annotated[str, typer.Argument(help="The schedule's name.", show_default=False)],
    *,
    ledger: GivenLedger,
    reason: Annotated[str, typer.Option("--reason", help="Why: it stands in the ledger's history.")],
    actor: DoerOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a schedule and give back what its open steps had set aside. Nothing more is drawn from it.

    The claim stays that of the whole schedule as signed: leaving makes it no smaller. It ends with the first release
    outside of the schedule.
    """
    from parco.stores.address import open_ledger

    left = schedules.leave(open_ledger(ledger), name, actor=actor or default_actor(), reason=reason)
    _tell(left, as_json=as_json)


@app.command(epilog="Example:  `parco schedule export purchases.ledger | parco account - --delta 1e-6`")
def export(
    ledger: Annotated[str, typer.Argument(help="The ledger's file, or postgresql://…", show_default=False)],
    name: Annotated[list[str] | None, typer.Option("--name", help="A schedule; repeat. [default: all of them]")] = None,
    account: Annotated[str | None, typer.Option("--account", help="The label of one of several accounts.")] = None,
) -> None:
    """Print the accounting form of signed schedules, for `parco account`: both give the same figures.

    Every step counts, drawn or not.
    """
    from parco.stores.address import open_ledger

    store = open_ledger(ledger)
    found = store.schedules() if not name else [store.schedule(one) for one in name]
    if not found:
        raise RequestError("no schedule was signed on this ledger")
    if len({one.dataset for one in found}) > 1:
        raise RequestError(
            "these schedules are on several data sets, whose losses are not added up: name one with --name"
        )
    steps = [(step.facts, 1) for one in found for step in one.steps]
    charged = sorted({charge.account for facts, _ in steps for charge in facts.charges})
    labels = {row.label: row.account for row in store.accounts() if row.account in charged}
    if len(labels) > 1 and account is None:
        raise RequestError(f"these schedules charge several accounts: name one with --account, of {', '.join(labels)}")
    if account is not None and account not in labels:
        raise RequestError(f"these schedules charge no account {account!r}, but {', '.join(labels)}")
    number = labels[account] if account is not None else charged[0]
    sys.stdout.write(accounting(steps, account=number).text())


def panel(
    file: Annotated[Path, typer.Argument(help="A TOML file of [[ask]] tables.", show_default=False)],
    period: Annotated[str, typer.Option("--period", help="The label of the data's version, such as 2025-W07.")],
    *,
    data: Annotated[
        Path | None, typer.Option("--data", help="[default: the panel's, or the contract's source]")
    ] = None,
    ledger: LedgerOption = None,
    actor: DoerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Release a panel's questions for one period, each paid once however often this is run. Fit for cron.

    What was answered before is served for nothing and without the data. A question that failed behind its charge stays
    without an answer: the exit code is then 70, and the panel does not pay again.
    """
    from parco.cli.schedule_files import read_panel
    from parco.session.panel import run_panel

    read = read_panel(file)
    with (
        progress_after_a_second() as progress,
        Session(
            Contract.read(read.contract),
            data=data or read.data_of(period),
            ledger=ledger or read.ledger,
            actor=actor,
            version=period,
            schedule=read.schedule,
            progress=progress,
        ) as session,
    ):
        told = run_panel(session, read.name, read.asks)
    forfeited = [one for one in told if one.release is None]
    if as_json:
        cost = decimal_text(sum((one.cost.value for one in told), Fraction(0)))
        head = {"panel": read.name, "period": period, "schedule": read.schedule, "cost": cost}
        print_json({**head, "questions": [one.record() for one in told]})
    for one in () if as_json else told:
        words = {
            "released": f"released now, charged {one.cost}",
            "stored": "already there, charged nothing",
            "forfeited": "failed behind its charge before: the charge stands, without an answer, and is not made again",
        }
        _OUT.print(show.plain(f"{read.name} {period}: {one.question}: {words[one.state]}"))
        if one.release is not None:
            _OUT.print(show.answer_table(one.release.value))
    if forfeited:
        raise typer.Exit(ForfeitedError.exit_code)


@contextmanager
def _session(contract: Contract, ledger: str | None) -> Iterator[Session]:
    """A session on the ledger; where there is none yet, on one that is thrown away, with the whole budget to spend."""
    if ledger is not None or default_ledger(contract).exists():
        with Session(contract, ledger=ledger) as session:
            yield session
        return
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch.ledger"
        sign_contract(contract, ledger=scratch)
        with Session(contract, ledger=scratch) as session:
            yield session


def _show_price(found: Price) -> None:
    for one, times in found.plans:
        _OUT.print(show.plain(f"{times:,} times {one.query}: {one.cost} of {found.measure} each, {one.accuracy}"))
    left = f"leaves {decimal_text(found.remaining)}"
    if not found.fits:
        left = f"does not fit: {decimal_text(found.remaining + found.cost)} is left"
    _OUT.print(show.plain(f"In all {decimal_text(found.cost)} of {found.measure}; {left}."))
    _OUT.print(show.plain(f"Whatever is released (the account's cap): {_figure(found.filter)}"))
    _OUT.print(show.plain(f"With this much as the cap:                {_figure(found.filter_alone)}"))
    _OUT.print(show.plain(f"Signed first, and nothing outside of it:  {_figure(found.tight)}"))


def _figure(claim: Claim) -> str:
    epsilon = significant_text(claim.epsilon, _DIGITS, up=True)
    return f"epsilon {epsilon} at delta {significant_text(claim.delta, _DIGITS, up=True)} ({claim.status})"


def _tell(scheduled: Scheduled, *, as_json: bool) -> None:
    record = show.schedule_record(scheduled)
    if as_json:
        print_json(record)
        return
    kept = ", ".join(f"{decimal_text(charge.cost * COST_UNIT)}" for charge in open_charges(scheduled)) or "nothing"
    state = "left" if scheduled.ended is not None else "in force"
    _OUT.print(
        show.plain(
            f"Schedule {scheduled.name}, entry {scheduled.position}, {state}: {drawn_of(scheduled)} of"
            f" {len(scheduled.steps)} steps drawn; {kept} is set aside for the rest."
        )
    )
