"""A stored answer made sharper for the difference in cost: one more exact draw, of the very same question.

What is refined is the last answer on the path that the named one is on, so that no path forks. The exact value is read
again for each draw and is never stored: what the ledger keeps are draws, from which every estimate is worked out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypedDict

from parco import canonical
from parco.errors import QuestionError, RefinedError, RequestError
from parco.measure import Cost, Measure, units_floor
from parco.mechanisms.mechanism import AboveThreshold, Additive, Exponential, Mechanism, TwoSidedGeometric
from parco.mechanisms.refinement import GeometricRefinement, RefinedGaussian
from parco.mechanisms.refining import refined_for_cost, refined_for_error
from parco.noise.bits import BitSource
from parco.privacy.sensitivity import Sensitivity
from parco.queries.plan import Plan, Refines, Spend
from parco.queries.query import Query
from parco.queries.recalled import query_of
from parco.queries.sensitivity import sensitivity
from parco.session.questions import Asked
from parco.session.receipt import JointReceipt, mechanism_in
from parco.session.release import Release

if TYPE_CHECKING:
    from parco.session.session import Session
    from parco.stores.records import Stored

__all__ = ["Refiner", "refined_answer"]


class Refiner:
    """The answer to one request of a session's ledger, and what it takes to make it sharper."""

    def __init__(self, session: Session, release: Release[Any] | int) -> None:
        """RequestError for what cannot be refined, and why."""
        self._session, self._store = session, session._store
        self._number = _number(release)
        named = self._store.answer(self._number)
        if named is None:
            raise RequestError(f"release {self._number} has no answer on this ledger: see `parco history`")
        if named.reserve.private != session._private:
            raise RequestError("noise from a tape and noise that is private are not mixed: ask anew on its own ledger")
        if named.stopped is not None:
            from parco.stores.requests import stopped_error

            raise stopped_error(self._number)
        for measure in {session.contract.budget.measure, *session._signed.ancestors.values()}:
            _check_kind(mechanism_in(named), measure)
        question = self._store.text(named.reserve.question)
        if question is None:
            raise RequestError(f"the question of release {self._number} was erased, so that nobody can ask it again")
        self._named, self._question = named, question
        self._query = self._read(question)
        distance, known = sensitivity(self._query), named.reserve.sensitivity
        measure, step = session.contract.budget.measure, self._query.step
        self._facts: _Facts = {"measure": measure, "sensitivity": distance, "step": step}
        if distance != Sensitivity(l1=known.l1, l2_squared=known.l2_squared):
            raise RequestError("this answer was charged for other contributions than the contract now allows: ask anew")

    def _read(self, question: str) -> Query:
        query = query_of(self._session.contract, question, version=self._session.version, asker=self._session.actor)
        if query.finds_keys:
            raise QuestionError("selected keys are not refined: which keys there are was decided by the noise itself")
        return query

    def planned(self, spend: Spend) -> Plan:
        """What it would cost; with what would remain, or `repeat` where a stored answer is sharp enough."""
        plan, _ = self._planned(spend)
        remaining = self._session._remaining(self._query) - plan.cost.value
        return replace(plan, remaining=remaining, also=() if plan.repeat else self._session._also(plan, ()))

    def release(self, spend: Spend) -> Release[Any]:
        """The sharper answer; where another was first, its answer if that serves, or else that one made sharper."""
        ask = Asked(self._query.statistic, None, (), spend=spend, fresh=False, key=None)
        while True:
            plan, stored = self._planned(spend)
            if stored is not None:
                return self._session._repeat(stored, plan)
            try:
                return self._session._answered([(plan, ask)])[plan.question]
            except RefinedError:
                continue

    def _planned(self, spend: Spend) -> tuple[Plan, Stored | None]:
        """The plan, and the stored answer that is sharp enough, if there is one."""
        if (spend.cost is None) == (spend.error is None):
            raise QuestionError("say how sharp: by error, or by cost, the most to pay beyond what the answer did")
        answers = self._store.answers(self._question)
        path = _path(answers, self._number)
        standing = [one for one in answers if one.reserve.private == self._session._private and one.replaced is None]
        served = [one for one in standing if self._serves(one, spend)]
        if served:
            best = min(served, key=lambda one: (one.mechanism.scale, one.request))
            return replace(self._plan(path, mechanism_in(best), spend), cost=Cost(0), repeat=True), best
        if self._session._schedule is not None:
            raise RequestError("a refinement is no step of a schedule, and ends its claim: refine without the schedule")
        if path[-1].replaced is not None:
            from parco.stores.requests import superseded_error

            raise superseded_error(path[-1])
        return self._plan(path, self._law(path, spend), spend), None

    def _serves(self, stored: Stored, spend: Spend) -> bool:
        """Whether it reaches the error; or, by cost, was paid as much in all, whoever went on from the named answer."""
        mechanism = mechanism_in(stored)
        if spend.cost is not None:
            paid = mechanism.cost_units(self._facts["sensitivity"], self._facts["measure"])
            return paid >= self._units(spend.cost)
        return spend.error is not None and _half_width(mechanism, spend) <= spend.error

    def _law(self, path: Sequence[Stored], spend: Spend) -> Mechanism:
        laws = [mechanism_in(one) for one in path]
        if spend.cost is not None:
            return refined_for_cost(**self._facts, before=laws, units=self._units(spend.cost))
        error = Fraction(0) if spend.error is None else spend.error
        return refined_for_error(**self._facts, before=laws, error=error, confidence=spend.confidence)

    def _units(self, cost: Fraction) -> int:
        more = units_floor(cost)
        if more == 0:
            raise QuestionError("the cost asked is below 1e-15, the least an account can count: ask for more")
        return mechanism_in(self._named).cost_units(self._facts["sensitivity"], self._facts["measure"]) + more

    def _plan(self, path: Sequence[Stored], law: Mechanism, spend: Spend) -> Plan:
        leaf, distance, measure = path[-1], self._facts["sensitivity"], self._facts["measure"]
        more = law.cost_units(distance, measure) - mechanism_in(leaf).cost_units(distance, measure)
        return Plan(
            self._query,
            self._session.version,
            mechanism=law,
            sensitivity=distance,
            cost=Cost(max(0, more)),
            half_width=_half_width(law, spend),
            confidence=spend.confidence,
            asker=self._session.actor,
            refines=Refines(leaf.request, mechanism_in(leaf), _drawn(path)),
        )


