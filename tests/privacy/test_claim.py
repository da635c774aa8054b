"""Claims: which may be made, what they carry, and that their words promise no more."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import claim, classical, expost, gaussian

GDP = claim.Context("customer", "add-or-remove", "at most 12 groups, 1 row each", Measure.GDP)
PURE = replace(GDP, measure=Measure.PURE)
DELTA, ORDER = Fraction(1, 10**6), Fraction(8)
CARRIED = {
    "epsilon", "delta", "unit", "neighbours", "bounds", "measure", "accountant", "fixed_in_advance", "sampling",
    "status", "order", "basis", "total",
}  # fmt: skip


def every_claim() -> list[claim.Claim]:
    return [
        *claim.cap_claims(GDP, cap=Fraction(1), delta=DELTA),
        *claim.cap_claims(PURE, cap=Fraction(1), delta=DELTA),
        *claim.realised_claims(GDP, total=Fraction(1, 4), order=ORDER, delta=DELTA),
        *claim.realised_claims(PURE, total=Fraction(1, 4), order=ORDER, delta=DELTA),
    ]


def test_the_cap_of_a_gdp_account_is_the_exact_profile_labelled_valid() -> None:
    made, classic = claim.cap_claims(GDP, cap=Fraction(1), delta=DELTA)
    assert made.epsilon == gaussian.epsilon_upper(Fraction(1), DELTA)
    assert (made.accountant, made.status, made.basis, made.order) == ("gaussian-profile", "valid", "cap", None)
    assert not made.fixed_in_advance
    assert classic.epsilon == classical.epsilon_upper(Fraction(1), DELTA) > made.epsilon
    assert (classic.accountant, classic.status, classic.basis) == ("closed-form", "valid", "cap")


def test_a_pure_account_has_its_total_and_no_delta() -> None:
    (made,) = claim.cap_claims(PURE, cap=Fraction(1), delta=DELTA)
    assert (made.epsilon, made.delta, made.accountant) == (Fraction(1), Fraction(0), "basic")
    (realised,) = claim.realised_claims(PURE, total=Fraction(1, 4), order=ORDER, delta=DELTA)
    assert (realised.epsilon, realised.delta) == (Fraction(1, 4), Fraction(0))
    assert realised.basis == "realised"
    assert realised.order is None


def test_the_realised_claims_are_the_two_ex_post_conversions_and_never_the_profile() -> None:
    total = Fraction(1, 4)
    hockey, probabilistic = claim.realised_claims(GDP, total=total, order=ORDER, delta=DELTA)
    assert hockey.epsilon == expost.hockey_stick_epsilon_upper(Fraction(1), order=ORDER, delta=DELTA)
    assert probabilistic.epsilon == expost.probabilistic_epsilon_upper(Fraction(1), order=ORDER, delta=DELTA)
    assert {hockey.accountant, probabilistic.accountant} == {"ex-post-hockey-stick", "ex-post-probabilistic"}
    assert min(hockey.epsilon, probabilistic.epsilon) > gaussian.epsilon_upper(total, DELTA)


def gaussian_delta(mu_squared: float, epsilon: float) -> float:
    """The Gaussian profile in doubles, any sign of epsilon: good enough at delta = 1e-3."""
    mu = math.sqrt(mu_squared)
    first, second = (math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2)) for side in (-1, 1))
    return (first - math.exp(epsilon) * second) / 2


def adaptive_delta(stages: tuple[float, float], epsilons: tuple[float, float]) -> float:
    """The slack that the claim "loss at most epsilon_k after stage k" needs against an analyst who stops to break it.

    The analyst stops after stage 1 when the loss L1 ~ N(mu^2/2, mu^2) exceeds epsilon_1; otherwise stage 2 runs.
    """
    mu = math.sqrt(stages[0])
    last = (epsilons[0] - stages[0] / 2) / mu
    width = (last + 9) / 20_000
    points = (-9 + (i + 0.5) * width for i in range(20_000))
    rest = epsilons[1] - stages[0] / 2
    second = width * sum(math.exp(-z * z / 2) * gaussian_delta(stages[1] - stages[0], rest - mu * z) for z in points)
    return gaussian_delta(stages[0], epsilons[0]) + second / math.sqrt(2 * math.pi)


def test_a_stopping_analyst_breaks_the_profile_of_the_realised_total_but_not_the_ex_post_claim() -> None:
    stages, delta = (Fraction(1, 4), Fraction(1)), Fraction(1, 1000)
    totals = (float(stages[0]), float(stages[1]))
    naive = [float(gaussian.epsilon_upper(total, delta)) for total in stages]
    claimed = [
        float(claim.realised_claims(GDP, total=total, order=Fraction(4), delta=delta)[0].epsilon) for total in stages
    ]
    assert adaptive_delta(totals, (naive[0], naive[1])) > 1.3 * float(delta)
    assert adaptive_delta(totals, (claimed[0], claimed[1])) <= float(delta)


@pytest.mark.parametrize("made", every_claim())
def test_a_record_carries_everything_as_plain_values(made: claim.Claim) -> None:
    record = made.record()
    assert set(record) == CARRIED
    assert all(value is None or isinstance(value, str | int | bool) for value in record.values())
    printed = Fraction(str(record["epsilon"]))
    assert made.epsilon <= printed <= made.epsilon * (1 + Fraction(1, 10**14))
    assert Fraction(str(record["total"])) == made.total
    assert len(str(record["epsilon"]).replace(".", "").lstrip("0")) <= 15


@pytest.mark.parametrize("made", every_claim())
def test_odds_appear_only_where_they_follow(made: claim.Claim) -> None:
    words = made.in_words()
    assert ("odds" in words) == (made.accountant == "ex-post-probabilistic" or made.delta == 0)
    assert ("Pr[S | in] <= e^" in words) == (made.accountant != "ex-post-probabilistic")
    assert ("not the probability" in words) == (made.delta > 0 and made.accountant != "ex-post-probabilistic")
    assert "customer" in words
    assert "add-or-remove" in words


def test_words_round_epsilon_up() -> None:
    made = replace(claim.cap_claims(PURE, cap=Fraction(1), delta=DELTA)[0], epsilon=Fraction("1.00001"))
    assert "e^1.001 " in made.in_words()


def test_an_ex_post_claim_speaks_of_outcomes_with_its_bound() -> None:
    hockey, _ = claim.realised_claims(GDP, total=Fraction(1, 4), order=ORDER, delta=DELTA)
    assert "come with this bound or a smaller one" in hockey.in_words()


def test_replacing_is_worded_as_two_values() -> None:
    words = claim.cap_claims(replace(PURE, neighbours="replace"), cap=Fraction(1), delta=DELTA)[0].in_words()
    assert "Pr[S | one value] <= e^1 Pr[S | another value]" in words


def test_unknown_neighbours_and_negative_totals_are_refused() -> None:
    with pytest.raises(RequestError):
        replace(GDP, neighbours="nearby")
    for context in (GDP, PURE):
        with pytest.raises(RequestError):
            claim.realised_claims(context, total=Fraction(-1), order=ORDER, delta=DELTA)
        with pytest.raises(RequestError):
            claim.cap_claims(context, cap=Fraction(-1), delta=DELTA)


def test_an_attackers_true_positive_rate_is_the_two_straight_lines() -> None:
    """Randomised response reaches both lines: at epsilon = log 3 and delta 0 the corner is (1/4, 3/4)."""
    log_three = Fraction(math.log(3)) + Fraction(1, 10**15)
    made = claim.Claim(PURE, log_three, Fraction(0), accountant="basic", status="valid", basis="cap", total=log_three)
    for rate, truth in ((0, 0), (0.1, 0.3), (0.25, 0.75), (0.5, 5 / 6), (1, 1)):
        found = made.true_positive_rate_upper(Fraction(rate))
        assert truth - 1e-12 <= found <= truth + 1e-12
    with_delta = replace(made, context=GDP, delta=Fraction(1, 100))
    assert with_delta.true_positive_rate_upper(Fraction(0)) == pytest.approx(0.01)
    with pytest.raises(RequestError):
        made.true_positive_rate_upper(Fraction(11, 10))


def test_words_tell_what_an_attacker_finds_only_where_every_set_is_bounded() -> None:
    for made in every_claim():
        assert ("finds at most" in made.in_words()) is (made.basis == "cap")
        parts = (made.context.in_words(), made.statement(), *made.caveats())
        assert made.in_words() == " ".join(parts)
