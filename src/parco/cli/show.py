"""What a terminal shows: tables, bars, budgets. Control characters in names from files and ledgers are escaped."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.bar import Bar
from rich.box import SIMPLE
from rich.console import Console, OverflowMethod, RenderableType
from rich.table import Table
from rich.text import Text

from parco.contract.contract import Contract
from parco.measure import COST_UNIT, DELTA_UNIT, decimal_text, exact_text
from parco.privacy.claim import Claim
from parco.queries import consequences
from parco.queries.filters import words
from parco.session.accesses import kind_of
from parco.session.bounds import BoundsAnswer
from parco.session.frames import escaped
from parco.session.mean import MeanAnswer
from parco.session.quantile import QuantileAnswer
from parco.session.receipt import account_claims
from parco.session.release import Answer, Cells, Release
from parco.session.schedules import Standing, drawn_of, open_charges
from parco.session.variance import VarianceAnswer

if TYPE_CHECKING:
    from parco.stores.records import AccountRow, HistoryRow, Scheduled

__all__ = [
    "account_records",
    "account_table",
    "answer_table",
    "bars",
    "contract_table",
    "history_records",
    "history_table",
    "plain",
    "plain_lines",
    "schedule_record",
    "show_claims",
    "show_consequences",
    "show_release",
    "show_schedules",
    "side_by_side",
    "standing_record",
    "sum_record",
    "unprotected",
    "unprotected_words",
]

_BAR_WIDTH, _ACTOR_WIDTH = 40, 12
_ACTS = {
    "revise": "a new version",
    "cap": "another cap",
    "derive": "lineage",
    "quota": "quota",
    "recover": "charge what was lost",
    "rotate": "another signing key",
    "schedule": "sign a schedule",
    "leave": "leave a schedule",
    "amend": "amend",
    "supersede": "supersede",
    "recost": "recost",
    "flag": "flag",
}
_LISTED_MAX = 3
_DELTAS = ("delta_cap", "delta_spent", "delta_reserved", "delta_remaining")


def plain(text: object) -> Text:
    """Text as it may safely reach a terminal: no markup, and control or direction characters as escapes."""
    return Text(escaped(text))


def answer_table(answer: Cells) -> Table:
    """The cells with their intervals."""
    places = answer.places
    table = Table()
    for name in answer.by:
        table.add_column(plain(name))
    for name in answer.numbers:
        table.add_column(name, justify="right")
    for row in answer:
        parts = [getattr(row, name) for name in answer.numbers]
        amounts = ("none" if part is None else _amount(part, places) for part in parts)
        table.add_row(*(plain(key) for key in row.keys), *amounts)
    return table


def side_by_side(titles: Sequence[str], answers: Sequence[Answer]) -> Table:
    """Several answers by the same groups in one table: value and half-width."""
    table = Table()
    for name in answers[0].by:
        table.add_column(plain(name))
    for title in titles:
        table.add_column(plain(title), justify="right")
    for rows in zip(*answers, strict=True):
        shown = (
            f"{_amount(row.value, answer.places)} ± {math.ceil(row.upper - row.value):,}"
            for row, answer in zip(rows, answers, strict=True)
        )
        table.add_row(*(plain(key) for key in rows[0].keys), *shown)
    return table


def bars(answer: Answer) -> Table:
    """A horizontal bar for each cell; noise can make a value negative, which is an empty bar."""
    places = answer.places
    top = max((row.value for row in answer), default=Fraction(0))
    table = Table(box=None, show_header=False)
    for _ in answer.by:
        table.add_column()
    table.add_column()
    table.add_column(justify="right")
    for row in answer:
        length = float(max(row.value, Fraction(0)) / top) if top > 0 else 0.0
        bar: RenderableType = Bar(1.0, 0.0, length, width=_BAR_WIDTH, color="cyan")
        table.add_row(*(plain(key) for key in row.keys), bar, _amount(row.value, places))
    return table


def show_release(
    console: Console,
    release: Release[Answer]
    | Release[MeanAnswer]
    | Release[VarianceAnswer]
    | Release[QuantileAnswer]
    | Release[BoundsAnswer],
) -> None:
    """The answer, what its interval covers, its receipt, and where to read what may be claimed."""
    console.print(plain(release.receipt.question))
    console.print(answer_table(release.value))
    console.print(plain_lines(release.promise))
    console.print(plain(f"Bounding: {release.receipt.limits}."))
    console.print(plain_lines(str(release.receipt)))
    if release.repeat:
        console.print(f"Served from the ledger: this access cost 0; {decimal_text(release.remaining)} remain now.")
    console.print("What may be claimed of all releases to date: parco budget")


def show_consequences(console: Console, contract: Contract) -> None:
    """What a contract leads to, before anything is signed."""
    for sentence in consequences.in_words(contract):
        console.print(plain(sentence))
    cap = contract.budget.cap.value
    whole, *_ = account_claims(contract, cap=cap, spent=Fraction(0), fixed_cap=cap, accounts=contract.accounts)
    console.print(plain(whole.in_words()))
    order, own = consequences.best_order(contract), contract.budget.receipt_order
    if order is not None and not order / 2 <= own <= order * 2:
        console.print(f"At receipt_order {exact_text(own)} receipts claim little; {order} suits a budget of this size.")
    table = Table(box=SIMPLE, pad_edge=False)
    for name in ("a question such as", "would cost", "within"):
        table.add_column(name, justify="left" if name.startswith("a ") else "right", overflow="fold")
    for plan in consequences.sample_plans(contract):
        table.add_row(plain(plan.query), plain(plan.cost), f"± {decimal_text(plan.half_width)}")
    console.print(table)
    console.print("Within: the half-width of each cell's 95 % interval. Ask for another accuracy with --error.")


def show_claims(console: Console, claims: Sequence[Claim]) -> None:
    """What may be claimed to date, in words, each caveat once; the classical form stays in the record.

    A realised claim above the cap's says nothing new, since the cap's holds too: only its order is at fault.
    """
    cap = claims[0]
    told = [cap, *(claim for claim in claims if claim.basis == "realised" and claim.epsilon < cap.epsilon)]
    realised = len(told) > 1
    told += [claim for claim in claims if claim.basis == "schedule"]
    console.print(plain(cap.context.in_words()))
    for claim in told:
        console.print(plain(f"• {claim.statement()}"))
    if not realised and cap.accountant != "basic":
        console.print("• What was released so far gives no smaller claim at the contract's receipt_order.")
    for caveat in dict.fromkeys(caveat for claim in told for caveat in claim.caveats()):
        console.print(plain(caveat))


def show_schedules(console: Console, schedules: Sequence[Scheduled], found: Standing | None) -> None:
    """Each schedule of a data set, and how its account stands to them, plainly."""
    for one in schedules:
        kept = ", ".join(_cost(charge.cost) for charge in open_charges(one)) or "nothing"
        state = f"left by entry {one.ended}" if one.ended is not None else f"{kept} is set aside for the rest"
        console.print(plain(f"Schedule {one.name}: {drawn_of(one)} of {len(one.steps)} steps drawn; {state}."))
    if schedules and found is None:
        console.print("No schedule was signed before the first release: no tight claim, the cap's claim is what holds.")
    elif found is not None and found.outside is not None:
        row, names = found.outside, ", ".join(one.name for one in found.schedules)
        what = f"recosted what was drawn from {names}" if row.state == "recost" else f"was released outside of {names}"
        console.print(plain(f"Entry {row.seq} {what}: the tight claim has ended, the cap's claim is what holds."))


def schedule_record(scheduled: Scheduled) -> dict[str, object]:
    """A schedule as `parco schedule sign --json` and `parco budget --json` print it."""
    return {
        "schedule": scheduled.name,
        "entry": scheduled.position,
        "data": scheduled.dataset,
        "steps": len(scheduled.steps),
        "drawn": drawn_of(scheduled),
        "left_by_entry": scheduled.ended,
        "set_aside": {str(charge.account): _cost(charge.cost) for charge in open_charges(scheduled)},
    }


def standing_record(found: Standing) -> dict[str, object]:
    """What may be claimed of an account that keeps to its schedules, or the entry that was released outside of them."""
    return {
        "schedules": [one.name for one in found.schedules],
        "claim": None if found.claim is None else found.claim.record(),
        "outside": None if found.outside is None else found.outside.seq,
    }


def plain_lines(text: str) -> Text:
    """Several lines of `plain` text."""
    return Text("\n").join(plain(line) for line in text.splitlines())


def account_records(accounts: Iterable[AccountRow]) -> list[dict[str, str]]:
    """Accounts as `parco budget --json` prints them: exact decimal text."""
    return [
        {
            "account": row.title,
            "measure": str(row.measure),
            "cap": _cost(row.cap),
            "spent": _cost(row.spent),
            "reserved": _cost(row.reserved),
            "remaining": _cost(row.remaining),
            **{name: _delta(getattr(row, name)) for name in _DELTAS},
            **({"overdrawn": _cost(-row.remaining)} if row.remaining < 0 else {}),
        }
        for row in accounts
    ]


def sum_record(accounts: Sequence[AccountRow]) -> dict[str, str]:
    """What a unit that is in all periods of a data set may lose, and has lost: the sums over its accounts."""
    return {
        "account": accounts[0].name,
        "measure": str(accounts[0].measure),
        **{name: _cost(sum(getattr(row, name) for row in accounts)) for name in ("cap", "spent", "reserved")},
        **{name: _delta(sum(getattr(row, name) for row in accounts)) for name in _DELTAS},
    }


def account_table(row: AccountRow) -> Table:
    """An account, with how much of its cap is used."""
    (record,) = account_records([row])
    used = row.spent + row.reserved
    table = Table(show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name in ("account", "measure", "cap", "spent", "reserved", "remaining", "overdrawn"):
        if name in record:
            table.add_row(name, plain(record[name]))
    if row.delta_cap:
        spent = _delta(row.delta_spent + row.delta_reserved)
        table.add_row("delta", plain(f"{spent} of {record['delta_cap']} for mechanisms is spent or reserved"))
    if not row.cap:
        return table
    table.add_row("used", f"{100 * used / row.cap:.1f} %")
    table.add_row("", Bar(float(row.cap), 0.0, float(min(used, row.cap)), width=40, color="cyan", bgcolor="grey37"))
    return table


def history_records(history: Iterable[HistoryRow], repeats: dict[int, int]) -> list[dict[str, object]]:
    """The ledger's signings and releases as `parco history --json` prints them."""
    history = list(history)
    # A release under a contract that a later one revised keeps the accounts: they never change.
    own = {row.contract: row.accounts for row in history if row.accounts and row.contract is not None}
    again = _answered_for_others(history)
    return [
        {
            "entry": row.seq,
            "time": datetime.fromtimestamp(row.time, UTC).isoformat(),
            "actor": row.actor,
            "state": row.state,
            "contract": None if row.state in ("quota", "derive") else row.name,
            "question": None if row.question is None else json.loads(row.question),
            "access": kind_of(row),
            "fresh": row.fresh,
            "refines": row.parent,
            "private": row.private,
            "cost": _cost(max((charge.cost for charge in row.charges if charge.account in _own(row, own)), default=0)),
            "mechanism": None if row.mechanism is None else row.mechanism.kind,
            "scale": None if row.mechanism is None else str(row.mechanism.scale),
            "cells": row.cells,
            "repeats": repeats.get(row.seq, 0),
            **_delta_record(row),
            **({"answered_for_others": True} if row.seq in again else {}),
            **_held_record(row, own),
            **_also_record(row, own),
            **_governing_record(row),
            **({"reason": row.reason} if row.state in _ACTS else {}),
            **_schedule_fields(row),
            **({"about": list(row.about)} if row.about else {}),
            **({"corrections": [one.record() for one in row.corrections]} if row.corrections else {}),
            **({"now": now} if (now := _now(row)) else {}),
            **({"caps": {str(one.account): _cost(one.cap) for one in row.caps}} if row.caps else {}),
        }
        for row in history
    ]


