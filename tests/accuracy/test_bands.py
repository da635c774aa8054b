"""Intervals at a stop: quantiles against independent ones, and chances against random and adversarial ladders."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.accuracy.adaptive import adaptive_quantile_upper, miss_upper
from parco.accuracy.bands import Adaptive, PerStep, TimeUniform, sharpest
from parco.accuracy.noises import GaussianNoise, LatticeNoise
from parco.errors import RequestError
from parco.mechanisms.mechanism import Gaussian, TwoSidedGeometric
from parco.mechanisms.refinement import GaussianPath
from parco.noise.bits import CipherBits

MISS = Fraction(1, 20)
PATHS = 200_000


@settings(max_examples=40, deadline=None)
@given(
    variance=st.fractions(Fraction(1, 10**6), Fraction(10**6)),
    rounding=st.fractions(0, 10),
    confidence=st.fractions(Fraction(1, 10), Fraction(999_999, 10**6)),
)
def test_a_half_width_is_the_normal_quantile_rounded_up(
    variance: Fraction, rounding: Fraction, confidence: Fraction
) -> None:
    with mpmath.workdps(40):
        z = mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(confidence.numerator) / confidence.denominator)
        true = z * mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
        true += mpmath.mpf(rounding.numerator) / rounding.denominator
        width = GaussianNoise(variance, rounding).half_width(confidence)
        found = mpmath.mpf(width.numerator) / width.denominator
        assert true <= found <= true * (1 + mpmath.mpf(10) ** -11)


def test_the_noise_of_a_path_allows_for_every_rounding() -> None:
    path = GaussianPath((Gaussian(Fraction(4), Fraction(1)), Gaussian(Fraction(2), Fraction(1, 2))))
    noise = GaussianNoise.of(path)
    weights = [path.variance / draw.scale**2 for draw in path.draws]
    assert noise.variance == path.variance
    assert noise.rounding == sum(w * draw.lattice / 2 for w, draw in zip(weights, path.draws, strict=True))
    values = [0] * 20_000
    steps = [draw.draw(values, CipherBits()) for draw in path.draws]
    found = np.array([float(one) for one in path.estimates(steps)])
    for confidence in (Fraction(1, 2), Fraction(19, 20)):
        inside = np.mean(np.abs(found) <= float(noise.half_width(confidence)))
        assert inside >= float(confidence) - 4 * math.sqrt(0.25 / len(values))
    # It is not much wider than it must be.
    assert float(noise.half_width(Fraction(19, 20))) < 1.3 * np.quantile(np.abs(found), 0.95)


def test_levels_are_shared_among_the_steps() -> None:
    noise = GaussianNoise(Fraction(1), Fraction(0))
    for steps in (1, 3, 17):
        expected = NormalDist().inv_cdf(1 - float(MISS) / steps / 2)
        assert float(PerStep(MISS, steps).half_width(noise)) == pytest.approx(expected, rel=1e-9)
    lattice = LatticeNoise(TwoSidedGeometric(Fraction(5), Fraction(1)))
    assert PerStep(MISS, 2).half_width(lattice) == lattice.mechanism.half_width(Fraction(39, 40))


def walk(variances: np.ndarray, *, seed: int) -> np.ndarray:
    """Noise of a path at falling variances: shape (PATHS, steps)."""
    steps = np.random.default_rng(seed).normal(size=(PATHS, len(variances)))
    steps *= np.sqrt(variances - np.append(variances[1:], 0))
    return np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]


def test_time_uniform_intervals_all_hold_on_a_long_ladder_where_plain_ones_do_not() -> None:
    variances = 100 / 1.15 ** np.arange(40)
    noise = np.abs(walk(variances, seed=5))
    band = TimeUniform(MISS, Fraction(variances[20]))
    widths = np.array([float(band.half_width(GaussianNoise(Fraction(t), Fraction(0)))) for t in variances])
    missed = np.mean((noise > widths).any(axis=1))
    assert missed <= float(MISS)
    assert np.mean((noise > 1.96 * np.sqrt(variances)).any(axis=1)) > 3 * float(MISS)
    # Near where it is sharpest it is narrower than intervals of each step.
    each = float(PerStep(MISS, 40).half_width(GaussianNoise(Fraction(variances[20]), Fraction(0))))
    assert widths[20] < each


def test_the_sharper_band_is_known_beforehand() -> None:
    near, far = (Fraction(1), Fraction(2)), (Fraction(1), Fraction(10**6))
    assert isinstance(sharpest(MISS, steps=100, variances=near), TimeUniform)
    assert isinstance(sharpest(MISS, steps=5, variances=near), PerStep)
    assert isinstance(sharpest(MISS, steps=20, variances=far), PerStep)


def hunted(z: float, steps: int, *, seed: int) -> float:
    """How often a ladder that knows the truth makes intervals miss: each next variance at the most promising angle."""
    bits = np.random.default_rng(seed)
    u = bits.normal(size=PATHS)
    missed = np.abs(u) > z
    for _ in range(steps - 1):
        # With one step left cos a = abs(u)/z is best (docs/mathematics.md).
        cosine = np.minimum(np.abs(u) / z, 1)
        u = cosine * u + np.sqrt(1 - cosine**2) * bits.normal(size=PATHS)
        missed |= np.abs(u) > z
    return float(np.mean(missed))


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_adaptive_intervals_hold_against_a_ladder_that_knows_the_truth(steps: int) -> None:
    z = float(adaptive_quantile_upper(MISS, steps))
    error = 4 * math.sqrt(0.05 / PATHS)
    assert hunted(z, steps, seed=steps) <= float(MISS) + error
    # The bound is not far above what can be done.
    assert hunted(z, steps, seed=steps) >= 0.75 * float(MISS)


@pytest.mark.parametrize(("miss", "steps"), [(MISS, 40), (Fraction(1, 10**6), 40), (Fraction(9, 10), 1)])
def test_a_quantile_is_found_at_the_ends_of_what_is_allowed(miss: Fraction, steps: int) -> None:
    z = float(adaptive_quantile_upper(miss, steps))
    assert 0.98 * min(miss, Fraction(1, 2)) <= miss_upper(z, steps) <= miss
    assert miss_upper(0.98 * z, steps) > min(miss, Fraction(1, 2))


def test_intervals_of_each_step_do_not_hold_for_costs_chosen_on_the_way() -> None:
    """Why there is a band of its own for predictive ladders."""
    z = NormalDist().inv_cdf(1 - float(MISS) / 5 / 2)
    assert hunted(z, 5, seed=1) > float(MISS) + 10 * math.sqrt(0.05 / PATHS)


def chance_of_two(z: float) -> float:
    """The chance of a miss in two steps, the second at the angle that is best for one side; by quadrature."""

    def density(angle: mpmath.mpf) -> mpmath.mpf:
        # u = z sin(angle): the near side is z cos(angle) away, the far one z (1 + sin^2)/cos.
        near, far = z * mpmath.cos(angle), z * (1 + mpmath.sin(angle) ** 2) / mpmath.cos(angle)
        return mpmath.npdf(z * mpmath.sin(angle)) * near * (mpmath.ncdf(-near) + mpmath.ncdf(-far))

    edges = [0, 0.7, 1.3, mpmath.pi / 2 - mpmath.mpf(10) ** -12]
    return 2 * (1 - NormalDist().cdf(z)) + 2 * float(mpmath.quad(density, edges))


@pytest.mark.parametrize("z", [1.0, 1.96, 3.0])
def test_the_bound_is_exact_for_one_step_and_near_the_best_for_two(z: float) -> None:
    tail = 2 * (1 - NormalDist().cdf(z))
    assert tail <= miss_upper(z, 1) <= tail + 1e-8
    assert chance_of_two(z) <= miss_upper(z, 2) <= 1.06 * chance_of_two(z)
    assert miss_upper(z, 2) < miss_upper(z, 3) < miss_upper(z, 4)


def test_what_is_no_band_is_refused() -> None:
    lattice = LatticeNoise(TwoSidedGeometric(Fraction(5), Fraction(1)))
    for make in (
        lambda: PerStep(Fraction(0), 1),
        lambda: PerStep(MISS, 0),
        lambda: TimeUniform(MISS, Fraction(0)),
        lambda: TimeUniform(MISS, Fraction(1)).half_width(lattice),
        lambda: Adaptive(MISS, 2).half_width(lattice),
        lambda: adaptive_quantile_upper(Fraction(1, 10**7), 2),
        lambda: Adaptive(Fraction(1, 10**7), 2),
        lambda: Adaptive(MISS, 41),
        lambda: GaussianNoise(Fraction(1), Fraction(0)).half_width(Fraction(1)),
    ):
        with pytest.raises(RequestError):
            make()
