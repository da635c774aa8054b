"""`parco account` and `parco calibrate`: what a schedule fixed in advance loses, and the noise that it needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from parco.cli.options import RoundedJsonOption, print_json
from parco.cli.progress import progress_after_a_second
from parco.errors import RequestError
from parco.measure import exact_text, significant_text
from parco.privacy.schedule import Schedule

__all__ = ["register"]

_OUT = Console(highlight=False, emoji=False)
_DIGITS, _DIGITS_SHOWN = 15, 7
_SIZE_MAX = 1 << 26

SchedulePath = Annotated[
    Path, typer.Argument(help="A schedule, JSON or TOML; - reads standard input.", show_default=False)
]
DeltaOption = Annotated[str, typer.Option("--delta", help="The claim's delta, such as 1e-6.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Adds both commands."""
    app.command(
        epilog="""Examples:

`parco account schedule.json --delta 1e-6`

`echo '[{"mechanism": "laplace", "sensitivity": "1", "scale": "8"}]' | parco account - --delta 1e-6 --json`
""",
    )(account)
    app.command(
        epilog="""Examples:

`parco calibrate schedule.toml --epsilon 3 --delta 1e-6`

`parco calibrate schedule.toml --advantage 0.1`

`parco calibrate schedule.toml --epsilon 3 --delta 1e-6 --runs`
""",
    )(calibrate)


def account(
    schedule: SchedulePath,
    delta: DeltaOption,
    tolerance: Annotated[
        str, typer.Option("--tolerance", help="Relative width of the pld's interval, down to 1e-11.")
    ] = "1e-6",
    as_json: RoundedJsonOption = False,
) -> None:
    """Show what every accountant claims of a schedule, side by side: valid or tight, and what it assumes.

    A schedule is a list of releases fixed in advance: a JSON list, or [[release]] tables of TOML, of `mechanism`
    (gaussian, laplace, randomised-response, pure, exponential, sparse-vector, approximate, profile), its own numbers,
    and optionally `times` and `sampling` ({"scheme": "poisson", "rate": "0.01"}). No data is read and nothing is
    charged.
    """
    from parco.privacy.accountants import account as account_of

    with progress_after_a_second():
        told = account_of(_read(schedule), delta, tolerance=tolerance)
    if as_json:
        print_json(told.record())
        return
    word = "release" if told.releases == 1 else "releases"
    table = Table(title=f"{told.releases:,} {word}, delta {exact_text(told.delta)}", title_justify="left")
    for name, justify in (("accountant", "left"), ("epsilon", "right"), ("at least", "right"), ("status", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for claim in told.claims:
        low = "" if claim.lower is None else significant_text(claim.lower, _DIGITS_SHOWN, up=False)
        table.add_row(claim.accountant, significant_text(claim.epsilon, _DIGITS_SHOWN, up=True), low, claim.status)
    _OUT.print(table)
    _OUT.print("tight: the number is the privacy loss itself. valid: it holds, and the truth may be smaller.")
    for assumption in dict.fromkeys(word for claim in told.claims for word in claim.assumes):
        names = ", ".join(claim.accountant for claim in told.claims if assumption in claim.assumes)
        _OUT.print(Text(f"{names}: {assumption}."))
    for name, reason in told.not_applicable.items():
        _OUT.print(Text(f"{name} does not apply: {reason}."))


def calibrate(
    schedule: SchedulePath,
    *,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="The epsilon to stay within.")] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="Its delta, such as 1e-6.")] = None,
    advantage: Annotated[
        str | None,
        typer.Option("--advantage", help="Instead: the attack risk, true- minus false-positive rate, to stay within."),
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="Instead of scaling: how often the schedule fits.")] = False,
    as_json: RoundedJsonOption = False,
) -> None:
    """Scale the noise of a whole schedule by the least factor that meets a target, or count the runs that fit.

    A factor smaller by one part in a million would not do. Mechanisms known by their epsilon get epsilon divided by it.
    """
    from parco.privacy import calibration

    read = _read(schedule)
    if (advantage is None) == (epsilon is None or delta is None) or (
        advantage is not None and (epsilon or delta or runs)
    ):
        raise RequestError("give --epsilon and --delta together, or --advantage alone")
    with progress_after_a_second():
        if runs:
            count = calibration.runs_within(read, epsilon=epsilon or "", delta=delta or "")
        elif advantage is not None:
            found = calibration.calibrate_advantage(read, advantage=advantage)
        else:
            found = calibration.calibrate(read, epsilon=epsilon or "", delta=delta or "")
    if runs:
        print_json({"runs": count}) if as_json else _OUT.print(f"The schedule may run {count:,} times.")
        return
    factor = exact_text(found.scale_factor)
    if as_json:
        reached = significant_text(found.reached.upper, _DIGITS, up=True)
        print_json({"scale_factor": factor, "reached": reached, "schedule": found.schedule.records()})
        return
    _OUT.print(f"Multiply the noise by {factor}.")
    table = Table()
    for name in ("mechanism", "times", "rate", "as it is", "as it has to be"):
        table.add_column(name)
    for before, after in zip(read.releases, found.schedule.releases, strict=True):
        rate = exact_text(before.rate) if before.sampled else ""
        names = (
            [str(value) for value in before.facts.record().values()],
            [str(v) for v in after.facts.record().values()],
        )
        keys = list(before.facts.record())
        shown = (", ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True)) for values in names)
        table.add_row(before.facts.tag, f"{before.times:,}", rate, *(Text(text) for text in shown))
    _OUT.print(table)


def _read(path: Path) -> Schedule:
    try:
        if str(path) == "-":
            text = sys.stdin.read(_SIZE_MAX)
        else:
            with path.open(encoding="utf-8") as file:
                text = file.read(_SIZE_MAX)
    except OSError as error:
        raise RequestError(f"the schedule {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RequestError(f"the schedule {path} is not UTF-8 text") from None
    return Schedule.parse(text)