def _schedule_fields(row: HistoryRow) -> dict[str, object]:
    """Which schedule a row is about, if any, the step that a release is, and what a schedule set aside."""
    if row.state != "schedule" and row.schedule is None:
        return {}
    set_aside = {str(charge.account): _cost(charge.cost) for charge in row.set_aside}
    step = {} if row.step is None else {"step": row.step}
    return {"schedule": row.schedule, **step, **({"set_aside": set_aside} if set_aside else {})}


def _now(row: HistoryRow) -> dict[str, object]:
    """How a row reads, and what it is, by the last of its corrections of each kind."""
    told: dict[str, object] = {}
    for one in row.corrections:
        if one.what == "amend":
            told[str(one.field)] = {"text": one.text, "by": one.actor, "because": one.reason, "erased": one.erases}
        elif one.what == "recost":
            told["cost"] = _cost(one.cost or 0)
        elif one.what == "supersede":
            told["superseded"] = None if one.by == row.seq else one.by or "withdrawn"
        else:
            told["flagged"] = True
    return {name: value for name, value in told.items() if value is not None}


def _answered_for_others(history: Sequence[HistoryRow]) -> set[int]:
    """The requests for what others had asked before, to whom alone that answer is served: new accesses, in full."""
    texts: dict[str, set[str]] = {}
    found = set()
    for row in history:
        if row.question is not None:
            question = json.loads(row.question)
            question.pop("answers", None)
            known = texts.setdefault(json.dumps(question, sort_keys=True), set())
            if known - {row.question}:
                found.add(row.seq)
            known.add(row.question)
    return found


