"""What a schedule would cost, and what could be claimed of it, before anything is signed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from parco.contract.contract import Contract
from parco.errors import RequestError
from parco.ledger.entries import Charge, total_of
from parco.measure import COST_UNIT, Exactable, Measure, decimal_text, exact
from parco.privacy.claim import Claim, cap_claims
from parco.privacy.schedule import Schedule
from parco.queries.plan import Plan
from parco.session.receipt import context_of
from parco.session.schedules import ScheduledAsk, accounting, claim_of, planned, steps_of

if TYPE_CHECKING:
    from parco.session.session import Session

__all__ = ["Price", "price"]


@dataclass(frozen=True)
class Price:
    """A schedule's price: `plans` with how often each is asked, `cost` in all, `remaining` on the account afterwards.

    `filter` is the claim of the account's cap, which holds whatever is released, `filter_alone` that of a cap of this
    cost, and `tight` the claim while nothing is released outside. `schedule` is its accounting form.
    """

    plans: tuple[tuple[Plan, int], ...]
    measure: Measure
    cost: Fraction
    remaining: Fraction
    filter: Claim
    filter_alone: Claim
    tight: Claim
    schedule: Schedule

    @property
    def fits(self) -> bool:
        """Whether the account holds what it costs."""
        return self.remaining >= 0

    def record(self) -> dict[str, object]:
        """As text, for JSON."""
        return {
            "plans": [{**plan.record(), "times": times} for plan, times in self.plans],
            "measure": str(self.measure),
            "cost": decimal_text(self.cost),
            "remaining": decimal_text(self.remaining),
            "fits": self.fits,
            "filter": self.filter.record(),
            "filter_alone": self.filter_alone.record(),
            "tight": self.tight.record(),
            "schedule": self.schedule.records(),
        }


def price(session: Session, asks: Sequence[ScheduledAsk], *, name: str, delta: Exactable | None = None) -> Price:
    """For every list of questions with their versions, returns what signing them as a schedule would come to.

    Nothing is signed. The claims are at `delta`, by default the contract's; in pure, which has none, the filter's are
    at delta 0 whatever is asked. Of several accounts the one that has least left is told.
    """
    contract, plans = session.contract, planned(session, asks)
    steps = steps_of(session, plans)
    counted = [(one, len(one.questions)) for one in steps]
    charges = total_of(counted)
    account, left = _least(session, charges)
    total = next(charge.cost for charge in charges if charge.account == account) * COST_UNIT
    at = None if delta is None else exact(delta, "delta")
    if at is not None and not 0 < at < 1:
        raise RequestError("delta lies strictly between 0 and 1")
    schedule = accounting(counted, account=account)
    labels = tuple(session._signed.accounts)
    cap = next(row.cap for row in session.budget() if row.account == account) * COST_UNIT
    return Price(
        plans=tuple((plan, len(versions)) for plan, versions in plans),
        measure=contract.budget.measure,
        cost=total,
        remaining=left,
        filter=_filter(contract, labels, cap, at),
        filter_alone=_filter(contract, labels, total, at),
        tight=claim_of(contract, schedule, total=total, labels=labels, names=(name,), delta=at),
        schedule=schedule,
    )


def _least(session: Session, charges: Sequence[Charge]) -> tuple[int, Fraction]:
    rows = {row.account: row for row in session.budget()}
    left = {charge.account: rows[charge.account].remaining - charge.cost for charge in charges}
    account = min(left, key=lambda number: (left[number], number))
    return account, left[account] * COST_UNIT


def _filter(contract: Contract, labels: tuple[str, ...], cap: Fraction, delta: Fraction | None) -> Claim:
    at = contract.budget.delta_for_conversion if delta is None else delta
    return cap_claims(context_of(contract, labels), cap=cap, delta=at)[0]
