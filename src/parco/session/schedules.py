"""Schedules: releases fixed in advance, priced, signed and left, and the claim while an account keeps to them.

What is fixed is each step's mechanism and sensitivity, its question, and the label of the data's version that it will
be asked on; the rows behind that label need not exist yet. Source: docs/mathematics.md, "Drawn from a schedule".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from parco.contract.contract import Contract
from parco.contract.fields import label
from parco.errors import QuestionError, RequestError, VerificationError
from parco.ledger import points
from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts, Steps, total_of
from parco.measure import COST_UNIT, Exactable
from parco.privacy.claim import Claim, schedule_claim
from parco.privacy.facts import Exponential, Facts, Gaussian, Pure
from parco.privacy.schedule import Schedule, ScheduledRelease
from parco.queries.plan import Plan
from parco.session.ask import Ask
from parco.session.receipt import context_of, mechanism_from

if TYPE_CHECKING:
    from parco.session.session import Session
    from parco.stores.records import AccountRow, HistoryRow, Scheduled
    from parco.stores.store import Store

__all__ = [
    "ScheduledAsk",
    "Standing",
    "accounting",
    "applied",
    "claim_of",
    "drawn_of",
    "leave",
    "leave_schedule",
    "open_charges",
    "planned",
    "root_upper",
    "scheduled_on",
    "sign_schedule",
    "standing",
    "steps_of",
]

_STEPS_MAX = 10_000
# A root is rounded up by less than one part in 2^64.
_ROOT_BITS = 64


@dataclass(frozen=True)
class ScheduledAsk:
    """A question, and the labels of the data's versions on which it will be asked, once each.

    `scale`: that of its noise, instead of a cost or an error. What it costs is fixed here; neither `fresh` nor `key`
    belongs in a schedule.
    """

    ask: Ask
    versions: tuple[str, ...]
    scale: Exactable | None = None


def planned(session: Session, asks: Sequence[ScheduledAsk]) -> list[tuple[Plan, tuple[str, ...]]]:
    """The release that each question comes to (several, of a mean), with the versions on which it is made.

    Raises QuestionError for what cannot be fixed in advance, or what the contract does not allow.
    """
    if session.contract.data.derived_from is not None:
        raise QuestionError(
            "a schedule is signed on data that are derived from no other: the accounts that these descend from have"
            " claims of their own, which no schedule here is part of; ask without a schedule"
        )
    found = []
    for one in asks:
        if one.ask.fresh or one.ask.key is not None:
            raise QuestionError("a step of a schedule has neither fresh nor key: each is drawn once anyway")
        versions = tuple(label(version, "version") for version in one.versions)
        if not versions or len(set(versions)) < len(versions):
            raise QuestionError('a step names the versions of the data it is asked on, each once, such as ["2025-W01"]')
        parts = [session._plan(part) for part in session._parts(one.ask)]
        if any(plan.selection is not None for plan in parts):
            raise QuestionError("a selection of keys takes a delta of its own: it is asked outside of a schedule")
        if one.scale is not None and (one.ask.cost is not None or one.ask.error is not None):
            raise QuestionError("give a step's cost, its error or its scale: the others follow from it")
        found += [(plan if one.scale is None else plan.at_scale(one.scale), versions) for plan in parts]
    if not 1 <= sum(len(versions) for _, versions in found) <= _STEPS_MAX:
        raise QuestionError(f"a schedule has 1 to {_STEPS_MAX:,} steps")
    return found


def steps_of(session: Session, plans: Iterable[tuple[Plan, tuple[str, ...]]]) -> tuple[Steps, ...]:
    """The steps as the ledger is asked to sign them, with their questions as full texts."""
    return tuple(
        Steps(
            questions=tuple(replace(plan, version=version).question for version in versions),
            mechanism=MechanismFacts(plan.mechanism.kind, plan.mechanism.scale, plan.mechanism.lattice),
            sensitivity=SensitivityFacts(plan.sensitivity.l1, plan.sensitivity.l2_squared),
            cells=plan.query.published,
            charges=tuple(Charge(number, plan.cost.units) for number in session._charged(plan.query)),
        )
        for plan, versions in plans
    )


def sign_schedule(session: Session, name: str, asks: Sequence[ScheduledAsk]) -> Scheduled:
    """For every schedule, makes sure that it is signed, its whole charge set aside at once; returns it as it stands.

    Signing the same again changes nothing. Raises RequestError where another was signed under this name or a question
    cannot be fixed, BudgetError where it does not fit; then nothing was set aside.
    """
    from parco.stores.records import Scheduling

    scheduling = Scheduling(
        actor=session.actor,
        name=label(name, "a schedule's name"),
        contract=session._signed.contract,
        steps=steps_of(session, planned(session, asks)),
    )
    points.reach("before-schedule")
    scheduled = session._store.sign_schedule(scheduling)
    points.reach("after-schedule")
    return scheduled


def leave_schedule(session: Session, name: str, *, reason: str) -> Scheduled:
    """Ends a schedule: what its open steps had set aside goes back to the accounts. Nothing more is drawn from it.

    The claim stays that of the whole schedule as signed, until something is released outside of it. Raises
    RequestError if there is no such schedule, or it was left before.
    """
    scheduled_on(session._store.schedule(name), session.contract)
    return leave(session._store, name, actor=session.actor, reason=reason)


def leave(store: Store, name: str, *, actor: str, reason: str) -> Scheduled:
    """The same on a ledger, which knows the schedule's data set by itself."""
    points.reach("before-leave")
    left = store.leave_schedule(name, actor=label(actor, "actor"), reason=label(reason, "reason"))
    points.reach("after-leave")
    return left


