"""One interactive mechanism of a session: which of several conditions is the first to hold for enough units of a part.

    begin     the full cost, durable before the first row is read, whatever will be asked
    check     exact counts of the units, one draw, and only pass or fail comes out; as often as wanted
    settle    the list of verdicts, at the first pass or at the end

The noisy threshold lives in this process alone. Killed, the run is over and its charge stands. While it is open, the
ledger admits nothing else on its accounts, from whichever process. Source: docs/mathematics.md, "Sparse vector".
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING

from parco import canonical
from parco.errors import RequestError, SharperError
from parco.ledger import points
from parco.measure import COST_UNIT, Cost, Exactable
from parco.mechanisms.mechanism import AboveThreshold
from parco.mechanisms.sparse_vector import LaplaceSparseVector, Stream
from parco.queries.plan import CONFIDENCE, Plan, Spend
from parco.queries.query import Query, Statistic
from parco.queries.sensitivity import sensitivity
from parco.session.questions import Asked
from parco.session.receipt import mechanism_in
from parco.session.release import Answer, Release

if TYPE_CHECKING:
    from parco.engines.duckdb import DuckDBEngine
    from parco.session.session import Session

__all__ = ["Checking", "scored"]

_NO_STEP = "checks are no step of a schedule, and end its claim: check without the schedule"
_FAILED = (
    "a check failed after its charge: the charge stands, and no more is checked. Why it failed is not told, since that"
    " could depend on somebody's row; `parco history` shows it as forfeited, and another run is a new charge"
)


def scored(session: Session, *, part: str, target: Fraction, condition: str, cost: Exactable) -> Release[Answer]:
    """One noisy score of a condition on a part's units, as a release by itself.

    Free where it is stored, as sharp; where it is stored less sharp, refined for the difference. Raises what a release
    raises. Source: docs/mathematics.md, "Stopping on a private validation set".
    """
    if session._schedule is not None:
        raise RequestError(_NO_STEP)
    query, spend = Query.scored(session.contract, part=part, target=target, where=condition), Spend.of(cost=cost)
    plan = Plan.of(query, version=session.version, spend=spend, asker=session.actor)
    asked = Asked(Statistic.SCORE, None, (), spend=spend, fresh=False, key=None)
    stored = session._stored(plan, asked)
    if stored is not None:
        return session._repeat(stored, plan)
    try:
        session._check_sharper(plan)
    except SharperError as error:
        known = session._store.stored(int(str(error.facts["release"])))
        paid = mechanism_in(known).cost_units(plan.sensitivity, session.contract.budget.measure)
        return session.refine(known.request, cost=(plan.cost.units - paid) * COST_UNIT)
    return session._answered([(plan, asked)])[plan.question]


class Checking:
    """For every part and share `target` of its units, a stream of checks that ends at its first pass, or RequestError.

    `vector`: the noise, for scores of this target. threshold: the noisy score that a pass has to reach, in lattice
    steps. attempts: how many checks there will be at most, for the record. Nothing is charged before the first check.
    """

    def __init__(
        self,
        session: Session,
        *,
        part: str,
        target: Fraction,
        vector: LaplaceSparseVector,
        threshold: int,
        attempts: int,
    ) -> None:
        if session._schedule is not None:
            raise RequestError(_NO_STEP)
        self._session, self._part, self._target = session, part, target
        self._vector, self._threshold, self._attempts = vector, threshold, attempts
        query = Query.scored(session.contract, part=part, target=target)
        mechanism = AboveThreshold(2 * vector.sensitivity / vector.epsilon, vector.lattice)
        distance = sensitivity(query)
        cost = Cost(mechanism.cost_units(distance, session.contract.budget.measure))
        self._plan = Plan(
            query, session.version, mechanism, distance, cost, Fraction(0), CONFIDENCE, asker=session.actor
        )
        self._request: int | None = None
        self._stream: Stream | None = None
        self._asked, self._verdicts = list[str](), list[int]()
        self._ended, self._process, self._lock = False, os.getpid(), threading.Lock()

    @property
    def accounts(self) -> tuple[str, ...]:
        """The labels of those that pay."""
        return self._plan.query.accounts

    @property
    def charged(self) -> int:
        """What was charged so far: nothing before the first check, then all, 10^-15 of the measure."""
        return 0 if self._request is None else self._plan.cost.units

    @property
    def request(self) -> int | None:
        """Its number on the ledger, None before the first check."""
        return self._request

    def check(self, condition: str) -> bool:
        """Whether the units that have a row meeting the condition are enough; RequestError once it has ended.

        What can be refused is refused before anything is read, and the run goes on: a condition that the contract does
        not allow, and at the first check the budget (BudgetError), or others on the account (BusyError). Any failure
        behind that ends the run, told by one constant message.
        """
        with self._lock:
            self._check_open()
            if len(self._verdicts) == self._attempts:
                raise RequestError(f"this run was begun for {self._attempts} checks at most")
            score = Query.scored(self._session.contract, part=self._part, target=self._target, where=condition)
            engine = self._session._engine([score])
            if self._request is None:
                self._request = self._begun()
            passed = self._told(score, engine)
            self._asked.append("" if score.where is None else str(score.where))
            self._verdicts.append(int(passed))
            if passed:
                self._settle()
            return passed

    def end(self) -> None:
        """Settles what was told, where a check was made; may be called twice, and does nothing in another process."""
        if os.getpid() == self._process:
            with self._lock:
                self._settle()

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise RequestError("this run belongs to the process that began it: a fork asks nothing of its threshold")
        if self._ended:
            raise RequestError("this run has passed or ended: nothing is checked any more")

    def _begun(self) -> int:
        """The request, its charge durable."""
        from parco.stores.records import Started

        asked = Asked(Statistic.CHECKS, None, (), spend=Spend(), fresh=True, key=None)
        request = replace(self._session._request(self._plan, asked), cells=self._attempts)
        points.reach("before-reserve")
        begun = self._session._store.begin(request, serves=lambda _: False)
        if not isinstance(begun, Started):
            raise AssertionError("a run of checks is asked afresh, and no stored answer serves it")
        return begun.request

    def _told(self, score: Query, engine: DuckDBEngine) -> bool:
        """Pass or fail; whatever fails here forfeits the run, told with one constant message."""

        def passes() -> bool:
            points.reach("after-reserve")
            passed = self._passes(self._exact(score, engine))
            points.reach("before-settle")
            return passed

        try:
            return self._session._or_forfeit(passes, [self._request or 0], told=_FAILED)
        except BaseException:
            self._ended, self._stream = True, None
            raise

    def _exact(self, score: Query, engine: DuckDBEngine) -> int:
        """The score in lattice steps."""
        (units,) = engine.run(score, secret=self._session._store.secret(self._session._signed.account))
        return units * int(1 / self._vector.lattice)

    def _passes(self, score: int) -> bool:
        """One draw against the noisy threshold, which is drawn before the first."""
        if self._stream is None:
            self._stream = self._vector.stream(self._threshold, self._session._bits())
        return self._stream.passes(score)

    def _settle(self) -> None:
        """What was told is stored; the threshold is forgotten."""
        self._stream, was_ended, self._ended = None, self._ended, True
        if was_ended or self._request is None:
            return
        number, told = self._request, {"cells": self._verdicts, "asked": self._asked, "parco": version("parco")}
        answer = canonical.encode(told | {"threshold": self._threshold})
        self._session._end(lambda: self._session._store.settle(number, answer=answer), [number])
        points.reach("after-settle")