def _own(row: HistoryRow, own: Mapping[str, tuple[int, ...]]) -> Collection[int]:
    """The accounts of a request's data set; of an act, all that it charges."""
    return own.get(row.contract or "", [charge.account for charge in row.charges])


def _also_record(row: HistoryRow, own: Mapping[str, tuple[int, ...]]) -> dict[str, object]:
    """What accounts were charged that the data are derived from, by their numbers, each in its own measure."""
    others = {str(one.account): _cost(one.cost) for one in row.charges if one.account not in _own(row, own)}
    return {"also": others} if others else {}


def _held_record(row: HistoryRow, own: Mapping[str, tuple[int, ...]]) -> dict[str, object]:
    """What a ladder had reserved that stopped early, beside the cost that was realised."""
    held = [charge.cost for charge in row.held if charge.account in _own(row, own)]
    return {"reserved": _cost(max(held))} if held else {}


def _governing_record(row: HistoryRow) -> dict[str, object]:
    if row.state == "quota":
        return {"quota": row.name, "members": [member or "(erased)" for member in row.members]}
    return {"data": row.name, "parents": list(row.parents)} if row.state == "derive" else {}


def _delta_record(row: HistoryRow) -> dict[str, object]:
    """The delta that was charged, where there was one."""
    delta = max((charge.delta for charge in row.charges), default=0)
    return {"delta": _delta(delta)} if delta else {}


