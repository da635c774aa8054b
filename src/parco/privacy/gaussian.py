"""Facts of the Gaussian mechanism: its cost, and its exact privacy profile solved for any of its three numbers.

With mu = L2 sensitivity / scale, delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle & Wang 2018,
theorem 8; docs/mathematics.md, "Gaussian profile"). The difference cancels when mu is small, so it is computed in balls
whose precision doubles until they are small enough; nothing here is decided by a double. Composition of Gaussians adds
mu squared exactly, so that every function takes mu squared.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from parco.balls import arb, ball, bits_below_one, dyadic, lower, precision, upper
from parco.errors import InternalError, RequestError
from parco.measure import Measure
from parco.privacy import classical, gaussian_guess
from parco.privacy.sensitivity import Sensitivity

__all__ = [
    "cost_factor",
    "delta_lower",
    "delta_upper",
    "epsilon_lower",
    "epsilon_upper",
    "mu_squared",
    "mu_squared_lower",
    "mu_squared_upper",
    "profile_and_slope",
]

_BITS_MIN, _BITS_MAX = 128, 1 << 16
_TIGHT_BITS = 60
# Smaller numbers are not told apart: their exact rationals would have exponents without limit.
_DELTA_FLOOR = Fraction(1, 2**4096)
_EPSILON_FLOOR = Fraction(1, 2**200)
_DOUBLINGS_MAX = 4096
_STEP_MAX = 1 << 70
# A guess is improved by one step of Newton's method at this many bits; below mu^2 over this, epsilon is near zero.
_BITS_NEWTON, _NEAR_ZERO = 192, 1 << 40
# From here on the complementary error function of the far tail is taken from its asymptotic form (Tricomi's U).
_FAR = 1 << 12


def cost_factor(measure: Measure) -> Fraction:
    """For every measure but pure, returns the factor > 0 of D^2/s^2: 1 in gdp, 1/2 in zcdp, order/2 in renyi.

    Raises RequestError for pure.

    Source: Bun & Steinke 2016, proposition 1.6; Mironov 2017, corollary 3; docs/mathematics.md, "Costs".
    """
    if measure == Measure.PURE:
        raise RequestError("Gaussian noise has no cost in the measure pure: its privacy loss has no bound")
    return Fraction(1) if measure == Measure.GDP else (measure.order or 1) / Fraction(2)


def mu_squared(sensitivity: Sensitivity, scale: Fraction) -> Fraction:
    """For every scale > 0, returns the exact cost in gdp, or raises RequestError.

    `sensitivity` (L2) and `scale`, the standard deviation, in the statistic's units. Source: mu = D/s,
    docs/mathematics.md, "Costs".
    """
    if scale <= 0:
        raise RequestError("the scale of noise is a positive number")
    return sensitivity.l2_squared / scale**2


def delta_upper(mu_squared: Fraction, epsilon: Fraction) -> Fraction:
    """For every mu_squared >= 0 and epsilon >= 0, returns a number at least the profile's delta, or RequestError.

    Above the truth by less than one part in 2^59; never below 2^-4096 unless mu^2 is 0. Source: Balle & Wang 2018,
    theorem 8.
    """
    return _delta_interval(mu_squared, epsilon)[1]


def delta_lower(mu_squared: Fraction, epsilon: Fraction) -> Fraction:
    """For every mu_squared >= 0 and epsilon >= 0, returns a number at most the profile's delta, or RequestError.

    Below the truth by less than one part in 2^59; 0 when the truth is below 2^-4096. Source: Balle & Wang 2018, theorem
    8.
    """
    return _delta_interval(mu_squared, epsilon)[0]


def epsilon_upper(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """For every mu_squared >= 0 and 0 < delta < 1, returns epsilon with profile <= delta, or raises RequestError.

    The least such epsilon, rounded up by less than one part in 2^59 (by less than 2^-200 near zero); 0 when delta is at
    least the profile at 0. The inequality is proven by the profile's ball at the very number returned. Source: Balle &
    Wang 2018, theorem 8.
    """
    return _epsilon_interval(mu_squared, delta)[1]


def epsilon_lower(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """For every mu_squared >= 0 and 0 < delta < 1, returns epsilon with profile > delta (or 0), or RequestError.

    Below the least epsilon that satisfies delta by less than one part in 2^59 (by less than 2^-200 near zero). Source:
    Balle & Wang 2018, theorem 8.
    """
    return _epsilon_interval(mu_squared, delta)[0]


def mu_squared_lower(epsilon: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon >= 0 and 0 < delta < 1, returns mu^2 with profile(epsilon) < delta, or raises RequestError.

    The largest such mu^2, rounded down by less than one part in 2^59: the side for a cap. Source: Balle & Wang 2018,
    theorem 8.
    """
    return _mu_squared_interval(epsilon, delta)[0]


