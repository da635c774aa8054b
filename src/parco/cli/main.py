"""`parco`: every command, its options and examples; errors become one line and an exit code."""

from __future__ import annotations

import io
import sys
import warnings
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from parco.cli import accounting, audits, correcting, governance, schedule, show
from parco.cli.ledger import app as ledger_app
from parco.cli.options import GivenLedger, JsonOption, LedgerOption, ReasonOption, print_json
from parco.cli.progress import progress_after_a_second
from parco.cli.until import release_within, show_until
from parco.contract.contract import Contract
from parco.errors import InternalError, ParcoError, QuestionError
from parco.session.ask import Ask
from parco.session.lifetime import lifetime_of
from parco.session.questions import JOINT, How, Questions
from parco.session.session import Session

if TYPE_CHECKING:
    from parco.stores.records import AccountRow
    from parco.stores.store import Store

__all__ = ["app", "run"]

app = typer.Typer(
    name="parco",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)

app.add_typer(ledger_app)
app.add_typer(schedule.app)

R = TypeVar("R")
M = TypeVar("M")
V = TypeVar("V")
Q = TypeVar("Q")
B = TypeVar("B")

_STATISTICS = (
    "count, count_units, sum, sum_squares, count_distinct, histogram, top, select_keys, mean, variance, quantile or"
    " suggest_bounds."
)

_OUT = Console(highlight=False, emoji=False)

ContractPath = Annotated[Path, typer.Argument(help="The contract, a TOML file.", show_default=False)]
ActorOption = Annotated[str | None, typer.Option("--actor", help="Who asks [default: the login name].")]


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"parco {version('parco')}\n")
        raise typer.Exit


