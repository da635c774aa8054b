"""Dominating Gaussians: the closed forms, Gaussians themselves, and domination between the points that were asked."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.privacy import dominating, exponential, gaussian, laplace, pure
from parco.privacy.tradeoff import Profile

NOTHING = Fraction(0)
CLOSED = [
    (pure.delta_upper, pure.mu_squared_upper),
    (laplace.delta_upper, laplace.mu_squared_upper),
    (exponential.delta_upper, exponential.mu_squared_upper),
]


class Counted:
    """A profile that counts how often it is asked, and never negative epsilons."""

    def __init__(self, profile: Profile) -> None:
        self.profile, self.asked = profile, 0

    def __call__(self, epsilon: Fraction) -> Fraction:
        assert epsilon >= 0
        self.asked += 1
        return self.profile(epsilon)


@pytest.mark.parametrize(("profile", "closed"), CLOSED)
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(30)])
def test_the_closed_forms_are_found_within_the_slack(profile: Profile, closed: Profile, epsilon: Fraction) -> None:
    own = Counted(lambda at: profile(epsilon, at=at))  # type: ignore[call-arg]
    found, least = dominating.mu_squared_upper(own, delta=NOTHING), closed(epsilon)
    assert least * (1 - Fraction(1, 2**50)) <= found <= least * (1 + dominating.SLACK) ** 2
    assert own.asked < 100


def gaussian_profile(mu_squared: Fraction) -> Counted:
    return Counted(lambda at: gaussian.delta_upper(mu_squared, at))


@settings(max_examples=12, deadline=None)
@given(mu_exponent=st.floats(-4, 1.3), delta_exponent=st.integers(-30, -6))
def test_a_gaussian_is_dominated_by_no_smaller_one(mu_exponent: float, delta_exponent: int) -> None:
    """A stated delta allows a mu less by at most sqrt(2 pi) delta, and a good deal of slack is needed for less."""
    mu, delta, slack = Fraction(10**mu_exponent), Fraction(10) ** delta_exponent, Fraction(1, 1000)
    found = dominating.mu_squared_upper(gaussian_profile(mu**2), delta=delta, slack=slack)
    least = max(mu - Fraction(2507, 1000) * delta, NOTHING)
    assert least**2 <= found <= (mu * (1 + slack)) ** 2


def test_a_gaussian_is_found_within_one_part_in_a_million() -> None:
    own = gaussian_profile(Fraction(1, 4))
    found = dominating.mu_squared_upper(own, delta=Fraction(1, 10**12))
    assert Fraction(1, 4) * (1 - Fraction(1, 10**11)) <= found <= Fraction(1, 4) * (1 + dominating.SLACK) ** 2
    assert own.asked < 4000


def mixture(at: Fraction) -> Fraction:
    """Removal of a unit sampled at rate 1/10 before Gaussian noise of scale 1; in doubles, and so a little raised."""
    q, e = 0.1, float(at)
    cut = math.log((math.exp(e) - 1 + q) / q) + 0.5
    tails = [math.erfc((cut - centre) / math.sqrt(2)) / 2 for centre in (0, 1)]
    return Fraction(max((1 - q) * tails[0] + q * tails[1] - math.exp(e) * tails[0], 0) * (1 + 1e-9))


@pytest.mark.parametrize("profile", [mixture, lambda at: exponential.delta_upper(Fraction(2), at=at)])
@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 10**7)])
def test_it_dominates_between_the_points_that_were_asked(profile: Profile, delta: Fraction) -> None:
    found = dominating.mu_squared_upper(profile, delta=delta)
    least = NOTHING
    for step in range(1500):
        at = Fraction(step, 317)
        excess = profile(at) - delta
        assert gaussian.delta_lower(found, at) >= excess
        if excess > 0:
            least = max(least, gaussian.mu_squared_lower(at, excess))
    assert found <= least * Fraction(1001, 1000)


def test_the_larger_order_of_a_pair_decides() -> None:
    small, large = gaussian_profile(Fraction(1, 10**6)), (lambda at: laplace.delta_upper(Fraction(1), at=at))
    alone = dominating.mu_squared_upper(large, delta=Fraction(1, 10**9))
    assert dominating.mu_squared_upper(small, delta=Fraction(1, 10**9), reverse=large) == alone
    assert dominating.mu_squared_upper(large, delta=Fraction(1, 10**9), reverse=small) == alone


def test_a_larger_delta_needs_less_and_enough_needs_nothing() -> None:
    own = lambda at: laplace.delta_upper(Fraction(1), at=at)  # noqa: E731 - a profile in one line
    costs = [dominating.mu_squared_upper(own, delta=Fraction(part, 100)) for part in (0, 1, 10, 39, 40)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-2] > costs[-1] == 0


class Rough:
    """The profile of randomised response, a part in a hundred too large at every second point."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, epsilon: Fraction) -> Fraction:
        self.asked += 1
        return pure.delta_upper(Fraction(1), at=epsilon) * (1 + Fraction(self.asked % 2, 100))


def test_rough_bounds_are_covered_as_they_are() -> None:
    rough = Rough()
    found = dominating.mu_squared_upper(rough, delta=Fraction(1, 100))

    def smooth(factor: Fraction) -> Fraction:
        return dominating.mu_squared_upper(
            lambda at: pure.delta_upper(Fraction(1), at=at) * factor, delta=Fraction(1, 100)
        )

    assert smooth(Fraction(1)) < found <= smooth(Fraction(101, 100)) * (1 + dominating.SLACK) ** 2
    assert rough.asked < 2000


def test_what_cannot_be_done_is_refused_with_what_to_do() -> None:
    with pytest.raises(RequestError, match="state a larger one"):
        dominating.mu_squared_upper(gaussian_profile(Fraction(1)), delta=NOTHING, slack=Fraction(1, 10))
    with pytest.raises(RequestError, match="state a delta above 0"):
        dominating.mu_squared_upper(lambda at: 1 + at, delta=NOTHING)
    one = Fraction(1)
    for delta, slack in ((-one, one), (one, one), (NOTHING, NOTHING), (NOTHING, 2 * one)):
        with pytest.raises(RequestError):
            dominating.mu_squared_upper(lambda at: 0 * at, delta=delta, slack=slack)
