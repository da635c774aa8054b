"""What the proofs of docs/mathematics.md rest on, each where it once failed or nearly did."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from parco.errors import InternalError
from parco.privacy.composition import Interval, compose
from parco.privacy.composition.contour import Profile
from parco.privacy.composition.families import Line
from parco.privacy.composition.solve import Solved, is_near
from parco.privacy.facts import Facts, Gaussian, Laplace, RandomisedResponse
from parco.privacy.schedule import Schedule, ScheduledRelease

HALF = Fraction(1, 2)


def meet(first: Interval, second: Interval) -> bool:
    """Whether both may hold the same number."""
    return first.lower <= second.upper and second.lower <= first.upper


@pytest.mark.parametrize(
    "facts", [RandomisedResponse(Fraction(1, 3)), RandomisedResponse(Fraction(2)), Laplace(Fraction(1), Fraction(1)), Gaussian(HALF, HALF)]
)
def test_a_release_off_the_lattice_is_not_added_to_the_nodes_of_the_lattice(facts: Facts) -> None:
    schedule = Schedule((ScheduledRelease(RandomisedResponse(Fraction(1)), 200),))
    composition = compose(schedule)
    composition.epsilon("1e-6")
    more = ScheduledRelease(facts, 100)
    assert meet(composition.add(more).epsilon("1e-6"), compose(schedule.plus(more)).epsilon("1e-6"))


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
    )


def test_a_sum_that_is_not_known_bounds_nothing() -> None:
    for made in (one_node(0j, math.nan), one_node(0j, math.inf), one_node(complex(math.nan), 0.0)):
        assert made.log_delta_bounds(0.0) == (-math.inf, math.inf)
    with pytest.raises(InternalError, match="negative"):
        one_node(-1 + 0j, 0.5).log_delta_bounds(0.0)


def test_an_end_that_was_not_found_is_not_near() -> None:
    assert not is_near(Solved(0.0, math.inf), 1e-6)
