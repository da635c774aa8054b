"""Accuracy first in a session: what the ledger holds of a run, how it is taken up again, and checks on a part."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.accuracy.bands import Adaptive
from parco.accuracy.ladders import Geometric, Predictive
from parco.accuracy.noises import noise_of
from parco.accuracy.rules import AbsoluteError, RelativeError, View
from parco.accuracy.run import accuracy_first
from parco.accuracy.sessions import SessionMeasurement, release_until
from parco.accuracy.validation import Validation
from parco.mechanisms.refinement import RefinedGaussian
from tests.shop import COLUMNS, open_shop

GDP = 'measure = "gdp"\nmu = "2"\nreceipt_order = 8\ndelta = "1e-6"'
PARTS = COLUMNS + '[parts]\nfit = "0.5"\nvalidation = "0.5"\n'
DOUBLED = Geometric("0.001", 2)
COUNT = parco.Ask("count", by="channel")


def purchases(people: int) -> list[tuple[str, ...]]:
    return [(str(one), "2024-02-01", "3", "30", ("web", "shop", "phone")[one % 3]) for one in range(people)]


@pytest.fixture
def session(tmp_path: Path) -> parco.Session:
    budget = GDP.replace('delta = "1e-6"\n', "").replace('delta = "1e-6"', "")
    return parco.Session(open_shop(tmp_path, purchases=purchases(900), budget=budget + '\ndelta = "1e-6"'))


def spent(session: parco.Session) -> list[int]:
    return [row.spent for row in session.budget()]


@pytest.mark.parametrize("ladder", [None, DOUBLED, Predictive("0.001")])
def test_each_step_is_on_the_ledger_and_the_last_answer_is_good_enough(
    session: parco.Session, ladder: Geometric | None
) -> None:
    found = release_until(session, COUNT, RelativeError("10%"), at_most="2", ladder=ladder)
    assert found.stopped.enough
    rows = list(found.release.value)
    assert all(300 - 40 <= row.value <= 300 + 40 for row in rows)
    assert all(row.upper - row.value <= Fraction(1, 10) * row.value for row in rows)
    assert found.release.value.confidence == Fraction(95, 100)
    assert [found.stopped.cost.units] == spent(session)
    assert found.stopped.cost.value <= 2
    # A release, then refinements of it: as many as there were steps.
    assert session.accesses().first == 1
    assert session.accesses().refinement == len(found.stopped.views) - 1 > 0
    mechanism, sensitivity = found.release.receipt.mechanism, found.release.receipt.sensitivity
    assert mechanism.cost_units(sensitivity, parco.Measure.GDP) == found.stopped.cost.units


def test_a_run_that_was_broken_off_is_taken_up_from_the_ledger(session: parco.Session) -> None:
    """The predicate fails in the middle, as a crash would: what was released stays, and is paid once."""

    def breaks(view: object) -> bool:
        if view.step == 4:  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        release_until(session, COUNT, breaks, at_most="2", ladder=DOUBLED)
    before = spent(session)
    assert before[0] == pytest.approx(0.008e15, rel=1e-9)
    again = parco.Session(session.contract)
    found = release_until(again, COUNT, RelativeError("10%"), at_most="2", ladder=DOUBLED)
    assert found.stopped.enough
    mechanism, sensitivity = found.release.receipt.mechanism, found.release.receipt.sensitivity
    assert spent(again) == [mechanism.cost_units(sensitivity, parco.Measure.GDP)]
    assert found.stopped.cost.units == spent(again)[0] - before[0]
    # Steps that the ledger was past are free, and show what it has.
    assert [view.charged for view in found.stopped.views[:4]] == [0, 0, 0, 0]
    assert len({view.estimates for view in found.stopped.views[:4]}) == 1


def test_the_same_run_again_is_free(session: parco.Session) -> None:
    first = release_until(session, COUNT, RelativeError("10%"), at_most="2", ladder=DOUBLED)
    second = release_until(session, COUNT, RelativeError("10%"), at_most="2", ladder=DOUBLED)
    assert second.stopped.cost.units == 0
    assert second.release.value.values == first.release.value.values


def test_a_predictive_run_goes_on_from_a_stored_answer(session: parco.Session) -> None:
    """It has few steps, and none of them is lost on costs below what stands."""
    session.count(by="channel", cost="0.05")
    found = release_until(session, COUNT, RelativeError("6%"), at_most="2")
    assert found.stopped.enough
    charged = [view.charged for view in found.stopped.views]
    assert charged[0] == 0 < charged[-1]
    assert spent(session) == [found.stopped.cost.units + 50 * 10**12]


def test_a_predictive_run_ends_at_a_stored_answer_that_cost_the_cap(session: parco.Session) -> None:
    session.count(by="channel", cost="0.05")
    found = release_until(session, COUNT, RelativeError("0.1%"), at_most="0.05")
    assert not found.stopped.enough
    assert {view.charged for view in found.stopped.views} == {0}


def test_what_was_asked_for_is_the_cap_that_is_told(session: parco.Session) -> None:
    found = release_until(session, COUNT, RelativeError("20%"), at_most="0.3", reserve=True)
    assert found.release.receipt.reserved == found.stopped.cap == parco.Cost(3 * 10**14)
    for at_most in ("0", "-1"):
        with pytest.raises(parco.RequestError, match="at_most is a positive cost"):
            release_until(session, COUNT, RelativeError("20%"), at_most=at_most)


def test_never_to_get_there_costs_the_cap_and_no_more(session: parco.Session) -> None:
    found = release_until(session, COUNT, RelativeError("0.1%"), at_most="0.01", ladder=DOUBLED)
    assert not found.stopped.enough
    assert spent(session)[0] <= 0.01e15


def test_questions_without_noise_on_their_cells_are_refused(session: parco.Session) -> None:
    for ask in (
        parco.Ask("mean", "dollars"),
        parco.Ask("quantile", "dollars", at="0.5"),
        parco.Ask("top", "channel", k=1),
        parco.Ask("count", cost="0.1"),
        parco.Ask("count", fresh=True),
    ):
        with pytest.raises(parco.RequestError):
            SessionMeasurement(session, ask)
    with pytest.raises(parco.RequestError, match="together"):
        SessionMeasurement(session, COUNT).refine([1, 2, 3])
    assert spent(session) == [0]


def test_pure_accounts_refine_geometric_noise(tmp_path: Path) -> None:
    session = parco.Session(open_shop(tmp_path, purchases=purchases(900), budget='measure = "pure"\nepsilon = "5"'))
    found = release_until(session, COUNT, AbsoluteError(30), at_most="5")
    assert found.stopped.enough
    assert spent(session) == [found.stopped.cost.units]
    assert 0 < found.stopped.cost.value < 5


@pytest.fixture
def divided(tmp_path: Path) -> parco.Session:
    budget = 'measure = "gdp"\nmu = "3"\nreceipt_order = 8\ndelta = "1e-6"'
    return parco.Session(open_shop(tmp_path, purchases=purchases(900), budget=budget, columns=PARTS))


@pytest.mark.parametrize("passes", [True, False])
def test_a_model_is_checked_on_the_validation_part(divided: parco.Session, passes: bool) -> None:
    correct = "items = 3" if passes else "items = 2"
    ask = parco.Ask("count", by="channel", part="fit")
    validation = Validation("0.8", cost="0.05")
    with accuracy_first(divided, [ask], ladder=Geometric("0.01", 2, count=3), validation=validation) as run:
        for attempt in run:
            assert len(attempt.values[0]) == 3
            attempt.check(correct if attempt.number > 1 else "items = 1")
    outcome = run.outcome
    assert outcome.passed == passes
    assert outcome.attempts == (2 if passes else 3)
    by_label = {row.label: row.spent for row in divided.budget()}
    assert {label: cost.units for label, cost in outcome.by_account} == by_label
    assert outcome.bound.units == max(by_label.values())
    assert outcome.verdict is not None
    assert (outcome.verdict.score or 0) > 0 if passes else (outcome.verdict.score or 0) < 0
    # One score for each condition, of which the third attempt, where there is one, asks none that is new.
    assert by_label["validation"] == pytest.approx(2 * 0.05e15, rel=1e-9)
    assert by_label["fit"] == pytest.approx(0.02e15 if passes else 0.04e15, rel=1e-9)


def test_checks_that_a_session_does_not_have_are_refused(divided: parco.Session) -> None:
    ask = parco.Ask("count", by="channel", part="fit")
    ladder = Geometric("0.01", 2, count=3)
    with pytest.raises(parco.RequestError, match="part"):
        accuracy_first(divided, [ask], ladder=ladder, validation=Validation("0.8", cost="0.05", part="other"))
    with accuracy_first(divided, [ask], ladder=ladder, validation=Validation("0.8", cost="0.05")) as run:
        for attempt in run:
            with pytest.raises(parco.RequestError, match="condition"):
                attempt.check(lambda _: True)
            break
    assert {row.label: row.spent for row in divided.budget()}["validation"] == 0


class _BreakingError(RelativeError):
    """Fails at its third step, as a crash would."""

    def done(self, view: View) -> tuple[bool, ...]:
        if view.step == 3:
            raise KeyboardInterrupt
        return super().done(view)


def test_a_ladder_that_predicts_goes_on_from_what_is_stored(session: parco.Session) -> None:
    """It climbs to where the answer stands for nothing, and is charged for what that is not enough for."""
    with pytest.raises(KeyboardInterrupt):
        release_until(session, COUNT, _BreakingError("1%"), at_most="2")
    before = spent(session)[0]
    found = release_until(session, COUNT, RelativeError("10%"), at_most="2").stopped
    assert found.enough
    assert spent(session)[0] == before + found.cost.units
    charged = [view.charged for view in found.views]
    assert charged[:3] == [0, 0, 0]
    assert 0 < charged[3] < before
    again = release_until(session, COUNT, RelativeError("10%"), at_most="2").stopped
    assert again.enough
    assert (again.cost.units, len(again.views)) == (0, 1)
    assert again.last.half_widths == found.last.half_widths


def test_answers_that_were_there_before_a_ladder_that_predicts_are_counted(session: parco.Session) -> None:
    """Each may have been chosen by the estimates before it."""
    release = session.release([replace(COUNT, cost="0.0001")])[0]
    for _ in range(3):
        release = session.refine(release, cost="0.0001")
    found = release_until(session, COUNT, RelativeError("10%"), at_most="2").stopped
    # The first that it adds is the fifth on the path, and four more may follow.
    mechanism = session.refine(release, cost="1e-14").receipt.mechanism
    assert isinstance(mechanism, RefinedGaussian)
    fifth = RefinedGaussian(mechanism.before[4].scale, mechanism.before[4].lattice, before=mechanism.before[:4])
    assert found.views[0].charged > 0
    assert found.views[0].half_widths[0] == Adaptive(Fraction(1, 20), 9).half_width(noise_of(fifth))


def test_a_ladder_that_predicts_adds_nothing_where_the_stored_answer_has_cost_the_cap(session: parco.Session) -> None:
    session.release([replace(COUNT, cost="0.02")])
    before = spent(session)
    found = release_until(session, COUNT, RelativeError("1%"), at_most="0.02").stopped
    assert (found.enough, found.cost.units) == (False, 0)
    assert spent(session) == before
