"""Smoothing by Gaussian noise: delta of L + X is known in closed form outcome by outcome, and its density as well."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from mpmath import mp, mpf, ncdf, npdf

from parco.privacy.composition.contour import Aim, Moments, profile
from parco.privacy.composition.families import Family
from parco.privacy.composition.smoothing import noise, smoothed, weight
from tests.privacy.composition.build import composed, families_of, release

mp.dps = 50

# A loss of three values, as it might be: (loss, mass).
LOSSES = [(mpf("0.7"), mpf("0.2")), (mpf("-0.1"), mpf("0.5")), (mpf("-0.9"), mpf("0.3"))]


def noisy(epsilon: mpf, variance: mpf) -> mpf:
    """delta of L + X: of each outcome the Gaussian profile (Balle & Wang 2018, theorem 8)."""
    mu = mp.sqrt(variance)
    return sum(
        mass * (ncdf(mu / 2 - (epsilon - loss) / mu) - mp.exp(epsilon - loss) * ncdf(-mu / 2 - (epsilon - loss) / mu))
        for loss, mass in LOSSES
    )


def density(epsilon: mpf, variance: mpf) -> mpf:
    return sum(mass * npdf(epsilon - loss, variance / 2, mp.sqrt(variance)) for loss, mass in LOSSES)


@pytest.mark.parametrize("variance", ["1e-6", "1e-2", "1", "4"])
@pytest.mark.parametrize("epsilon", ["0", "0.3", "0.69", "0.7", "0.71", "1.5"])
def test_smoothing_adds_to_delta_and_no_more_than_the_density_says(variance: str, epsilon: str) -> None:
    at, v = mpf(epsilon), mpf(variance)
    truth = sum(mass * max(1 - mp.exp(at - loss), 0) for loss, mass in LOSSES)
    above = noisy(at, v)
    assert above >= truth
    assert above - mpf(weight(float(v))) * density(at, v) <= truth


def test_what_is_taken_off_is_within_a_factor_of_three_of_what_smoothing_adds() -> None:
    """Where the loss has an atom: else half of it would be added."""
    v, at = mpf("1e-6"), mpf("0.7")
    added = noisy(at, v) - sum(mass * max(1 - mp.exp(at - loss), 0) for loss, mass in LOSSES)
    assert added <= weight(1e-6) * density(at, v) <= 3 * added


@pytest.mark.parametrize("epsilon", [1.0, 2.5, 4.0])
def test_bounds_of_a_smoothed_profile_hold_the_truth(epsilon: float) -> None:
    """Responses off every lattice, gone through by counts in fractions of e^(1/3) and e^(1/2)."""
    families: list[Family] = [
        *families_of(
            release("randomised-response", epsilon="1/3", times=12),
            release("pure", epsilon="0.5", times=5),
            removal=True,
        )
    ]
    variance, c = 1e-5, 3.0
    moments = Moments([*families, noise(variance)])
    made = profile(moments, c, Aim(-12.0, 0.0, 1e-3), nodes_max=1 << 20)
    assert made is not None
    below, above = smoothed(made, variance, moments.envelope(c)).log_delta_bounds(epsilon)
    truth = mp.log(_responses([(Fraction(1, 3), 12), (Fraction(1, 2), 5)], mpf(epsilon)))
    assert below <= truth <= above
    assert above - below < 0.05


def _responses(kinds: list[tuple[Fraction, int]], epsilon: mpf) -> mpf:
    outcomes = [(mpf(0), mpf(1))]
    for size, times in kinds:
        e = mpf(size.numerator) / size.denominator
        p = 1 / (1 + mp.exp(-e))
        counts = [(e * (2 * k - times), math.comb(times, k) * p**k * (1 - p) ** (times - k)) for k in range(times + 1)]
        outcomes = [(loss + more, mass * part) for loss, mass in outcomes for more, part in counts]
    return sum(mass * max(1 - mp.exp(epsilon - loss), 0) for loss, mass in outcomes)


@pytest.mark.parametrize("delta", ["1e-3", "1e-12", "1e-30"])
def test_responses_of_two_sizes_at_any_delta(delta: str) -> None:
    found = composed(
        {"mechanism": "randomised-response", "epsilon": "1/3", "times": 100},
        {"mechanism": "pure", "epsilon": "0.5", "times": 80},
    ).epsilon(delta)
    low, high = (mpf(end.numerator) / end.denominator for end in (found.lower, found.upper))
    kinds = [(Fraction(1, 3), 100), (Fraction(1, 2), 80)]
    assert _responses(kinds, high) <= mpf(delta) <= _responses(kinds, low)
    assert high - low <= mpf("1e-6") * high
