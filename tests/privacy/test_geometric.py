"""Two-sided geometric noise: the exact epsilon is the largest log-ratio of its probabilities."""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import exp, log, mp, mpf

from parco.errors import RequestError
from parco.privacy import geometric
from parco.privacy.sensitivity import Sensitivity


@pytest.mark.parametrize(("steps", "scale"), [(1, Fraction(8)), (3, Fraction(20)), (12, Fraction(5, 2))])
def test_epsilon_is_the_largest_log_ratio(steps: int, scale: Fraction) -> None:
    with mp.workdps(40):
        ratio = exp(-mpf(scale.denominator) / scale.numerator)
        losses = [log(ratio ** abs(k) / ratio ** abs(k - steps)) for k in range(-40, 60)]
        largest = Fraction(str(mp.nstr(max(losses), 30)))
    cost = geometric.epsilon(Sensitivity(Fraction(steps), Fraction(steps) ** 2), scale, lattice=Fraction(1))
    assert cost == steps / scale
    assert abs(cost - largest) < Fraction(1, 10**25)


def test_a_sensitivity_off_the_lattice_is_refused() -> None:
    sensitivity = Sensitivity(Fraction(1, 2), Fraction(1, 4))
    assert geometric.epsilon(sensitivity, Fraction(4), lattice=Fraction(1, 2)) == Fraction(1, 8)
    with pytest.raises(RequestError):
        geometric.epsilon(sensitivity, Fraction(4), lattice=Fraction(1))


@pytest.mark.parametrize(("scale", "lattice"), [(0, 1), (-1, 1), (1, 0), (1, -1)])
def test_scale_and_lattice_are_positive(scale: int, lattice: int) -> None:
    with pytest.raises(RequestError):
        geometric.epsilon(Sensitivity(Fraction(1), Fraction(1)), Fraction(scale), lattice=Fraction(lattice))
