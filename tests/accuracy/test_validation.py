"""Private validation: scores, both checks, the run around them, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parco.accuracy.cells import Reach
from parco.accuracy.ladders import Explicit, Geometric, Predictive
from parco.accuracy.memory import Account, Held, HeldPart
from parco.accuracy.run import Attempt, Run, accuracy_first
from parco.accuracy.validation import GaussianCheck, SparseVectorCheck, Validation, Verdict
from parco.errors import BudgetError, BusyError, InternalError, RequestError
from parco.measure import Measure
from parco.mechanisms.sparse_vector import LaplaceSparseVector
from tests.noise.tapes import Stream

ONE = Fraction(1)
CHECKS: list[Literal["gaussian", "sparse-vector"]] = ["gaussian", "sparse-vector"]
Rows = Sequence[Mapping[str, Any]]


def validation(check: Literal["gaussian", "sparse-vector"], **more: Any) -> Validation:
    paid = {"cost": "0.05"} if check == "gaussian" else {"epsilon": "1"}
    return Validation("0.9", check=check, **(paid | more))


def units(count: int, wrong: int = 0) -> list[list[dict[str, object]]]:
    return [[{"x": place, "label": place >= wrong}] for place in range(count)]


def held_part(rows: Sequence[Rows], *, measure: Measure = Measure.GDP, cap: str = "10") -> tuple[HeldPart, Account]:
    account = Account(measure, cap, label="validation")
    return HeldPart(rows, account, bits=Stream("part")), account


def is_right(rows: Rows) -> bool:
    return bool(rows[0]["label"])


@given(num=st.integers(1, 9), flags=st.lists(st.booleans(), max_size=8), more=st.booleans())
def test_one_unit_moves_the_score_by_at_most_the_reach(num: int, flags: list[bool], more: bool) -> None:
    known = Validation(Fraction(num, 10), cost=1)
    before, after = known.score(sum(flags), len(flags)), known.score(sum(flags) + more, len(flags) + 1)
    assert abs(after - before) <= known.reach
    num_lowest, den = Fraction(num, 10).as_integer_ratio()
    assert known.reach == max(num_lowest, den - num_lowest)
    accuracy_met = len(flags) == 0 or Fraction(sum(flags), len(flags)) >= Fraction(num, 10)
    assert (known.score(sum(flags), len(flags)) >= 0) == accuracy_met


@pytest.mark.parametrize("check", CHECKS)
def test_good_models_pass_and_bad_ones_do_not(check: Literal["gaussian", "sparse-vector"]) -> None:
    for wrong, passes in ((0, True), (600, False)):
        part, account = held_part(units(2000, wrong))
        checker = part.checker(validation(check), attempts=3)
        verdicts = [checker.check(is_right)]
        if not passes:
            verdicts += [checker.check(is_right), checker.check(is_right)]
        assert [verdict.passed for verdict in verdicts] == [passes] * len(verdicts)
        assert account.spent == checker.charged > 0
        for verdict in verdicts:
            exact = validation(check).score(2000 - wrong, 2000)
            if check == "gaussian":
                assert verdict.score is not None
                assert verdict.half_width is not None
                assert abs(verdict.score - exact) <= 2 * verdict.half_width
            else:
                assert verdict == Verdict(passes)


def test_a_gaussian_check_is_paid_each_time_and_a_sparse_vector_once() -> None:
    part, account = held_part(units(100, 100))
    checker = part.checker(validation("gaussian"), attempts=4)
    spent = []
    for _ in range(4):
        checker.check(is_right)
        spent.append(account.spent)
    assert spent == [spent[0] * times for times in (1, 2, 3, 4)]
    part, account = held_part(units(100, 100))
    checker = part.checker(validation("sparse-vector"), attempts=4)
    spent = []
    for _ in range(4):
        checker.check(is_right)
        spent.append(account.spent)
    assert set(spent) == {LaplaceSparseVector(Fraction(9), ONE, ONE).cost_units(Measure.GDP)}


def test_while_a_sparse_vector_runs_nothing_else_does_on_its_account() -> None:
    part, account = held_part(units(50, 50))
    checker = part.checker(validation("sparse-vector"), attempts=4)
    checker.check(is_right)
    other = Held([5], account, reach=Reach(1, ONE))
    with pytest.raises(BusyError):
        other.refine([10**12])
    with pytest.raises(BusyError):
        part.checker(validation("sparse-vector"), attempts=1).check(is_right)
    checker.end()
    other.refine([10**12])
    with pytest.raises(RequestError, match="ended"):
        checker.check(is_right)


def test_nothing_of_a_model_that_fails_is_told() -> None:
    """A unit about which the model raises, or returns no truth value, counts as wrong, and nobody learns why."""

    class NoTruth:
        def __bool__(self) -> bool:
            raise ValueError("secret of somebody's row")

    def strange(rows: Rows) -> object:
        if rows[0]["x"] == 3:
            raise ZeroDivisionError("secret of somebody's row")
        return NoTruth() if rows[0]["x"] == 4 else 7

    known = validation("gaussian", cost="9000")
    part, _ = held_part(units(500), cap="9001")
    verdict = part.checker(known, attempts=1).check(strange)
    # The noise is a tenth of the score's unit.
    assert round(verdict.score or 0) == known.score(498, 500)
    assert "secret" not in repr(verdict) + repr(part)


def test_rows_are_read_only() -> None:
    def spoils(rows: Any) -> bool:
        rows[0]["label"] = True
        return True

    known = validation("gaussian", cost="9000")
    part, _ = held_part(units(20), cap="9001")
    assert round(part.checker(known, attempts=1).check(spoils).score or 0) == known.score(0, 20)


Found = tuple[Run, Account, Account, list[Attempt]]


def run(check: Literal["gaussian", "sparse-vector"], *, fails: int) -> Found:
    """A run whose model is right from attempt `fails` on."""
    fit = Account(Measure.GDP, "10", label="fit")
    part, account = held_part(units(3000))
    measurement = Held([1000, 50], fit, reach=Reach(1, ONE), bits=Stream("fit"))
    attempts = list[Attempt]()
    ladder = Geometric("0.01", 2, count=5)
    with accuracy_first(part, [measurement], ladder=ladder, validation=validation(check)) as found:
        for attempt in found:
            attempts.append(attempt)
            attempt.check(lambda _, good=attempt.number >= fails: good)
    return found, fit, account, attempts


def test_attempts_that_nobody_checks_are_not_told_as_checked() -> None:
    part, _ = held_part(units(30))
    measurement = Held([10], Account(Measure.GDP, "10", label="fit"), reach=Reach(1, ONE), bits=Stream("fit"))
    ladder = Geometric("0.01", 2, count=3)
    with accuracy_first(part, [measurement], ladder=ladder, validation=validation("gaussian")) as found:
        for attempt in found:
            if attempt.number == 2:
                attempt.check(lambda _: False)
    assert found.outcome.attempts == 1
    assert "The model was checked once on units" in str(found.outcome)


@pytest.mark.parametrize("check", CHECKS)
def test_a_run_ends_at_its_first_pass(check: Literal["gaussian", "sparse-vector"]) -> None:
    found, fit, account, attempts = run(check, fails=3)
    outcome = found.outcome
    assert outcome.passed
    assert outcome.attempts == len(attempts) == 3
    assert [len(attempt.values[0]) for attempt in attempts] == [2, 2, 2]
    assert len({attempt.values for attempt in attempts}) == 3
    assert fit.spent == pytest.approx(0.04e15, rel=1e-9)
    assert dict(outcome.by_account) == {"fit": outcome.by_account[0][1], "validation": outcome.by_account[1][1]}
    assert [cost.units for _, cost in outcome.by_account] == [fit.spent, account.spent]
    # Parts share no unit: the maximum, not the sum.
    assert outcome.bound.units == max(fit.spent, account.spent)


@pytest.mark.parametrize("check", CHECKS)
def test_never_to_pass_is_an_ordinary_result_with_its_full_bound(check: Literal["gaussian", "sparse-vector"]) -> None:
    found, fit, account, attempts = run(check, fails=99)
    assert not found.outcome.passed
    assert len(attempts) == 5
    assert found.outcome.bound.units == max(fit.spent, account.spent)
    assert fit.spent == pytest.approx(0.16e15, rel=1e-9)
    # The account is free again.
    account.charge(1)


def test_measurements_on_the_same_account_add_up() -> None:
    shared = Account(Measure.GDP, "10", label="validation")
    part = HeldPart(units(100), shared, bits=Stream("shared"))
    measurement = Held([1000], shared, reach=Reach(1, ONE), bits=Stream("fit"))
    with accuracy_first(part, [measurement], ladder=Explicit(("0.01",)), validation=validation("gaussian")) as found:
        for attempt in found:
            attempt.check(is_right)
    assert found.outcome.bound.units == shared.spent == measurement.charged + 5 * 10**13
    with pytest.raises(RequestError, match="only thing that runs"):
        accuracy_first(part, [measurement], ladder=Explicit(("1",)), validation=validation("sparse-vector"))


def test_what_cannot_be_is_refused() -> None:
    part, account = held_part(units(10))
    pure, _ = held_part(units(10), measure=Measure.PURE)
    measurement = Held([10], Account(Measure.GDP, 10, label="fit"), reach=Reach(1, ONE))
    for wrong in (
        lambda: Validation("1", cost=1),
        lambda: Validation("1/3333333", cost=1),
        lambda: Validation("0.9"),
        lambda: Validation("0.9", cost=0),
        lambda: Validation("0.9", cost=1, epsilon=1),
        lambda: Validation("0.9", check="sparse-vector", cost=1),
        lambda: Validation("0.9", check="guess", cost=1),  # type: ignore[arg-type]
        lambda: Validation("0.9", cost=1, confidence=1),
        lambda: pure.checker(validation("gaussian"), attempts=1),
        lambda: part.checker(validation("gaussian", part="other"), attempts=1),
        lambda: part.checker(validation("gaussian"), attempts=1).check("x > 3"),
        lambda: accuracy_first(part, [], ladder=Explicit((1,)), validation=validation("gaussian")),
        lambda: accuracy_first(part, [measurement], ladder=Predictive(1), validation=validation("gaussian"), at_most=2),
    ):
        with pytest.raises(RequestError):
            wrong()
    assert account.spent == 0
    small, _ = held_part(units(10), cap="0.01")
    with pytest.raises(BudgetError):
        small.checker(validation("gaussian"), attempts=1).check(is_right)


def test_an_attempt_is_checked_once_and_a_run_is_climbed_once() -> None:
    found, _, _, attempts = run("gaussian", fails=1)
    for wrong in (lambda: attempts[0].check(is_right), lambda: list(found)):
        with pytest.raises(RequestError):
            wrong()


def test_margins_are_rounded_up_to_the_lattice_and_thresholds_stay_on_it() -> None:
    check = SparseVectorCheck(validation("sparse-vector", epsilon="9", margin="0.3"), Measure.PURE)
    assert check.first_units == 9 * 10**15
    # Threshold noise has scale 2 * 9/9 = 2: eight steps of 1/4 of a unit; 0.3 becomes 2/4.
    assert check._threshold == 2
    gaussian = GaussianCheck(validation("gaussian", cost="9000", margin="5"), Measure.GDP, attempts=1)
    assert [gaussian.verdict(score, Stream("m")).passed for score in (4, 6)] == [False, True]


def test_a_stream_that_has_passed_answers_nothing_more() -> None:
    check = SparseVectorCheck(validation("sparse-vector"), Measure.GDP)
    assert check.verdict(10**6, Stream("ended")).passed
    with pytest.raises(InternalError):
        check.verdict(10**6, Stream("ended"))