def history_table(records: Sequence[dict[str, object]]) -> Table:
    """One line a signing or release, in the order of the ledger."""
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("entry", "date", "actor", "what", "state", "cost"):
        right, whole = name in ("entry", "cost"), name in ("entry", "date", "cost")
        most = _ACTOR_WIDTH if name == "actor" else None
        least = None if not whole else len("0.000000000000000") if name == "cost" else None
        overflow: OverflowMethod = "ellipsis" if name == "actor" else "fold"
        table.add_column(
            name,
            justify="right" if right else "left",
            overflow=overflow,
            no_wrap=whole or name == "actor",
            max_width=most,
            min_width=least,
        )
    for record in records:
        cells = (
            record["entry"],
            str(record["time"])[:10],
            _amended(record, "actor", str(record["actor"] or "(erased)")),
            _what(record),
            _state(record),
        )
        table.add_row(*(plain(cell) for cell in cells), plain(record["cost"]))
    return table


def contract_table(contract: Contract) -> Table:
    """What a contract promises, in a few lines."""
    unit, budget = contract.unit, contract.budget

    def grouping(name: str) -> str:
        return f"{name} ({_many(len(contract.keys(name) or ()), 'group')})"

    table = Table(title=plain(contract.name), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    amount = f"{decimal_text(budget.cap_units * COST_UNIT)} of {budget.measure}"
    asked = "" if budget.epsilon is None else f" (epsilon {exact_text(budget.epsilon)}"
    asked += f", delta {float(budget.delta):g})" if budget.delta and asked else ")" * bool(asked)
    lines = [
        ("purpose", contract.purpose),
        ("protected", f"one {unit.column}{_in_period(contract)} ({unit.neighbours})"),
        ("at most", f"{_many(unit.groups, 'group')} of a question, {_many(unit.rows, 'row')} in each"),
        ("not protected", contract.unprotected if contract.unprotected == "none" else ", ".join(contract.unprotected)),
        ("budget", amount + asked),
        *([] if unit.period is None else [("all periods", _all_periods(contract))]),
        ("a question", f"spends {exact_text(budget.default_share)} of it where no cost is named"),
        ("receipts", f"at order {exact_text(budget.receipt_order)}"),
        ("data", f"{contract.data.name}, version {contract.data.version}"),
        *([("derived from", ", ".join(contract.data.derived_from))] if contract.data.derived_from else []),
        ("answers", contract.answers_words),
        ("sums of", ", ".join(name for name in contract.columns if contract.numeric(name)) or "nothing"),
        (
            "groups by",
            ", ".join(f"{name} ({_many(len(contract.keys(name) or ()), 'group')})" for name in contract.groupings)
            or "nothing",
        ),
        *([] if contract.parts is None else [("parts", _parts(contract.parts))]),
        ("digest", contract.digest),
    ]
    for name, value in lines:
        table.add_row(name, plain(value))
    return table


def _in_period(contract: Contract) -> str:
    period = contract.unit.period
    return ": all its rows" if period is None else f" in one {period}: all its rows of that {period}"


def _all_periods(contract: Contract) -> str:
    count = len(contract.accounts)
    total = decimal_text(count * contract.budget.cap_units * COST_UNIT)
    return f"the budget is for each of {count}; one {contract.unit.column} in all of them may lose their sum, {total}"


def _parts(parts: Mapping[str, Fraction]) -> str:
    shares = ", ".join(f"{name} {exact_text(parts[name])}" for name in parts)
    return f"{shares} of the units, by a secret coin; each part has the whole budget"


def unprotected(contracts: Iterable[Contract]) -> tuple[str, ...]:
    """What any contract on an account declares unprotected: all of them speak of the same data."""
    named = [name for contract in contracts if contract.unprotected != "none" for name in contract.unprotected]
    return tuple(dict.fromkeys(named))


def derived(signed: Mapping[str, Sequence[Contract]]) -> dict[str, list[str]]:
    """The data sets that are derived from others, each with its parents."""
    found = {name: contracts[-1].data.derived_from for name, contracts in signed.items()}
    return {name: list(parents) for name, parents in found.items() if parents}


def shared_words(contracts: Sequence[Contract]) -> list[str]:
    """To whom stored answers of a data set are served, contract by contract, and whose accounts it charges besides."""
    parents = contracts[-1].data.derived_from
    words = [f"Derived from {', '.join(parents)}: its releases are charged there, too."] if parents else []
    scopes = dict.fromkeys(one.answers_words for one in contracts)
    return [*words, *scopes]


def unprotected_words(contracts: Iterable[Contract]) -> str:
    """The same in words."""
    names = unprotected(contracts)
    if not names:
        return "Nothing is declared unprotected."
    return f"Declared unprotected, so that no claim covers it: {', '.join(names)}."


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def _state(record: dict[str, object]) -> str:
    marks = [record["state"]]
    if record["fresh"]:
        marks.append("fresh")
    if "step" in record:
        marks.append(f"{record['schedule']} {record['step']}")
    if "reserved" in record:
        marks.append(f"stopped, of {record['reserved']} reserved")
    if record["refines"]:
        marks.append(f"refines {record['refines']}")
    if record["repeats"]:
        marks.append(f"repeats: {record['repeats']}")
    if record.get("answered_for_others"):
        marks.append("again, for others")
    if not record["private"]:
        marks.append("NOT PRIVATE")
    now = record.get("now")
    if isinstance(now, dict):
        if "superseded" in now:
            by = now["superseded"]
            marks.append("WITHDRAWN" if by == "withdrawn" else f"SUPERSEDED by {by}")
        marks += [f"costs {now['cost']}"] if "cost" in now else []
        marks += ["flagged"] if "flagged" in now else []
    return ", ".join(map(str, marks))


def _what(record: dict[str, object]) -> str:
    question = record["question"]
    if record["state"] == "open":
        return f"sign {record['contract']}"
    if record["state"] in _ACTS:
        return _act(record)
    title = _amended(record, "title", _amended(record, "question", ""))
    if title:
        return title
    if not isinstance(question, dict):
        return "(erased)"
    column = f" {question['column']['name']}" if question["column"] else ""
    if "centre" in question:
        column += f" - {question['centre']}"
    if "k" in question:
        column += f" {question['k']}"
    if "at" in question:
        column += f" at {question['at']}"
    if "where" in question:
        column += f" where {words(question['where']['condition'])}"
    by = ", ".join(group["name"] for group in question["by"])
    part = f" in part {question['part']['name']}" if "part" in question else ""
    if "answers" in question:
        # Neither of them is served what was stored for others.
        part += f" for {question['answers'].get('asker', question['answers']['contract'])} only"
    return f"{question['statistic']}{column}{f' by {by}' if by else ''}{part}, v. {question['version']}"


def _amended(record: dict[str, object], field: str, text: str) -> str:
    """How a text reads now: as amended, or by whom and why it was erased."""
    now = record.get("now")
    found = now.get(field) if isinstance(now, dict) else None
    if not isinstance(found, dict):
        return text
    if found["erased"]:
        return f"(erased by {found['by'] or '(erased)'} because {found['because'] or '(erased)'})"
    return str(found["text"] or "(erased)")


def _act(record: dict[str, object]) -> str:
    caps, reason = record.get("caps"), _amended(record, "reason", str(record["reason"] or "(erased)"))
    if record["state"] == "quota":
        amount = ", ".join(dict.fromkeys(caps.values())) if isinstance(caps, dict) else "lifted"
        return f"quota {record['quota']} of {_listed(record['members'])}: {amount}: {reason}"
    if record["state"] == "derive":
        parents = record["parents"]
        what = f"derived from {_listed(parents)}" if parents else "shares no row with other data sets"
        return f"{record['data']} {what}: {reason}"
    about = record.get("about")
    if isinstance(about, list):
        more = f" and {len(about) - _LISTED_MAX} more" if len(about) > _LISTED_MAX else ""
        return f"{record['state']} {', '.join(map(str, about[:_LISTED_MAX]))}{more}: {reason}"
    if isinstance(caps, dict):
        return f"cap {', '.join(dict.fromkeys(caps.values()))}: {reason}"
    what = f"revise {record['contract']}" if record["state"] == "revise" else _ACTS[str(record["state"])]
    if isinstance(set_aside := record.get("set_aside"), dict):
        return f"{what}: {record['schedule']}, {', '.join(dict.fromkeys(set_aside.values()))} set aside"
    if record["state"] in ("schedule", "leave"):
        what += f" {record['schedule']}"
    return f"{what}: {reason}"


def _listed(names: object) -> str:
    return ", ".join(str(name) for name in names) if isinstance(names, list) else ""


def _amount(value: Fraction, places: int) -> str:
    """Exact decimal text with thousands apart and always the lattice's places, so that columns align."""
    digits = abs(value * 10**places).numerator
    whole, part = divmod(digits, 10**places)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole:,}.{part:0{places}d}" if places else f"{sign}{whole:,}"


def _cost(units: int) -> str:
    return decimal_text(units * COST_UNIT)


def _delta(units: int) -> str:
    return decimal_text(units * DELTA_UNIT)
