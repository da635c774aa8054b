"""Sensitivity: positive in both norms, or refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from parco.errors import RequestError
from parco.privacy.sensitivity import Sensitivity


@pytest.mark.parametrize(("l1", "l2_squared"), [(0, 1), (1, 0), (-1, 1), (1, -1)])
def test_a_sensitivity_without_noise_is_refused(l1: int, l2_squared: int) -> None:
    with pytest.raises(RequestError):
        Sensitivity(Fraction(l1), Fraction(l2_squared))


def test_equal_sensitivities_are_equal_records() -> None:
    assert Sensitivity(Fraction(3), Fraction(3)) == Sensitivity(Fraction(6, 2), Fraction(3))
