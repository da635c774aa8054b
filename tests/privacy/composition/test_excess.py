"""Moments less one: what the doubles say they are off by holds against balls, and is small where it should be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb
from hypothesis import given
from hypothesis import strategies as st

from parco.balls import ball as exactly
from parco.balls import precision
from parco.privacy.composition.bare import Bare
from parco.privacy.composition.excess import complex_expm1, complex_log1p, excess, log_one_and, log_rise
from parco.privacy.composition.families import Line
from parco.privacy.composition.rounding import ELEMENTARY, UNIT
from parco.privacy.composition.sampled_interval import SampledInterval
from parco.privacy.facts import Exponential, Laplace
from parco.privacy.schedule import ScheduledRelease
from tests.privacy.composition.build import composed, family_of

# Enough for a share of e^-600 beside 1: what comes of less is no normal double.
BITS, MANY_BITS = 300, 2400
powers = st.floats(-12, 3).map(lambda power: 10.0**power)
signs = st.sampled_from([-1, 1])


@given(x=powers, y=powers, sign=signs)
def test_complex_functions_keep_to_the_model(x: float, y: float, sign: int) -> None:
    value = complex(-x, sign * y)
    with precision(BITS):
        truth = acb(value).exp() - 1
        assert abs(acb(complex(complex_expm1(np.array([value]))[0])) - truth) <= 6 * ELEMENTARY * UNIT * abs(truth)
        near = complex(-min(x, 0.7), sign * y)
        truth = (1 + acb(near)).log()
        assert abs(acb(complex(complex_log1p(np.array([near]))[0])) - truth) <= 6 * ELEMENTARY * UNIT * abs(truth)


@given(power=st.floats(-600, -1e-9), x=powers, y=st.floats(-1.2, 1.2))
def test_rises_are_off_by_no_more_than_they_say(power: float, x: float, y: float) -> None:
    with precision(MANY_BITS):
        share = arb(power).exp()
        rest = float((1 - share).log().mid())
        rises, blur = log_rise(power, rest, 1.0, np.array([complex(x, y)]))
        truth = (1 - share + share * acb(complex(x, y)).exp()).log()
        assert abs(acb(complex(rises[0])) - truth) <= UNIT * float(blur[0])


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 30.0])
def test_sums_of_turns_less_one_are_off_by_no_more_than_they_say(size: float) -> None:
    count, line = 300, Line(c=1.0, step=0.37, count=500)
    terms = np.exp(-np.linspace(0, 20, count)).astype(complex)
    losses = (size * (np.linspace(0, 1, count) ** 3 + 0.1j * np.linspace(0, 1, count))).astype(complex)
    values, bounds = excess(terms, losses, np.zeros(count), np.zeros(count), line)
    with precision(BITS):
        for place in (0, 1, 17, 123, 499):
            turn = acb(0, 1) * arb(line.step) * place
            truth = sum(
                (acb(complex(t)) * ((turn * acb(complex(x))).exp() - 1) for t, x in zip(terms, losses, strict=True)),
                acb(0),
            )
            assert abs(acb(complex(values[place])) - truth) <= float(bounds[place])
    # Relative to what moves at all, not to the terms.
    moved = np.abs(terms) @ np.minimum(np.abs(losses) * line.step, 1)
    assert bounds[1] <= 1e-11 * moved


def test_logarithms_near_one_are_relative_to_what_is_not_one() -> None:
    logs, errors = log_one_and(np.array([1e-9 + 1e-10j]), np.array([1e-20]))
    assert abs(logs[0] - 1e-9) < 2e-10
    assert errors[0] < 1e-19


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("kind", ["laplace", "exponential"])
@pytest.mark.parametrize("size", ["1e-6", "0.3", "40"])
def test_moments_of_faint_and_strong_losses(kind: str, size: str, removal: bool) -> None:
    """Against the integral in balls, by Arb's own quadrature: l has a density and, for Laplace noise, atoms."""
    e, rate = Fraction(size), Fraction(1, 1000)
    facts = Laplace(e, Fraction(1)) if kind == "laplace" else Exponential(e)
    family = family_of(ScheduledRelease(facts, 1, rate), removal=removal)
    c = 0.5 / float(e)
    value, error = family.log_moment(c)
    with precision(200):
        q, size_of = exactly(rate), exactly(e)
        power = arb(c) + 1 if removal else -arb(c)

        def ratio(place: acb) -> acb:
            return ((1 - q + q * place.exp()).log() * power).exp()

        scale = (-size_of / 2).exp() / 4 if kind == "laplace" else 1 / (4 * (size_of / 2).sinh())
        total = acb.integral(lambda place, _: ratio(place) * (-place / 2).exp(), -size_of, size_of).real * scale
        if kind == "laplace":
            total += ratio(acb(-size_of)).real / 2 + ratio(acb(size_of)).real * (-size_of).exp() / 2
        assert abs(arb(value) - total.log()) <= arb(error)
        # c times a loss is about q here, and 1e-12 of that is a hundredth of what a moment near 1 keeps.
        assert error <= 1e-12 * float(rate)


@pytest.mark.parametrize("removal", [True, False])
def test_a_moment_less_one_counts_the_error_of_the_rule_at_both_ends(removal: bool) -> None:
    """That the masses add up to 1 is put in exactly: the rule has to give them too."""
    family = family_of(
        ScheduledRelease(Laplace(Fraction(1, 10**6), Fraction(1)), 1, Fraction(1, 1000)), removal=removal
    )
    assert isinstance(family, SampledInterval)
    c = 1e-6
    rule = family._rule(c, 0.0)
    both = np.exp(rule.log_error) + np.exp(rule.log_plain_error)
    assert 2 * both <= family.log_moment(c)[1] <= 4 * both


def test_a_bare_loss_has_the_moments_of_its_mixture() -> None:
    q, v, c = Fraction(1, 300), 50.0, 0.4
    log_rate, log_rest = (float(exactly(share).log().mid()) for share in (q, 1 - q))
    family, line = Bare(log_rate, log_rest, v, 3.0), Line(c=c, step=0.2, count=40)
    value, error = family.log_moment(c)
    ratios, errors = family.log_ratios(line)
    with precision(200):

        def moment(z: acb) -> acb:
            draw = exactly(q).log() * (z + 1) + arb(v) * (z * z + z) / 2
            return (((exactly(1 - q).log() * (z + 1)).exp()) + draw.exp()) ** 3

        centre = moment(acb(c)).real
        assert abs(arb(value) - centre.log()) <= arb(error)
        for place in range(line.count):
            truth = moment(acb(arb(c), arb(line.step) * place)) / centre
            assert abs(acb(complex(ratios[place])).exp() / truth - 1) <= 2 * float(errors[place])


def test_faint_losses_are_enclosed() -> None:
    """A million sampled Laplace releases of epsilon 1e-6 are together nearly Gaussian, of mu^2 = n (q e)^2."""
    rate, e, times = 0.1, 1e-6, 10**6
    found = composed(
        {
            "mechanism": "laplace",
            "sensitivity": str(e),
            "scale": "1",
            "times": times,
            "sampling": {"scheme": "poisson", "rate": str(rate)},
        }
    ).epsilon("1e-9")
    like = composed({"mechanism": "gaussian", "sensitivity": str(rate * e), "scale": "1", "times": times})
    assert abs(found.upper / like.epsilon("1e-9").upper - 1) < Fraction(1, 100)
    assert found.upper - found.lower <= Fraction(1, 10**9)
