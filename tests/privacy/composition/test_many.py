"""Many different releases are computed more coarsely and in another order than few: within the bounds of both."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import acb, arb
from numpy.typing import NDArray

from parco.balls import precision
from parco.privacy.composition.families import Family, Line, sum_of_logs
from parco.privacy.composition.groups import grouped
from parco.privacy.facts import Exponential, Facts, Gaussian, Laplace, Pure
from parco.privacy.schedule import ScheduledRelease
from tests.privacy.composition.build import family_of

ONE = Fraction(1)
# Far more than are computed one by one, and not a power of two.
MANY = 150


def different(kind: str) -> list[ScheduledRelease]:
    """Releases of one kind, no two alike, among them rates near 0 and 1 and noise of several sizes."""
    sizes = [Fraction(1, 2) + Fraction(place, 40) for place in range(MANY)]
    facts: dict[str, list[Facts]] = {
        "gaussian": [Gaussian(ONE, size) for size in sizes],
        "laplace": [Laplace(ONE, 10 * size) for size in sizes],
        "exponential": [Exponential(size / 20) for size in sizes],
        "pure": [Pure(size / 20) for size in sizes],
    }
    sampled = kind in ("gaussian", "pure")
    rates = [Fraction(place + 1, MANY + 1) ** 3 if sampled else ONE for place in range(MANY)]
    return [ScheduledRelease(one, 1, rate) for one, rate in zip(facts[kind], rates, strict=True)]


def parts(releases: list[ScheduledRelease], *, removal: bool) -> list[Family]:
    return [family_of(release, removal=removal) for release in releases]


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "exponential", "pure"])
@pytest.mark.parametrize("count", [12, 100])
def test_many_together_are_the_sum_of_each_alone(kind: str, removal: bool, count: int) -> None:
    releases = different(kind)
    together, each = family_of(*releases, removal=removal), parts(releases, removal=removal)
    for c in (0.3, 2.0, 9.0):
        value, off = together.log_moment(c)
        alone = [family.log_moment(c) for family in each]
        assert abs(value - math.fsum(one[0] for one in alone)) <= off + sum(one[1] for one in alone)
        assert off < 1e-9 * (1 + abs(value))
    line = Line(c=2.0, step=0.05, count=count)
    ratios, bounds = together.log_ratios(line)
    singles = [family.log_ratios(line) for family in each]
    gap = ratios - sum(one[0] for one in singles)
    gap -= 2j * np.pi * np.round(gap.imag / (2 * np.pi))
    assert (np.abs(gap) <= bounds + sum(one[1] for one in singles) + 1e-12).all()
    assert bounds[:12].max() < 1e-8


@pytest.mark.parametrize("removal", [True, False])
def test_the_search_among_few_comes_near_the_many(removal: bool) -> None:
    family = family_of(*different("gaussian"), removal=removal)
    assert family.sketch().releases == family.releases
    assert family.sketch().log_moment(1.0)[0] == pytest.approx(family.log_moment(1.0)[0], rel=0.1)


@pytest.mark.parametrize("spread", [1.0, 3.0, 30.0])
def test_logarithms_of_products_are_bounded(spread: float) -> None:
    random = np.random.default_rng(7)
    exact = np.exp(-random.uniform(0, spread, (333, 5)) + 1j * random.uniform(-3, 3, (333, 5)))
    error = 10.0 ** random.uniform(-16, -6, exact.shape)
    moved = exact + error * np.exp(1j * random.uniform(-3, 3, exact.shape)) * 0.99
    total, bound = sum_of_logs(moved, error, np.full(333, 3.0))
    for column in range(5):
        # Where a ratio is no larger than its error, its logarithm has no bound, but the product has.
        log_share = 3 * complex(*_log_of_product(exact[:, column])) - total[column]
        assert abs(np.expm1(log_share)) <= math.expm1(bound[column]) + 1e-12


def _log_of_product(values: NDArray[Any]) -> tuple[float, float]:
    with precision(200):
        product = acb(1)
        for value in values.tolist():
            product *= acb(arb(value.real), arb(value.imag))
        log = product.log()
        return float(log.real.mid()), float(log.imag.mid())


def test_equal_releases_become_one_and_doubles_do_not_confuse() -> None:
    near = Fraction(1, 3) + Fraction(1, 10**30)
    entries = [
        ScheduledRelease(Laplace(ONE, Fraction(3)), 2),
        ScheduledRelease(Laplace(Fraction(2), Fraction(6)), 5),
        ScheduledRelease(Laplace(near, ONE), 1),
        ScheduledRelease(Laplace(ONE, Fraction(3)), 4),
        ScheduledRelease(Laplace(ONE, Fraction(3)), 1, Fraction(1, 2)),
    ]
    found = grouped(entries)
    assert sorted(release.times for release in found) == [1, 1, 5, 6]
    assert {(kind.tag, sampled): len(some.releases) for (kind, sampled), some in found.kinds.items()} == {
        ("laplace", False): 3,
        ("laplace", True): 1,
    }