def applied(plan: Plan, scheduled: Scheduled, *, named: bool) -> Plan:
    """The plan of a question as a schedule has fixed it: by its first open step, or the first that was drawn.

    `named`: the asker names a cost or an error, which then has to come to the same. QuestionError where the schedule
    has no such step, or says something else.
    """
    steps = [step for step in scheduled.steps if step.question == plan.question]
    if not steps:
        raise QuestionError(
            f"the schedule {scheduled.name!r} has no step for {plan.query} on version {plan.version}: ask without it"
        )
    facts = next((step for step in steps if step.request is None), steps[0]).facts
    mechanism = mechanism_from(facts.mechanism)
    if named and mechanism != plan.mechanism:
        raise QuestionError(
            f"the schedule {scheduled.name!r} fixed {plan.query} otherwise than is asked: leave out cost and error"
        )
    return plan.with_mechanism(mechanism)


def accounting(steps: Iterable[tuple[Steps, int]], *, account: int | None = None) -> Schedule:
    """The accounting form of steps that run so many times each: what `parco account` reads; of one account, if named.

    Equal mechanisms are one entry. Raises RequestError if there is nothing to account for.
    """
    times = Counter[Facts]()
    for facts, count in steps:
        if account is None or any(charge.account == account for charge in facts.charges):
            release = _release(facts)
            times[release.facts] += count * release.times
    return Schedule(tuple(ScheduledRelease(facts, count) for facts, count in times.items() if count))


def _release(facts: Steps) -> ScheduledRelease:
    """A step as a pair: Gaussian noise by mu = D/s, its D rounded up; what is pure by its epsilon; a choice by its
    bounded range, so many times as a unit moves choices.
    """
    l1, l2_squared, scale = facts.sensitivity.l1, facts.sensitivity.l2_squared, facts.mechanism.scale
    match facts.mechanism.kind:
        case "gaussian":
            return ScheduledRelease(Gaussian(root_upper(l2_squared), scale))
        case "two-sided-geometric":
            return ScheduledRelease(Pure(l1 / scale))
        case "exponential":
            choices = l1**2 / l2_squared
            if choices.denominator == 1:
                return ScheduledRelease(Exponential(2 * l2_squared / l1 / scale), int(choices))
    raise VerificationError("a step of this schedule has a mechanism or sensitivity that nothing here can account for")