def mu_squared_upper(epsilon: Fraction, delta: Fraction) -> Fraction:
    """For every epsilon >= 0 and 0 < delta < 1, returns mu^2 with profile(epsilon) > delta, or raises RequestError.

    Above the largest mu^2 that satisfies (epsilon, delta) by less than one part in 2^59. Source: Balle & Wang 2018,
    theorem 8.
    """
    return _mu_squared_interval(epsilon, delta)[1]


def _delta_interval(mu_squared: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    _check_not_negative(mu_squared, "mu squared")
    _check_not_negative(epsilon, "epsilon")
    if mu_squared == 0:
        return Fraction(0), Fraction(0)
    bits = _BITS_MIN
    while bits <= _BITS_MAX:
        with precision(bits):
            profile = _profile(mu_squared, epsilon)
            if profile < ball(_DELTA_FLOOR):
                return Fraction(0), _DELTA_FLOOR
            if profile.rel_accuracy_bits() >= _TIGHT_BITS:
                return max(lower(profile), Fraction(0)), min(upper(profile), Fraction(1))
        bits *= 2
    raise InternalError("the Gaussian profile could not be computed to the accuracy promised")


def _epsilon_interval(mu_squared: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    _check_not_negative(mu_squared, "mu squared")
    _check_delta(delta)
    if mu_squared == 0:
        return Fraction(0), Fraction(0)
    near = _epsilon_refined(mu_squared, delta)
    if near is not None:
        return _neighbours(lambda epsilon: _exceeds(mu_squared, epsilon, delta), near)
    if not _exceeds(mu_squared, Fraction(0), delta):
        return Fraction(0), Fraction(0)
    if not _exceeds(mu_squared, _EPSILON_FLOOR, delta):
        return Fraction(0), _EPSILON_FLOOR
    # The closed form is a valid bound, hence an upper end of the bracket.
    high = classical.epsilon_upper(mu_squared, delta)
    return _bisect(lambda epsilon: _exceeds(mu_squared, epsilon, delta), _EPSILON_FLOOR, high)


def _mu_squared_interval(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    _check_not_negative(epsilon, "epsilon")
    _check_delta(delta)
    near = _mu_squared_refined(epsilon, delta)
    if near is not None:
        return _neighbours(lambda value: not _exceeds(value, epsilon, delta), near)
    # Two proven lower ends: delta(eps) <= delta(0) <= mu/sqrt(2 pi), with 2 pi > 6; and the closed form turned round.
    # Without the second, mu could start so small that eps/mu leaves the range in which balls are cheap.
    low = max(6 * delta**2, classical.mu_squared_lower(epsilon, delta))
    high = 2 * low
    for _ in range(_DOUBLINGS_MAX):
        if _exceeds(high, epsilon, delta):
            below, above = _bisect(lambda value: not _exceeds(value, epsilon, delta), low, high)
            return below, above
        low, high = high, 2 * high
    raise InternalError("no mu was found whose Gaussian profile exceeds delta")


def _epsilon_refined(mu_squared: Fraction, delta: Fraction) -> Fraction | None:
    """The epsilon at delta to about 2^-70, not proven; None where it is near 0 or no guess was found."""
    near = gaussian_guess.epsilon_near(mu_squared, delta)
    if near is None or near < 2 * _EPSILON_FLOOR or near * _NEAR_ZERO < mu_squared:
        return None
    with precision(_BITS_NEWTON + bits_below_one(mu_squared)):
        profile, slope = profile_and_slope(mu_squared, near)
        return _moved(near, (profile - ball(delta)) / slope)


def _mu_squared_refined(epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """The mu^2 at (epsilon, delta) to about 2^-70, not proven; None where no guess was found."""
    near = gaussian_guess.mu_near(epsilon, delta)
    if near is None:
        return None
    with precision(_BITS_NEWTON + bits_below_one(near)):
        gap = ball(epsilon) / ball(near) - ball(near) / 2
        density = (-gap * gap / 2).exp() / (2 * arb.pi()).sqrt()
        return _moved(near, (ball(delta) - _profile(near**2, epsilon)) / density) ** 2


def _profile(mu_squared: Fraction, epsilon: Fraction) -> arb:
    """The profile at the current precision; mu_squared > 0."""
    return profile_and_slope(mu_squared, epsilon)[0]


def profile_and_slope(mu_squared: Fraction, epsilon: Fraction) -> tuple[arb, arb]:
    """For every mu_squared > 0 and epsilon >= 0, returns balls of the profile and of how fast it falls in epsilon.

    The second is e^eps Phi(-mu/2 - eps/mu); both at the current precision, raising nothing. Phi(x) = erfc(-x/sqrt(2))/2
    keeps the far tail. Source: Balle & Wang 2018, theorem 8 and its derivative.
    """
    mu, root_two, half = ball(mu_squared).sqrt(), arb(2).sqrt(), arb(1) / 2
    gap = ball(epsilon) / mu
    near, far = (gap - mu / 2) / root_two, (gap + mu / 2) / root_two
    if far < _FAR:
        slope = ball(epsilon).exp() * far.erfc() / 2
    else:
        # e^eps erfc(far) without its two factors, which grow and shrink beyond all bounds.
        slope = (-near * near).exp() * (far * far).hypgeom_u(half, half) / (2 * arb.pi().sqrt())
    return near.erfc() / 2 - slope, slope


def _exceeds(mu_squared: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the profile is above delta, proven either way; mu_squared > 0.

    A tie would never be decided: then, and only then, this raises InternalError. At rational arguments the profile is
    not known to take a rational value anywhere.
    """
    bits = _BITS_MIN
    while bits <= _BITS_MAX:
        with precision(bits):
            profile, bound = _profile(mu_squared, epsilon), ball(delta)
            if profile > bound:
                return True
            if profile < bound:
                return False
        bits *= 2
    raise InternalError("the Gaussian profile could not be told from delta")


# Roots lie between neighbours of a grid of numbers with 60-bit mantissas, ordered by rank: halving the ranks halves the
# exponents first, so that a bracket of many magnitudes costs only a few steps more, and the end is tight in the
# relative sense. The profile is monotone, so that the neighbours do not depend on where the search began.
_MANTISSA_BITS = 60
_MANTISSA = 1 << _MANTISSA_BITS


def _neighbours(holds: Callable[[Fraction], bool], near: Fraction) -> tuple[Fraction, Fraction]:
    """For a condition that ends to hold somewhere, returns grid neighbours of which it does and does not, proven.

    Searches away from `near` > 0 in steps that double: two proofs when it is good, a few more when it is not.
    """
    first = _rank(near)
    step = 1 if holds(_at_rank(first)) else -1
    while holds(_at_rank(first + step)) is (step > 0):
        first, step = first + step, 2 * step
        if abs(step) > _STEP_MAX:
            raise InternalError("no root was found near the guess")
    return _narrow(holds, *sorted((first, first + step)))


def _bisect(holds: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """For a condition that holds at `low` and not at `high`, returns grid neighbours of which the same is proven."""
    first, last = _rank(low), _rank(high) + 1
    if not holds(_at_rank(first)) or holds(_at_rank(last)):
        raise InternalError("the bracket of a root does not hold it")
    return _narrow(holds, first, last)


def _narrow(holds: Callable[[Fraction], bool], first: int, last: int) -> tuple[Fraction, Fraction]:
    """Halves a bracket of ranks, of which it is proven that `holds` does at the first and not at the last."""
    while last - first > 1:
        middle = (first + last) // 2
        if holds(_at_rank(middle)):
            first = middle
        else:
            last = middle
    return _at_rank(first), _at_rank(last)


def _rank(value: Fraction) -> int:
    """The rank of the largest grid number at most `value` > 0."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    mantissa = _scaled(value, _MANTISSA_BITS - exponent)
    if mantissa < _MANTISSA:
        exponent -= 1
        mantissa = _scaled(value, _MANTISSA_BITS - exponent)
    return (exponent - 1) * _MANTISSA + mantissa


def _scaled(value: Fraction, twos: int) -> int:
    """value * 2^twos, rounded down."""
    if twos >= 0:
        return (value.numerator << twos) // value.denominator
    return value.numerator // (value.denominator << -twos)


def _at_rank(rank: int) -> Fraction:
    exponent, rest = divmod(rank, _MANTISSA)
    return dyadic(_MANTISSA + rest, exponent - _MANTISSA_BITS)


def _moved(near: Fraction, step: arb) -> Fraction:
    """A guess after a step of Newton's method; as it was where the step is not small, or could not be computed."""
    if not step.is_finite() or abs(step) > ball(near) / 2:
        return near
    return near + upper(step.mid())


def _check_not_negative(value: Fraction, name: str) -> None:
    if value < 0:
        raise RequestError(f"{name} is not negative")


def _check_delta(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise RequestError("delta lies strictly between 0 and 1")
