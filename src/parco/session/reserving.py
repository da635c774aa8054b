"""A question charged whole before it is read, its exact cells kept by this process until it is settled for less.

    plan      the finest law, from contract and question alone
    reserve   what that costs, on all accounts, durable before a row is read
    read      once
    draw      as often as the steps of a ladder ask for: by others, from the exact cells
    stop      what the law costs that was reached is charged, the rest is free again

Whatever fails in between forfeits the whole reservation, and so does a crash: nothing shows how far the run had come.
Source: docs/mathematics.md, "Settling less than was reserved".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar

from parco import canonical
from parco.errors import QuestionError, RequestError
from parco.ledger import points
from parco.ledger.entries import Charge, MechanismFacts
from parco.measure import COST_UNIT, Measure
from parco.mechanisms.mechanism import Additive, Mechanism, TwoSidedGeometric
from parco.mechanisms.stopping import units_apart
from parco.noise.bits import BitSource
from parco.queries.plan import Plan, Spend
from parco.session.ask import Ask
from parco.session.questions import Asked
from parco.session.release import Answer, Release

if TYPE_CHECKING:
    from parco.session.session import Session
    from parco.stores.records import Stored

__all__ = ["Reservation", "Reserving"]

T = TypeVar("T")


class Reserving:
    """For every question with noise on its cells, what its finest law is and costs; nothing is charged yet.

    ask: without cost and error, which `units` says: the most that it may cost. RequestError for a question that no
    ladder answers, in a session with a schedule, and for geometric noise that an account of another measure pays for.
    """

    def __init__(self, session: Session, ask: Ask, *, units: int) -> None:
        if ask.cost is not None or ask.error is not None:
            raise QuestionError("what is paid follows from the accuracy: leave out cost and error")
        if session._schedule is not None:
            raise RequestError("a run that gives back what it did not need is no step of a schedule: leave that out")
        parts = session._parts(replace(ask, cost=units * COST_UNIT))
        plan = session._plan(parts[0])
        if len(parts) != 1 or not isinstance(plan.mechanism, Additive) or plan.selection is not None:
            raise QuestionError("counts and sums are sharpened: ask the parts of a mean or variance by themselves")
        if isinstance(plan.mechanism, TwoSidedGeometric):
            # Each draw is refined on the lattice of the first.
            plan = plan.with_mechanism(TwoSidedGeometric(plan.mechanism.scale, plan.query.step))
        self._session, self.plan = session, plan
        self._asked = replace(parts[0], spend=Spend(confidence=plan.confidence))
        for measure in session._signed.ancestors.values():
            units_apart(plan.mechanism, (), plan.sensitivity, measure)

    def begin(self) -> Reservation | Release[Answer]:
        """Charges and reads; or the sharpest answer that is stored already, for nothing, unless a fresh one is asked.

        BudgetError, before the data are read, where an account does not hold the whole charge.
        """
        session, plan = self._session, self.plan
        if not self._asked.fresh and self._asked.key is None:
            if found := session._stored(plan, self._asked):
                return session._repeat(found, plan)
            session._check_sharper(plan)
        engine = session._engine([plan.query])
        (outcome,) = session._begin([(plan, self._asked)])
        if not isinstance(outcome, int):
            return session._repeat(outcome, plan)

        def read() -> tuple[int, ...]:
            from parco.engines.duckdb import sums

            points.reach("after-reserve")
            (found,) = engine.run_all([plan.query], secret=session._store.secret(session._signed.account))
            return tuple(sums(found))

        return Reservation(session, plan, self._asked, outcome, session._or_forfeit(read, [outcome]))


class Reservation:
    """One request that was charged whole, and its exact cells in lattice steps of the question; ended once.

    It belongs to the process that began it, RequestError in a fork: what that one settled, the other would draw beyond.
    """

    def __init__(self, session: Session, plan: Plan, ask: Asked, request: int, exact: tuple[int, ...]) -> None:
        self._session, self._plan, self._asked, self._request = session, plan, ask, request
        self._exact = exact
        self._bits = session._bits()
        self._ended, self._process = False, os.getpid()

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to end here."""
        return self._ended or os.getpid() != self._process

    def draw(self, act: Callable[[Sequence[int], BitSource], T]) -> T:
        """What `act` draws from the exact cells; where it fails all is forfeited, and why is told to nobody."""
        self._check_here()
        try:
            return self._session._or_forfeit(lambda: act(self._exact, self._bits), [self._request])
        except BaseException:
            # What is left in memory settles nothing; was it not forfeited, whoever comes next will.
            self._ended, self._exact = True, ()
            self._session._store.abandon(self._request)
            raise

    def stop(self, law: Mechanism, scales: Sequence[Fraction], body: Mapping[str, object]) -> Release[Answer]:
        """Settles at the law that was reached, with `scales` of each cell where they stand apart; `body`: the answer.

        The accounts are charged what that law costs in their measures, and hold the rest again.
        """
        from parco.stores.records import Stopped

        self._check_here()
        charges = tuple(
            Charge(number, units_apart(law, scales, self._plan.sensitivity, measure))
            for number, measure in sorted(self._measures().items())
        )
        facts = MechanismFacts(law.kind, law.scale, law.lattice)
        answer = canonical.encode({**body, "parco": version("parco")})
        stopped = Stopped(facts, charges, tuple(scales))
        self._ended, self._exact = True, ()
        points.reach("before-settle")
        store = self._session._store
        stored: Stored = self._session._end(
            lambda: store.stop(self._request, answer=answer, stopped=stopped), [self._request]
        )
        points.reach("after-settle")
        return self._session._release(stored, self._plan, repeat=False)

    def forfeit(self) -> None:
        """Spends the whole reservation."""
        self._check_here()
        self._ended, self._exact = True, ()
        self._session._end(lambda: self._session._store.forfeit(self._request), [self._request])

    def __repr__(self) -> str:
        return f"<request {self._request}, reserved>"

    def _check_here(self) -> None:
        if os.getpid() != self._process:
            raise RequestError("this run belongs to the process that began it: a fork neither draws for it nor ends it")

    def _measures(self) -> dict[int, Measure]:
        """Of each account that pays."""
        own = dict.fromkeys(self._session._charged(self._plan.query), self._session.contract.budget.measure)
        return own | dict(self._session._signed.ancestors)