def root_upper(square: Fraction) -> Fraction:
    """The square root of a positive number, exact where it is rational, else rounded up by less than 2^-64 of it."""
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return Fraction(top, bottom)
    root = math.isqrt(square.numerator * square.denominator << 2 * _ROOT_BITS) + 1
    return Fraction(root, square.denominator << _ROOT_BITS)


@dataclass(frozen=True)
class Standing:
    """How an account stands to the schedules that were signed before anything was released from it.

    `claim` is what holds of all of them together, drawn or not, None once something was released outside of them, or
    what was released was recosted: `outside` is the first such entry.
    """

    schedules: tuple[Scheduled, ...]
    claim: Claim | None
    outside: HistoryRow | None


def standing(store: Store, contract: Contract, accounts: Sequence[AccountRow]) -> Standing | None:
    """What the schedules on a data set's accounts come to; None if none was signed before its first release.

    A schedule signed later was chosen in view of what was released: its releases count as outside. Source:
    docs/mathematics.md, "Drawn from a schedule".
    """
    schedules = [one for one in store.schedules() if one.dataset == contract.data.name]
    numbers = {row.account for row in accounts}
    if not schedules:
        return None
    history = store.history()
    own = {
        row.seq
        for row in history
        if row.mechanism is not None and any(charge.account in numbers for charge in row.charges)
    }
    released = [
        row
        for row in history
        if row.seq in own
        or row.state == "recover"  # whatever it charges: steps may have been drawn in the past that was lost
        or (row.state == "recost" and not own.isdisjoint(row.about))  # its mechanism is not what it was taken for
    ]
    first = min((row.seq for row in released), default=None)
    kept = tuple(one for one in schedules if first is None or one.position < first)
    if not kept:
        return None
    names = {one.name for one in kept}
    outside = next((row for row in released if row.schedule not in names), None)
    return Standing(kept, None if outside is not None else _claim(contract, accounts, kept), outside)


def _claim(contract: Contract, accounts: Sequence[AccountRow], schedules: Sequence[Scheduled]) -> Claim:
    """The largest over the accounts, as for every claim on several of them."""
    steps = [(step.facts, 1) for one in schedules for step in one.steps]
    charged = {charge.account: charge.cost for charge in total_of(steps)}
    labels = tuple(row.label for row in accounts)
    claims = [
        claim_of(
            contract,
            accounting(steps, account=row.account),
            total=charged[row.account] * COST_UNIT,
            labels=labels,
            names=tuple(one.name for one in schedules),
        )
        for row in accounts
        if row.account in charged
    ]
    return max(claims, key=lambda claim: claim.epsilon)


def claim_of(
    contract: Contract,
    schedule: Schedule,
    *,
    total: Fraction,
    labels: tuple[str, ...],
    names: tuple[str, ...],
    delta: Fraction | None = None,
) -> Claim:
    """The claim that a whole schedule may make, at the contract's delta unless another is given."""
    at = contract.budget.delta_for_conversion if delta is None else delta
    return schedule_claim(context_of(contract, labels), schedule, total=total, delta=at, schedules=names)


def scheduled_on(scheduled: Scheduled, contract: Contract) -> Scheduled:
    """The schedule, if it is on this contract's data set, or RequestError."""
    if scheduled.dataset != contract.data.name:
        raise RequestError(f"the schedule {scheduled.name!r} is on another data set, {scheduled.dataset!r}")
    return scheduled


def drawn_of(scheduled: Scheduled) -> int:
    """How many steps were drawn."""
    return sum(step.request is not None for step in scheduled.steps)


def open_charges(scheduled: Scheduled) -> tuple[Charge, ...]:
    """What the steps that are not drawn have set aside; nothing once the schedule was left."""
    if scheduled.ended is not None:
        return ()
    return total_of((step.facts, 1) for step in scheduled.steps if step.request is None)