class _Facts(TypedDict):
    measure: Measure
    sensitivity: Sensitivity
    step: Fraction


def refined_answer(plan: Plan, refines: Refines, exact: Sequence[int], bits: BitSource) -> bytes:
    """The sharper answer as it will be stored; `exact`: the cells in steps of the statistic's own lattice."""
    mechanism, step = plan.mechanism, plan.query.step
    told = {"parco": version("parco")}
    if isinstance(mechanism, RefinedGaussian):
        draw = mechanism.path.draws[-1]
        finer = int(step / draw.lattice)
        drawn = draw.draw([steps * finer for steps in exact], bits)
        return canonical.encode({"cells": mechanism.cells([*refines.drawn, drawn]), "drawn": drawn, **told})
    if not isinstance(mechanism, TwoSidedGeometric) or not isinstance(refines.mechanism, TwoSidedGeometric):
        raise AssertionError("a law that nothing is refined to")
    finer = int(step / mechanism.lattice)
    pair = GeometricRefinement(refines.mechanism, mechanism)
    cells = pair.draw([steps * finer for steps in exact], refines.drawn[-1], bits)
    return canonical.encode({"cells": cells, **told})


def _number(release: Release[Any] | int) -> int:
    if isinstance(release, int) and not isinstance(release, bool):
        return release
    if not isinstance(release, Release):
        raise QuestionError("refine takes a release, or its number")
    if isinstance(release.receipt, JointReceipt):
        for part in release.receipt.parts:
            _check_kind(part.mechanism, part.measure)
        numbers = ", ".join(str(part.release) for part in release.receipt.parts)
        raise QuestionError(
            f"this answer is made of several releases ({numbers}): refine those that should be sharper, by their"
            " numbers, then ask the question again, which is free"
        )
    return release.receipt.release


def _check_kind(mechanism: Mechanism, measure: Measure) -> None:
    if isinstance(mechanism, AboveThreshold):
        raise QuestionError("verdicts on models are not refined: begin another run, which is paid anew")
    if isinstance(mechanism, Exponential):
        raise QuestionError(
            "this answer was chosen among candidates, and a choice is not refined: nothing of it carries over to a"
            " sharper one; ask anew with fresh=True (--fresh)"
        )
    if isinstance(mechanism, TwoSidedGeometric) and measure != Measure.PURE:
        raise QuestionError(
            "geometric noise is refined on accounts of the measure pure alone: elsewhere what a path costs is no"
            " function of its last answer; ask anew with fresh=True (--fresh)"
        )


def _path(answers: Sequence[Stored], number: int) -> list[Stored]:
    """The answers on the path of this one, from the first to the sharpest."""
    by_request = {one.request: one for one in answers}
    children = {list(one.before)[-1]: one for one in answers if one.before}
    path = [*(by_request[request] for request in by_request[number].before), by_request[number]]
    while path[-1].request in children:
        path.append(children[path[-1].request])
    return path


def _drawn(path: Sequence[Stored]) -> tuple[tuple[int, ...], ...]:
    """What was drawn along a path: the first answer itself, then each draw; of geometric noise each is an answer."""
    bodies = [canonical.decode(one.answer) for one in path]
    return tuple(tuple(body.get("drawn", body["cells"])) for body in bodies)


def _half_width(mechanism: Mechanism, spend: Spend) -> Fraction:
    if isinstance(mechanism, Additive | RefinedGaussian):
        return mechanism.half_width(spend.confidence)
    raise AssertionError("an answer that nothing refines")