@app.callback()
def parco(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Publish statistics about people, again and again, under one privacy contract, and always show what it cost."""


@app.command(
    epilog="Example:  `parco init purchases.csv --unit customer > contract.toml`",
)
def init(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.", show_default=False)],
    unit: Annotated[str, typer.Option("--unit", help="The column that says whose row it is.")],
    delimiter: Annotated[str, typer.Option("--delimiter", help="Of a CSV file: , ; | or tab.")] = ",",
    encoding: Annotated[str, typer.Option("--encoding", help="Of a CSV file: utf-8, latin-1 or utf-16.")] = "utf-8",
) -> None:
    """Write a first contract for a file: names, and types where its schema states them; blanks say FILL IN.

    Only names and types are read, never a value.
    """
    from parco.cli.init import dialect_of, first_contract

    sys.stdout.write(first_contract(data, unit, dialect_of(delimiter, encoding)))


@app.command(epilog="Example:  `parco check contract.toml`")
def check(
    contract: ContractPath,
    data: Annotated[Path | None, typer.Option("--data", help="Also check the names and types of this file.")] = None,
) -> None:
    """Check a contract: list its blanks and faults, say what it promises, what it takes and what questions would cost.

    From the contract alone; with data at hand, its names and types are checked too. Costs nothing, reads no values.
    """
    from parco.engines.data import read_data
    from parco.engines.source import check as check_source

    agreed = Contract.read(contract)
    _OUT.print(show.contract_table(agreed))
    show.show_consequences(_OUT, agreed)
    source = data if data is not None else agreed.source_path
    if data is not None or (source is not None and source.exists()):
        check_source(agreed, read_data(source, agreed, agreed.names), agreed.names)
        _OUT.print(show.plain(f"The names and types of {source} fit the contract."))
    else:
        _OUT.print("No data file was checked: the contract names none, or it is not here.")


@app.command(epilog="Example:  `parco schema > parco-contract.schema.json`")
def schema() -> None:
    """Print the JSON Schema of contracts, for editors that complete and check TOML."""
    print_json(Contract.model_json_schema(by_alias=True))


@app.command(epilog="Example:  `parco sign contract.toml --ledger purchases.ledger --actor ana`")
def sign(
    contract: ContractPath,
    ledger: LedgerOption = None,
    actor: ActorOption = None,
    disjoint: Annotated[
        str | None, typer.Option("--disjoint", help="Beside other data sets: why it shares no row with them.")
    ] = None,
) -> None:
    """Sign a contract: the ledger's first entry, with its account and cap, and the data set's secret.

    Signing the same contract again changes nothing. A data set that is made of rows of others on the ledger names them
    in derived_from under [data], and its releases charge their accounts, too; for one that is not, say so with
    --disjoint and the reason, which stands in the history. parco never compares data to find out.
    """
    from parco.session.session import default_ledger
    from parco.session.signing import sign as sign_contract
    from parco.stores.address import is_url

    agreed = Contract.read(contract)
    address = default_ledger(agreed) if ledger is None else ledger
    signed = sign_contract(agreed, ledger=address, actor=actor, disjoint=disjoint)
    _OUT.print(show.contract_table(agreed))
    if is_url(address):
        place, keep = "that database", "Keep backups of that database"
    else:
        place, keep = str(address), "Keep this file"
    _OUT.print(show.plain(f"Signed on {place}, entry {signed.position}. {keep}: it holds the budget and a secret."))


@app.command(epilog='Example:  `parco revise contract.toml --ledger purchases.ledger --reason "a column more"`')
def revise(
    contract: ContractPath, reason: ReasonOption, ledger: LedgerOption = None, actor: ActorOption = None
) -> None:
    """Make a changed contract the new version of the signed one: accounts, caps and answers stay.

    Unit, neighbours, measure, deltas, receipt order and parts cannot change; the budget's amount changes by `cap`.
    """
    from parco.session.signing import revise as revise_contract

    agreed = Contract.read(contract)
    signed = revise_contract(agreed, ledger=ledger, reason=reason, actor=actor)
    _OUT.print(show.contract_table(agreed))
    _OUT.print(show.plain(f"The version of entry {signed.position} stands; its accounts go on."))


@app.command(epilog='Example:  `parco cap contract.toml --ledger purchases.ledger --reason "board, 3 May"`')
def cap(contract: ContractPath, reason: ReasonOption, ledger: LedgerOption = None, actor: ActorOption = None) -> None:
    """Raise or lower the cap to what the contract's [budget] now says; nothing else in it may differ.

    A cap never falls below what is spent or reserved.
    """
    from parco.session.signing import move_cap

    agreed = Contract.read(contract)
    signed = move_cap(agreed, ledger=ledger, reason=reason, actor=actor)
    _OUT.print(show.contract_table(agreed))
    _OUT.print(show.plain(f"The cap was moved; entry {signed.position} is the contract's new version."))


@app.command(
    epilog="""Examples:

`parco release contract.toml count --by month --cost 0.05`

`parco release contract.toml sum dollars --by month --error 500 --dry-run`

`parco release contract.toml count dollars --where "items >= 2 and channel = 'web'"`

`parco release contract.toml mean dollars --by channel`

`parco release contract.toml quantile dollars --at 0.25 --at 0.5 --at 0.75 --by month`

`parco release contract.toml histogram month`

`parco release contract.toml top month --k 3`

`parco release contract.toml select_keys city --delta 1e-9`

`parco release contract.toml suggest_bounds dollars --by month --cover 0.98`

`parco release contract.toml --ask questions.toml`
""",
)
def release(  # noqa: PLR0913 - each option of the command is a parameter
    contract: ContractPath,
    statistic: Annotated[str | None, typer.Argument(help=_STATISTICS, show_default=False)] = None,
    *,
    column: Annotated[str | None, typer.Argument(help="The column it is about.", show_default=False)] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="A grouping; repeat for several.")] = None,
    where: Annotated[str | None, typer.Option("--where", help="Only rows that meet this condition.")] = None,
    cost: Annotated[str | None, typer.Option("--cost", help="The most to spend, such as 0.05 or 1/3.")] = None,
    error: Annotated[str | None, typer.Option("--error", help="The half-width each interval must reach.")] = None,
    within: Annotated[str | None, typer.Option("--within", help="Sharpen until within this share, as 5%.")] = None,
    at_most: Annotated[str | None, typer.Option("--at-most", help="With --within: the most it may cost.")] = None,
    reserve: Annotated[bool, typer.Option("--reserve", help="With --within: set all of it aside first.")] = False,
    each: Annotated[bool, typer.Option("--each", help="With --reserve: each key until it is near enough.")] = False,
    confidence: Annotated[str | None, typer.Option("--confidence", help="Of the intervals [default: 0.95].")] = None,
    split: Annotated[str | None, typer.Option("--split", help="A mean's: the sum's share [default: 1/2].")] = None,
    at: Annotated[list[str] | None, typer.Option("--at", help="A quantile's: such as 0.5; repeat for several.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="A top's: how many keys it names.")] = None,
    cover: Annotated[str | None, typer.Option("--cover", help="Suggested bounds': a share [default: 0.98].")] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="Of selected keys: the most to take of it.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="[default: the contract's source]")] = None,
    ledger: LedgerOption = None,
    data_version: Annotated[str | None, typer.Option("--version", help="Your label for the state of the data.")] = None,
    actor: ActorOption = None,
    key: Annotated[str | None, typer.Option("--key", help="An idempotency key: it never pays twice.")] = None,
    part: Annotated[str | None, typer.Option("--part", help="A declared part of the units; it alone pays.")] = None,
    period: Annotated[list[str] | None, typer.Option("--period", help="A period; repeat for several.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay again, even where an answer is stored.")] = False,
    ask: Annotated[Path | None, typer.Option("--ask", help="Several questions, as [[ask]] tables of TOML.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost; spend nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Release a statistic, charged before the data is read; what is stored already is free.

    Without --cost or --error it spends the contract's default share of the budget. With --within 5% --at-most 0.2 it is
    sharpened step by step, and stops as soon as each half-width is at most 5 % of its estimate. With --reserve the most
    it may cost is set aside first, and what the steps did not need is free again.
    """
    with progress_after_a_second() as progress:
        session = Session(
            Contract.read(contract), data=data, ledger=ledger, actor=actor, version=data_version, progress=progress
        )
        asked: How = {
            "by": by or (),
            "where": where,
            "cost": cost,
            "error": error,
            "confidence": confidence,
            "fresh": fresh,
            "key": key,
            "part": part,
            "period": period or None,
            "delta": delta,
        }
        if ask is not None:
            paid = (cost, error, within, at_most, reserve, each, confidence, delta, key, fresh)
            if any((statistic, column, by, where, split, at, k, cover, *paid)):
                raise QuestionError("with --ask, the questions and their options stand in the file")
            _release_all(session, ask, dry_run=dry_run, as_json=as_json)
            return
        if statistic is None:
            raise QuestionError("name a statistic, such as count, or several questions with --ask FILE")
        if within is not None or at_most is not None or reserve or each:
            others = {
                "--cost": cost,
                "--error": error,
                "--split": split,
                "--at": at,
                "--k": k,
                "--cover": cover,
                "--delta": delta,
                "--key": key,
                "--dry-run": dry_run,
            }
            question = Ask(statistic, column, by or (), where, part=part, period=period or None, fresh=fresh)
            stopped = release_within(
                session,
                question,
                within=within,
                at_most=at_most,
                confidence=confidence,
                reserve=reserve,
                each=each,
                others=[name for name, given in others.items() if given],
            )
            lifetime = session.lifetime()
            if as_json:
                print_json(stopped.record() | {"lifetime": lifetime.record()})
            else:
                show_until(_OUT, stopped)
                _OUT.print(show.plain(lifetime))
            return
        if dry_run:
            plan = _asked(session.plan, statistic, column, split=split, at=at, k=k, cover=cover, how=asked)
        else:
            released = _asked(session, statistic, column, split=split, at=at, k=k, cover=cover, how=asked)
    if dry_run:
        print_json(plan.record()) if as_json else _OUT.print(show.plain_lines(str(plan)))
    elif as_json:
        print_json(released.record() | {"lifetime": session.lifetime().record()})
    else:
        show.show_release(_OUT, released)
        _OUT.print(show.plain(session.lifetime()))


@app.command(
    epilog="""Examples:

`parco refine contract.toml 12 --error 20`

`parco refine contract.toml 12 --cost 0.05 --dry-run`
""",
)
def refine(  # noqa: PLR0913, PLR0917 - each option of the command is a parameter
    contract: ContractPath,
    release: Annotated[int, typer.Argument(help="The number of the release, as its receipt and `parco history` say.")],
    cost: Annotated[str | None, typer.Option("--cost", help="The most to spend beyond what it cost.")] = None,
    error: Annotated[str | None, typer.Option("--error", help="The half-width each interval must reach.")] = None,
    confidence: Annotated[str | None, typer.Option("--confidence", help="Of the intervals [default: 0.95].")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="[default: the contract's source]")] = None,
    ledger: LedgerOption = None,
    data_version: Annotated[str | None, typer.Option("--version", help="Your label for the state of the data.")] = None,
    actor: ActorOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost; spend nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a stored answer sharper for the difference in cost; free where a stored one is sharp enough.

    Of the very same question only: the same data version, bounds, keys and condition. Name --error or --cost.
    """
    with progress_after_a_second() as progress:
        session = Session(
            Contract.read(contract), data=data, ledger=ledger, actor=actor, version=data_version, progress=progress
        )
        if dry_run:
            plan = session.plan.refine(release, error=error, cost=cost, confidence=confidence)
        else:
            refined = session.refine(release, error=error, cost=cost, confidence=confidence)
    if dry_run:
        print_json(plan.record()) if as_json else _OUT.print(show.plain_lines(str(plan)))
    elif as_json:
        print_json(refined.record() | {"lifetime": session.lifetime().record()})
    else:
        show.show_release(_OUT, refined)
        _OUT.print(show.plain(session.lifetime()))


@app.command(epilog="Example:  `parco budget --ledger purchases.ledger --json`")
def budget(
    ledger: GivenLedger,
    as_json: JsonOption = False,
) -> None:
    """Show each account: cap, spent, reserved, remaining, quotas, and what may be claimed of it to date."""
    from parco.session.accesses import Accesses
    from parco.session.receipt import claims_to_date
    from parco.session.schedules import standing
    from parco.stores.address import open_ledger

    store = open_ledger(ledger)
    accounts, schedules, shared = store.accounts(), store.schedules(), store.quotas()
    accesses = Accesses.of(store.history(), store.repeats())
    datasets, signed = _data_sets(store)
    lifetimes = [lifetime_of(signed[name][-1], rows) for name, rows in datasets.items()]
    if as_json:
        sums = [show.sum_record(rows) for name, rows in datasets.items() if signed[name][-1].unit.period]
        told = {name: list(show.unprotected(contracts)) for name, contracts in signed.items()}
        record: dict[str, object] = {
            "accounts": show.account_records(accounts),
            "unprotected": told,
            "accesses": accesses.record(),
            "lifetime": [one.record() for one in lifetimes],
            "answers": {name: [one.answers or "ledger" for one in contracts] for name, contracts in signed.items()},
            **({"quotas": governance.quota_records(shared)} if shared else {}),
            **({"derived": derived} if (derived := show.derived(signed)) else {}),
        }
        found = {name: standing(store, signed[name][-1], rows) for name, rows in datasets.items()}
        if schedules:
            claims = {name: claims_to_date(signed[name][-1], *rows) for name, rows in datasets.items()}
            record["claims"] = {name: [one.record() for one in made] for name, made in claims.items()}
            record["schedules"] = [show.schedule_record(one) for one in schedules]
            record["tight"] = {name: show.standing_record(one) for name, one in found.items() if one is not None}
        print_json(record | ({"in_all_periods": sums} if sums else {}))
        return
    for (name, rows), lifetime in zip(datasets.items(), lifetimes, strict=True):
        agreed = signed[name][-1]
        for row in rows:
            _OUT.print(show.account_table(row))
        found_here = standing(store, agreed, rows)
        kept = () if found_here is None or found_here.claim is None else (found_here.claim,)
        show.show_claims(_OUT, (*claims_to_date(agreed, *rows), *kept))
        show.show_schedules(_OUT, [one for one in schedules if one.dataset == name], found_here)
        if agreed.unit.period is not None:
            show.show_claims(_OUT, claims_to_date(agreed, *rows, all_periods=True))
        _OUT.print(show.plain(show.unprotected_words(signed[name])))
        _OUT.print(show.plain(lifetime))
        for words in show.shared_words(signed[name]):
            _OUT.print(show.plain(words))
    if shared:
        _OUT.print(governance.quota_table(shared))
    _OUT.print(show.plain(accesses))


@app.command(epilog="Example:  `parco history --ledger purchases.ledger`")
def history(
    ledger: GivenLedger,
    as_json: JsonOption = False,
) -> None:
    """Show all signings and releases, in the order of the ledger."""
    from parco.stores.address import open_ledger

    store = open_ledger(ledger)
    records = show.history_records(store.history(), store.repeats())
    datasets, signed = _data_sets(store)
    lifetimes = [lifetime_of(signed[name][-1], rows) for name, rows in datasets.items()]
    if as_json:
        print_json({"history": records, "lifetime": [one.record() for one in lifetimes]})
        return
    _OUT.print(show.history_table(records))
    for lifetime in lifetimes:
        _OUT.print(show.plain(lifetime))


@app.command(epilog="Example:  `parco demo --dir /tmp/parco-demo`; run it twice: the second run is free")
def demo(
    folder: Annotated[Path, typer.Option("--dir", help="Where the demo's files go.")] = Path("parco-demo"),
) -> None:
    """Publish real statistics from real purchases (CDNOW, 1997-98), and see what they cost.

    Needs the extra: `pip install "parco[demo]"`.
    """
    from parco.cli.demo import run_demo

    run_demo(_OUT, folder)


@app.command(epilog="Example:  `parco figures --out figures`")
def figures(
    out: Annotated[Path, typer.Option("--out", help="The folder for the files; made where it is missing.")],
) -> None:
    """Draw what repeated releases cost: the worked example of docs/accounting.md, as a table, CSV and SVG.

    Epsilon of 1 to 1,000 Gaussian releases, by a valid bound and by the tight one, and what averaging answers gains and
    costs. No data are read; about twenty seconds. Needs the extra: `pip install "parco[figures]"`.
    """
    from parco.cli.figures import show_figures
    from parco.reports.figures import write_figures

    with progress_after_a_second() as progress:
        written = write_figures(out, progress=progress)
    show_figures(_OUT, written)


accounting.register(app)
app.command(
    epilog="""Examples:

`parco panel weekly-panel.toml --period 2025-W07`

`parco panel weekly-panel.toml --period 2025-W07 --data 2025-W07.csv --json`
"""
)(schedule.panel)
correcting.register(app)
audits.register(app)
governance.register(app)


def run() -> None:
    """The program: exit codes 0, 2 request, 3 budget, 4 verification, 5 the machine's, 70 internal."""
    errors, code = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True), 0
    # An output that cannot show a character must not turn a charged release into an error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *_, **__: errors.print(show.plain_lines(f"parco: warning: {message}"))
    try:
        app()
    except ParcoError as error:
        errors.print(show.plain_lines(f"parco: {error}"))
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 - the outermost door: no traceback, its text could hold a private value
        errors.print(f"parco: internal error ({type(error).__name__}); please report it")
        code = InternalError.exit_code
    sys.exit(code)


