"""What every family of losses promises, tested on every kind of release, in both orders of the pair.

Moments and ratios lie within the error that the family states, and what it states is small; envelopes are never below
the truth; largest losses and the masses near them are what they are said to be. The truth is `laws.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import acb, arb
from mpmath import mp

from parco.balls import precision
from parco.privacy.composition.families import Family, Line
from parco.privacy.schedule import ScheduledRelease
from tests.privacy.composition.build import KINDS, RATES, family_of, release
from tests.privacy.composition.laws import BITS, law_of

# Lines from far below the best orders of small deltas to far above those of large ones.
LINES = [Line(c=0.07, step=0.9, count=80), Line(c=1.6, step=0.31, count=200), Line(c=9.0, step=1.3, count=64)]
# Nodes of these lines that are compared, and multiples of each step far beyond their ends for envelopes.
PLACES = (0, 1, 2, 5, 13, 40, 63)
# For ordinary parameters a family may not state an error above this, where the ratio itself is not tiny.
STATED_MOST, RATIO_LEAST = 1e-8, 1e-3
# How far the oracle may be off, relative to M(c): nothing that doubles could see.
ORACLE = 1e-30

CASES = [(kind, rate, removal) for kind in KINDS for rate in RATES for removal in (True, False)]
each_family = pytest.mark.parametrize(
    ("kind", "rate", "removal"), CASES, ids=[f"{k}-{r or 'all'}-{'removal' if o else 'addition'}" for k, r, o in CASES]
)


def family(kind: str, rate: str | None, removal: bool, times: int = 1) -> Family:
    return family_of(release(kind, rate=rate, times=times), removal=removal)


@cache
def truth(kind: str, rate: str | None, removal: bool, line: Line) -> tuple[acb, ...]:
    """M at the places of a line."""
    return moments([release(kind, rate=rate)], line, removal=removal)


def moments(releases: Sequence[ScheduledRelease], line: Line, *, removal: bool) -> tuple[acb, ...]:
    """M of several releases at the places of a line; each counted once."""
    with precision(BITS):
        # The node is the double that the family used.
        nodes = [acb(arb(line.c), arb(line.step) * place) for place in PLACES]
        product = [acb(1)] * len(nodes)
        for one in releases:
            found = law_of(one, removal=removal).moments(nodes)
            product = [so_far * moment for so_far, moment in zip(product, found, strict=True)]
        return tuple(product)


def faults(found: Family, line: Line, exact: Sequence[acb], times: int = 1) -> list[str]:
    """Where moments or ratios are further from the truth than stated, or more is stated than an ordinary release
    needs."""
    wrong = []
    value, error = found.log_moment(line.c)
    with precision(BITS):
        centre = exact[0].real
        if float(abs(centre.log() * times - arb(value))) > error + ORACLE:
            wrong.append(f"log M({line.c}) is off by more than {error}")
        if not 0 <= error <= STATED_MOST * max(1, abs(value)):
            wrong.append(f"log M({line.c}) is said to be off by {error}")
        ratios, errors = found.log_ratios(line)
        for place, moment in zip(PLACES, exact, strict=True):
            # A stated ratio is right if the truth is it times 1 + x, abs(x) <= e^error - 1.
            ratio, stated = (moment / centre) ** times, acb(arb(ratios[place].real), arb(ratios[place].imag)).exp()
            if float(abs(ratio - stated)) > float(abs(stated)) * math.expm1(errors[place]) + ORACLE:
                wrong.append(
                    f"M({line.c} + {place} h i) is off by {float(abs(ratio / stated - 1))}, not {errors[place]}"
                )
            if float(abs(ratio)) > RATIO_LEAST and not 0 <= errors[place] <= STATED_MOST:
                wrong.append(f"M({line.c} + {place} h i) is said to be off by {errors[place]}")
    return wrong


@each_family
def test_moments_lie_within_the_errors_stated(kind: str, rate: str | None, removal: bool) -> None:
    for line in LINES:
        assert faults(family(kind, rate, removal), line, truth(kind, rate, removal, line)) == []


@each_family
def test_repetitions_multiply_moments(kind: str, rate: str | None, removal: bool) -> None:
    line = LINES[1]
    assert faults(family(kind, rate, removal, 5), line, truth(kind, rate, removal, line), times=5) == []
    assert family(kind, rate, removal, 5).releases == 5


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("kind", "key", "values"),
    [
        ("gaussian", "scale", ("0.9", "1.5", "4")),
        ("laplace", "scale", ("0.3", "2", "9")),
        ("randomised-response", "epsilon", ("0.01", "1.3", "5")),
        ("exponential", "epsilon", ("0.01", "2", "6")),
    ],
)
def test_different_releases_of_one_kind_add_up(
    kind: str,
    key: str,
    values: Sequence[str],
    rate: str | None,
    removal: bool,
) -> None:
    releases = [release(kind, rate=rate, **{key: value}) for value in values]  # type: ignore[arg-type]
    line = LINES[1]
    exact = moments(releases, line, removal=removal)
    found = [family_of(one, removal=removal) for one in releases]
    assert [
        faults(one, line, moments([each], line, removal=removal)) for one, each in zip(found, releases, strict=True)
    ] == [[] for _ in values]
    if rate is None or kind in ("gaussian", "randomised-response"):
        assert faults(family_of(*releases, removal=removal), line, exact) == []


@each_family
def test_envelopes_are_never_below_the_truth_and_never_rise(kind: str, rate: str | None, removal: bool) -> None:
    found = family(kind, rate, removal)
    for line in LINES:
        bound = found.envelope(line.c)
        exact = truth(kind, rate, removal, line)
        heights = [line.step * place for place in PLACES]
        with precision(BITS):
            sizes = [float(abs(moment) / exact[0].real) for moment in exact]
        assert all(
            math.exp(bound(height)) * (1 + 1e-13) >= size - ORACLE for height, size in zip(heights, sizes, strict=True)
        )
        # All heights from one on: sizes of the family itself, which the tests above have tied to the truth.
        longer = Line(c=line.c, step=line.step / 3.7, count=1500)
        ratios, errors = found.log_ratios(longer)
        logs = np.where(errors > 0.1, -np.inf, ratios.real - errors)
        highest_from_here = np.maximum.accumulate(logs[::-1])[::-1]
        bounds = np.array([bound(float(height)) for height in longer.heights[1::20]])
        assert (bounds >= highest_from_here[1::20]).all()
        assert (np.diff(bounds) <= 0).all()
        assert (bounds <= 0).all()


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize(("kind", "rate"), [("gaussian", None), ("gaussian", "0.6"), ("exponential", None)])
def test_envelopes_of_densities_fall(kind: str, rate: str | None, removal: bool) -> None:
    """A bound of 0 would never be wrong, and no use."""
    for line in LINES:
        bound = family(kind, rate, removal).envelope(line.c)
        assert bound(40.0) < -1
        assert bound(400.0) < bound(40.0)


@each_family
def test_the_largest_loss_and_the_mass_near_it(kind: str, rate: str | None, removal: bool) -> None:
    times = 3
    found = family(kind, rate, removal, times)
    bottom, top = found.largest
    with precision(BITS):
        law = law_of(release(kind, rate=rate), removal=removal)
        largest = law.largest
        if largest is None:
            # The addition order of a sampled Gaussian has no largest loss that is attained, but a bound.
            assert top == math.inf or not removal
            return
        assert arb(bottom) <= largest * times <= arb(top)
        assert top - bottom <= 1e-12 * max(1.0, abs(top))
        for width in (1e-7, 1e-3, 0.1, 1.0):
            mass = law.mass_above(largest - arb(width))
            assert arb(found.log_mass_near(width)) <= mass.log() * times + arb("1e-20")


@pytest.mark.parametrize("kind", ["laplace", "randomised-response", "approximate", "exponential"])
@pytest.mark.parametrize("removal", [True, False])
def test_the_mass_near_the_largest_loss_is_known_where_it_decides(kind: str, removal: bool) -> None:
    """Minus infinity would never be wrong, and then few releases at tiny deltas could not be told from their largest
    loss."""
    with precision(BITS):
        law = law_of(release(kind), removal=removal)
        assert law.largest is not None
        truth = float(law.mass_above(law.largest - arb(1e-6)).log())
    assert truth - 0.2 <= family(kind, None, removal).log_mass_near(1e-6) <= truth


def test_a_sampled_gaussian_has_a_bounded_loss_in_the_order_of_addition() -> None:
    bottom, top = family("gaussian", "0.6", removal=False, times=2).largest
    with mp.workdps(40):
        exact: Any = -2 * mp.log(mp.mpf("0.4"))
        assert bottom <= exact <= top < bottom + 1e-12
    assert family("gaussian", "0.6", removal=True).largest == (math.inf, math.inf)


@each_family
def test_a_law_is_a_law(kind: str, rate: str | None, removal: bool) -> None:
    """The oracle itself: M(0) = 1, M(-1) is what Q has where P has something; and log M(c) goes to 0 with c."""
    with precision(BITS):
        law = law_of(release(kind, rate=rate), removal=removal)
        whole, under_q = law.moments([acb(0), acb(-1)])
        assert abs(whole - 1) < arb("1e-40")
        other = law_of(release(kind, rate=rate), removal=not removal)
        assert abs(under_q.real - (1 - other.told) / (1 - law.told)) < arb("1e-36")
    value, error = family(kind, rate, removal).log_moment(1e-9)
    assert abs(value) <= 1e-8 + error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [2, 5, 12])
def test_moments_of_whole_orders_are_binomial_sums(kind: str, order: int) -> None:
    """E_Q[(1 - q + q r)^n] = sum over j of C(n, j) (1-q)^(n-j) q^j E_Q[r^j]: sampled from unsampled, without an
    integral."""
    rate = "0.3"
    sampled = family(kind, rate, removal=True)
    with precision(BITS):
        law, q = law_of(release(kind), removal=True), arb(3) / 10
        powers = [acb(j - 1) for j in range(order + 1)]
        plain = [moment.real * (1 - law.told) for moment in law.moments(powers)]
        # E_Q[r^0] is 1, with the outcomes that only Q has.
        plain[0] = arb(1)
        total = sum((math.comb(order, j) * (1 - q) ** (order - j) * q**j * plain[j] for j in range(order + 1)), arb(0))
        told = law_of(release(kind, rate=rate), removal=True).told
        value, error = sampled.log_moment(order - 1.0)
        assert abs((total / (1 - told)).log() - arb(value)) <= arb(error) + arb("1e-25")
