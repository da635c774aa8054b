"""What the proofs of docs/mathematics.md rest on, each where it once failed or nearly did."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from parco.balls import arb, precision
from parco.balls import ball as exactly
from parco.errors import InternalError, RequestError
from parco.privacy.composition import Interval, compose
from parco.privacy.composition.assemble import certain_part, order_of
from parco.privacy.composition.contour import Profile
from parco.privacy.composition.families import Line
from parco.privacy.composition.groups import grouped
from parco.privacy.composition.rounding import ELEMENTARY, UNIT, doubles_around, log_rest
from parco.privacy.composition.sampled import SampledGaussian, log_mixture
from parco.privacy.composition.sampled_interval import _gauss_legendre as gauss_legendre
from parco.privacy.composition.solve import Solved, is_near
from parco.privacy.facts import Approximate, Facts, Gaussian, Laplace, PrivacyProfile, Pure, RandomisedResponse
from parco.privacy.schedule import Schedule, ScheduledRelease
from tests.privacy.composition.build import composed, record, release

HALF = Fraction(1, 2)
mp.dps = 50


def meet(first: Interval, second: Interval) -> bool:
    """Whether both may hold the same number."""
    return first.lower <= second.upper and second.lower <= first.upper


@pytest.mark.parametrize(
    "facts",
    [
        RandomisedResponse(Fraction(1, 3)),
        RandomisedResponse(Fraction(2)),
        Laplace(Fraction(1), Fraction(1)),
        Gaussian(HALF, HALF),
    ],
)
def test_a_release_off_the_lattice_is_not_added_to_the_nodes_of_the_lattice(facts: Facts) -> None:
    schedule = Schedule((ScheduledRelease(RandomisedResponse(Fraction(1)), 200),))
    composition = compose(schedule)
    composition.epsilon("1e-6")
    more = ScheduledRelease(facts, 100)
    assert meet(composition.add(more).epsilon("1e-6"), compose(schedule.plus(more)).epsilon("1e-6"))


def test_what_the_nodes_at_hand_do_not_take_is_composed_anew() -> None:
    """They stand where losses of 10^-5 are told apart, and a loss of 3 is too wide for that."""
    composition = composed(
        record("laplace", sensitivity="6.41e-06", scale="1", times=62),
        record("randomised-response", epsilon="6.41e-06", rate="0.00532", times=108000),
        tolerance="1e-4",
    )
    composition.epsilon("8.6e-06")
    more = release("exponential", epsilon="2.94", rate="0.179", times=178)
    found = composition.add(more)
    assert found.solved == {}
    assert meet(found.epsilon("8.6e-06"), compose(found.schedule, "1e-4").epsilon("8.6e-06"))


def one_node(value: complex, error: float) -> Profile:
    line = Line(c=1.0, step=1.0, count=1)
    return Profile(
        line=line,
        log_moment=0.0,
        log_moment_error=0.0,
        values=np.array([value]),
        errors=np.array([error]),
        cut_off=0.0,
        aliases=((2.0, 0.0),),
        centre=0.0,
    )


def test_a_sum_that_is_not_known_bounds_nothing() -> None:
    for made in (one_node(0j, math.nan), one_node(0j, math.inf), one_node(complex(math.nan), 0.0)):
        assert made.log_delta_bounds(0.0) == (-math.inf, math.inf)
    with pytest.raises(InternalError, match="negative"):
        one_node(-1 + 0j, 0.5).log_delta_bounds(0.0)


def test_an_end_that_was_not_found_is_not_near() -> None:
    assert not is_near(Solved(0.0, math.inf), 1e-6)


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("rate", [Fraction(1, 100), HALF, Fraction(9, 10), Fraction(1)])
def test_one_point_of_a_profile_is_the_approximate_mechanism(rate: Fraction, removal: bool) -> None:
    epsilon, delta = HALF, Fraction(1, 10)
    pair = [Approximate(epsilon, delta), PrivacyProfile(((epsilon, delta),))]
    orders = [order_of(grouped([ScheduledRelease(facts, 3, rate)]), removal=removal) for facts in pair]
    for c in (0.1, 1.0, 10.0):
        first, second = (order.moments.log_moment(c) for order in orders)
        assert abs(first[0] - second[0]) <= first[1] + second[1]
    first, second = (order.moments.largest for order in orders)
    assert first == pytest.approx(second, rel=1e-12)


@pytest.mark.parametrize("removal", [True, False])
def test_rates_near_one_are_not_rounded(removal: bool) -> None:
    rest = Fraction(1, 10**15)
    [family] = order_of(grouped([ScheduledRelease(Pure(Fraction(100)), 1, 1 - rest)]), removal=removal).moments.families
    odds = mp.exp(100)
    likely, rare = odds / (1 + odds), 1 / (1 + odds)
    first, second = (mpf(rest) + (1 - mpf(rest)) * ratio for ratio in (odds, 1 / odds))
    for c in (0.5, 1, 20):
        truth = (
            rare * first ** (c + 1) + likely * second ** (c + 1) if removal else rare * first**-c + likely * second**-c
        )
        value, error = family.log_moment(c)
        assert abs(mpf(value) - mp.log(truth)) <= mpf(error)


def log_moment_of_a_sampled_gaussian(rate: Fraction, scale: Fraction, node: complex, *, removal: bool) -> acb:
    """log M(z) by a long trapezoid sum on a shifted line, in balls."""
    q, s, z = exactly(rate), exactly(scale), acb(arb(node.real), arb(node.imag))
    narrow = arb(min(1.0, float(scale)))
    step, shift = s * narrow * arb(0.05), s * narrow * arb(1.2)
    total, most = acb(0), int(20 / 0.05 / min(1.0, float(scale)))
    for index in range(-most, most + 1):
        x = acb(step * index, shift if removal else -shift)
        loss = (1 - q + q * ((2 * x - 1) / (2 * s * s)).exp()).log()
        total += (loss * (z + 1 if removal else -z) - x * x / (2 * s * s)).exp()
    return (total * step / (s * (2 * arb.pi()).sqrt())).log()


def sampled(rate: Fraction, scale: Fraction, *, removal: bool) -> SampledGaussian:
    [family] = order_of(
        grouped([ScheduledRelease(Gaussian(Fraction(1), scale), 1, rate)]), removal=removal
    ).moments.families
    assert isinstance(family, SampledGaussian)
    return family


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("scale", [HALF, Fraction(1)])
def test_no_envelope_of_a_sampled_gaussian_falls_below_what_its_rule_leaves_open(
    scale: Fraction, removal: bool
) -> None:
    bound = sampled(HALF, scale, removal=removal).envelope(1.0)
    with precision(200):
        centre = log_moment_of_a_sampled_gaussian(HALF, scale, 1, removal=removal)
        for height in (5.0, 1e3, 1e6):
            size = log_moment_of_a_sampled_gaussian(HALF, scale, complex(1, height), removal=removal) - centre
            assert size.real < arb(bound(height))


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("rate", [Fraction(1, 10**6), 1 - Fraction(1, 10**10)])
def test_ratios_at_great_heights_are_off_by_no_more_than_they_say(rate: Fraction, removal: bool) -> None:
    family = sampled(rate, Fraction(1), removal=removal)
    line = Line(1.0, 3e4 if rate < HALF else 5.0, 2)
    ratios, bounds = family.log_ratios(line)
    with precision(200):
        truth = [log_moment_of_a_sampled_gaussian(rate, Fraction(1), complex(z), removal=removal) for z in line.nodes]
        ratio = (truth[1] - truth[0]).exp() / acb(complex(ratios[1])).exp()
        assert abs(ratio - 1) < arb(math.expm1(bounds[1]))
        assert bounds[1] < 1e-6


def test_deltas_of_releases_are_as_sharp_as_they_are_small() -> None:
    delta = Fraction(1, 10**60)
    certain = certain_part(grouped([ScheduledRelease(Approximate(HALF, delta), 7)]), removal=True)
    assert certain.lower <= 1 - (1 - delta) ** 7 <= certain.upper <= 7 * delta
    assert certain.upper - certain.lower < delta / 10**12


@given(st.fractions(0, 10**6))
def test_doubles_stand_around_a_number(value: Fraction) -> None:
    low, high = doubles_around(value)
    assert low <= value <= high <= math.nextafter(low, math.inf)


@pytest.mark.parametrize("epsilon", ["0", "1", "7.5", "22"])
def test_deltas_near_one_are_found(epsilon: str) -> None:
    with mp.workdps(110), precision(400):
        times, odds, cut = 15, mp.e**2, mp.exp(mpf(epsilon))
        terms = (
            mp.binomial(times, k) * (odds ** (times - k) - cut * odds**k) / (1 + odds) ** times
            for k in range(times + 1)
        )
        truth = mp.fsum(max(term, 0) for term in terms)
        found = compose(Schedule((ScheduledRelease(RandomisedResponse(Fraction(2)), times),))).delta(epsilon)
        assert exactly(found.lower) <= arb(str(truth)) <= exactly(found.upper)


FUNCTIONS = {
    "exp": (np.exp, -700.0, 700.0),
    "expm1": (np.expm1, -700.0, 700.0),
    "log": (np.log, 1e-300, 1e300),
    "log1p": (np.log1p, -0.99, 1e9),
    "sinh": (np.sinh, -30.0, 30.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(st.data())
def test_elementary_functions_of_numpy_keep_to_the_model(name: str, data: st.DataObject) -> None:
    function, low, high = FUNCTIONS[name]
    points = np.array(data.draw(st.lists(st.floats(low, high, allow_subnormal=False), min_size=1, max_size=16)))
    with precision(200):
        for point, value in zip(points, function(points), strict=True):
            truth = getattr(arb(point), name)()
            assert abs(arb(value) - truth) <= ELEMENTARY * UNIT * abs(truth) + 1e-307


@given(st.lists(st.complex_numbers(max_magnitude=1e6, allow_subnormal=False), min_size=1, max_size=16))
def test_complex_exponentials_and_logarithms_of_numpy_keep_to_the_model(numbers: list[complex]) -> None:
    points = np.array(numbers)
    points = points.clip(-600, 600).real + 1j * points.imag
    turned = np.exp(points)
    with precision(200):
        for point, value in zip(points, turned, strict=True):
            truth = acb(complex(point)).exp()
            assert abs(acb(complex(value)) - truth) <= 2 * ELEMENTARY * UNIT * abs(truth)
        for point, value in zip(turned, np.log(turned), strict=True):
            truth = acb(complex(point)).log()
            assert abs(acb(complex(value)) - truth) <= ELEMENTARY * UNIT * (1 + abs(truth))


@given(
    st.fractions(Fraction(1, 10**9), 1 - Fraction(1, 10**9)),
    st.complex_numbers(max_magnitude=60, allow_subnormal=False),
)
def test_logarithms_of_mixtures_are_off_by_no_more_than_they_say(rate: Fraction, number: complex) -> None:
    exponent = complex(number.real, math.remainder(number.imag, math.pi))
    logs, blur = log_mixture(np.array([float(rate)]), np.array([log_rest(rate)]), np.array([exponent]), 0.0)
    with precision(200):
        truth = (1 - exactly(rate) + exactly(rate) * acb(exponent).exp()).log()
        assert abs(acb(complex(logs[0])) - truth) <= UNIT * blur[0]


def test_knots_and_weights_of_the_quadrature_rule_are_doubles_of_the_true_ones() -> None:
    knots, weights, aheads = gauss_legendre()
    count = len(knots)
    with precision(200):
        for index in range(count):
            knot, weight = arb.legendre_p_root(count, index, weight=True)
            assert abs(arb(knots[index]) - knot) <= UNIT
            assert abs(arb(weights[index]) / weight - 1) <= UNIT
            assert abs(arb(aheads[index]) / (1 + knot) - 1) <= UNIT


def test_what_is_beyond_doubles_is_refused() -> None:
    with pytest.raises(RequestError, match="1e300"):
        compose(Schedule((ScheduledRelease(Pure(HALF)),))).delta(10**400)
