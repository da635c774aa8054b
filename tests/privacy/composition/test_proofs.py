"""What the proofs of docs/mathematics.md rest on, each where it once failed or nearly did."""

from __future__ import annotations

from fractions import Fraction

import pytest

from parco.privacy.composition import Interval, compose
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
