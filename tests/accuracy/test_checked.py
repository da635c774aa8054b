"""`until=` a validation: a model made of released values is checked where its units are, in memory and in a session."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest

import parco
from parco.accuracy.cells import Reach
from parco.accuracy.ladders import Geometric, Predictive
from parco.accuracy.loop import refine_until
from parco.accuracy.memory import Account, Held, HeldPart
from parco.accuracy.rules import View
from parco.accuracy.sessions import release_until
from parco.accuracy.validation import Validation
from parco.errors import BudgetError, BusyError, RequestError
from parco.measure import Measure
from tests.accuracy.test_sessions import PARTS, purchases
from tests.noise.tapes import Stream
from tests.shop import open_shop

CHECKS: list[Literal["gaussian", "sparse-vector"]] = ["gaussian", "sparse-vector"]
LADDER = Geometric("0.01", 2, count=4)
FIT = parco.Ask("count", by="channel", part="fit")


def paid(check: str) -> dict[str, str]:
    return {"cost": "0.05"} if check == "gaussian" else {"epsilon": "1"}


def spent(session: parco.Session) -> dict[str, int]:
    return {row.label: row.spent for row in session.budget()}


@pytest.fixture
def divided(tmp_path: Path) -> parco.Session:
    budget = 'measure = "gdp"\nmu = "3"\nreceipt_order = 8\ndelta = "1e-6"'
    return parco.Session(open_shop(tmp_path, purchases=purchases(900), budget=budget, columns=PARTS))


def held(check: Literal["gaussian", "sparse-vector"], *, cap: str = "10") -> tuple[Held, HeldPart, Account, Account]:
    fit, own = Account(Measure.GDP, cap, label="fit"), Account(Measure.GDP, cap, label="validation")
    rows = [[{"x": place}] for place in range(3000)]
    return (
        Held([1000, 50], fit, reach=Reach(1, Fraction(1)), bits=Stream(f"fit {check}")),
        HeldPart(rows, own),
        fit,
        own,
    )


@pytest.mark.parametrize("check", CHECKS)
def test_in_memory_a_run_stops_at_the_first_step_whose_model_passes(
    check: Literal["gaussian", "sparse-vector"],
) -> None:
    measurement, part, fit, own = held(check)
    seen = list[View]()

    def model(view: View) -> Any:
        seen.append(view)
        return lambda _: view.step >= 3

    until = Validation("0.9", check=check, model=model, **paid(check))
    found = refine_until(measurement, until, ladder=LADDER, desk=part)
    assert found.enough
    assert [view.step for view in seen] == [1, 2, 3] == [view.step for view in found.views]
    assert seen == list(found.views)
    outcome = found.validation
    assert outcome is not None
    assert (outcome.passed, outcome.attempts) == (True, 3)
    assert {label: cost.units for label, cost in outcome.by_account} == {"fit": fit.spent, "validation": own.spent}
    assert outcome.bound.units == max(fit.spent, own.spent)
    assert "checked 3 times" in str(found)
    assert ("score" in outcome.record()) == ("score" in str(found)) == (check == "gaussian")
    own.charge(1)  # the account is free again


@pytest.mark.parametrize("check", CHECKS)
def test_where_the_model_fails_the_checks_end_and_the_account_is_free(
    check: Literal["gaussian", "sparse-vector"],
) -> None:
    measurement, part, _, own = held(check)

    def model(view: View) -> Any:
        if view.step == 2:
            with pytest.raises(BusyError) if check == "sparse-vector" else pytest.raises(BudgetError):
                own.charge(10**19 if check == "gaussian" else 1)
            raise ZeroDivisionError("the caller's own")
        return lambda _: False

    with pytest.raises(ZeroDivisionError, match="own"):
        refine_until(measurement, Validation("0.9", check=check, model=model, **paid(check)), ladder=LADDER, desk=part)
    own.charge(1)


def test_an_account_without_room_for_a_check_ends_the_run() -> None:
    measurement, part, fit, own = held("gaussian", cap="0.12")
    until = Validation("0.9", cost="0.05", model=lambda _: lambda _: False)
    found = refine_until(measurement, until, ladder=LADDER, desk=part)
    assert (found.enough, found.out_of_budget, len(found.views)) == (False, True, 3)
    assert own.spent == pytest.approx(0.1e15, rel=1e-9)
    assert fit.spent == pytest.approx(0.04e15, rel=1e-9)
    again, part, fit, _ = held("gaussian", cap="0.04")
    with pytest.raises(BudgetError) as refused:
        refine_until(again, until, ladder=LADDER, desk=part)
    # The check was refused; what came before it was not.
    assert fit.spent > 0
    assert "stands with its charge" in refused.value.__notes__[0]


@pytest.mark.parametrize("passes", [True, False])
def test_in_a_session_the_model_says_a_condition(divided: parco.Session, passes: bool) -> None:
    def model(view: View) -> str:
        # Made of released values alone: which channel is the largest so far.
        assert len(view.estimates) == 3
        return "items = 3" if passes and view.step > 1 else "items = 1"

    until = Validation("0.8", cost="0.05", model=model)
    found = release_until(divided, FIT, until, at_most="0.08", ladder=LADDER)
    outcome = found.stopped.validation
    assert outcome is not None
    assert outcome.passed == found.stopped.enough == passes
    assert outcome.attempts == len(found.stopped.views) == (2 if passes else 4)
    assert {label: cost.units for label, cost in outcome.by_account} == spent(divided)
    told = found.record()["until"]["validation"]  # type: ignore[index]
    assert told == outcome.record()
    assert outcome.verdict is not None
    assert Fraction(told["score"]) == outcome.verdict.score
    assert "no promise about others" in str(outcome)
    # The score of each condition, once.
    assert spent(divided)["validation"] == pytest.approx((2 if passes else 1) * 0.05e15, rel=1e-9)
    before = spent(divided)
    again = release_until(divided, FIT, until, at_most="0.08", ladder=LADDER)
    assert again.release.value.values == found.release.value.values
    assert spent(divided) == before


@pytest.mark.parametrize("check", CHECKS)
def test_in_a_run_that_is_reserved_whole_the_checks_are_charged_beside_it(
    divided: parco.Session, check: Literal["gaussian", "sparse-vector"]
) -> None:
    until = Validation("0.8", check=check, model=lambda view: f"items = {view.step}", **paid(check))
    found = release_until(divided, FIT, until, at_most="0.08", ladder=LADDER, reserve=True)
    outcome = found.stopped.validation
    assert outcome is not None
    assert (outcome.passed, outcome.attempts, found.stopped.last.step) == (True, 3, 3)
    assert {label: cost.units for label, cost in outcome.by_account} == spent(divided)
    assert spent(divided)["fit"] == pytest.approx(0.04e15, rel=1e-9)
    assert all(row.reserved == 0 for row in divided.budget())
    divided._store.verify()


def test_without_a_ladder_costs_are_doubled(divided: parco.Session) -> None:
    """A check does not say how far is left, and nor does a function: nothing could be predicted."""
    until = Validation("0.8", cost="0.01", model=lambda _: "items = 3")
    found = release_until(divided, FIT, until, at_most="1.024")
    assert (found.stopped.enough, found.stopped.last.steps) == (True, 11)
    assert release_until(divided, FIT, lambda view: view.step == 3, at_most="1.024").stopped.enough


def test_what_cannot_be_is_refused_before_anything_is_charged(divided: parco.Session) -> None:
    measurement, part, fit, own = held("gaussian")
    until = Validation("0.9", cost="0.05", model=lambda _: lambda _: True)
    alone = Validation("0.9", check="sparse-vector", epsilon=1, model=lambda _: "items = 3")
    everybody = parco.Ask("count", by="channel")
    for wrong in (
        lambda: refine_until(measurement, until, ladder=LADDER),
        lambda: refine_until(measurement, until, ladder=Predictive("0.01"), at_most="1", desk=part),
        lambda: refine_until(measurement, Validation("0.9", cost=1), ladder=LADDER, desk=part),
        lambda: release_until(divided, FIT, Validation("0.8", cost="0.05"), at_most="0.1"),
        lambda: release_until(divided, everybody, alone, at_most="0.1"),
        lambda: parco.accuracy_first(part, [measurement], ladder=LADDER, validation=until),
    ):
        with pytest.raises(RequestError):
            wrong()
    assert (fit.spent, own.spent, *spent(divided).values()) == (0, 0, 0, 0)