def _data_sets(store: Store) -> tuple[dict[str, list[AccountRow]], dict[str, list[Contract]]]:
    """The accounts of each data set on a ledger, and its contracts, the latest signed last."""
    datasets = {name: list(rows) for name, rows in groupby(store.accounts(), key=lambda account: account.name)}
    signed = {
        name: [Contract.from_text(text) for text in store.contract_texts(rows[0].account)]
        for name, rows in datasets.items()
    }
    return datasets, signed


def _release_all(session: Session, path: Path, *, dry_run: bool, as_json: bool) -> None:
    """The questions of a file, charged together and read at once."""
    from parco.cli.asks import read_asks

    asks = read_asks(path)
    if dry_run:
        plans = session.plan.release(asks)
        if as_json:
            print_json({"plans": [plan.record() for plan in plans]})
        for plan in () if as_json else plans:
            _OUT.print(show.plain_lines(str(plan)))
        return
    releases = session.release(asks)
    if as_json:
        records = [released.record() for released in releases]
        print_json({"releases": records, "lifetime": session.lifetime().record()})
        return
    for released in releases:
        show.show_release(_OUT, released)
    _OUT.print(show.plain(session.lifetime()))


def _asked(
    questions: Questions[R, M, V, Q, B],
    statistic: str,
    column: str | None,
    *,
    split: str | None,
    at: list[str] | None,
    k: int | None,
    cover: str | None,
    how: How,
) -> R | M | V | Q | B:
    """A question named by text, to a session or to its planner."""
    if cover is not None and statistic != "suggest_bounds":
        raise QuestionError("only suggested bounds leave a share as it is: leave out --cover")
    if split is not None and statistic != "mean":
        raise QuestionError("only a mean has two parts: leave out --split")
    if at and statistic != "quantile":
        raise QuestionError("only a quantile is asked at shares of the rows: leave out --at")
    if k is not None and statistic != "top":
        raise QuestionError("only a top says how many keys it names: leave out --k")
    if statistic == "suggest_bounds":
        return questions.suggest_bounds(column, cover=cover, **how)
    if statistic not in (*JOINT, "top"):
        return questions.ask(statistic, column, **how)
    if column is None:
        raise QuestionError(f"{statistic} needs the name of a column")
    if statistic == "top":
        if k is None:
            raise QuestionError("say how many keys a top names, such as --k 3")
        return questions.top(column, k=k, **how)
    if statistic == "quantile":
        if not at:
            raise QuestionError("name the shares of the rows at which quantiles are asked, such as --at 0.5")
        return questions.quantile(column, at=at, **how)
    return questions.mean(column, split=split, **how) if statistic == "mean" else questions.variance(column, **how)
