"""Ball arithmetic at the door: exact rationals go in, outward bounds come out.

A ball is a number with a proven error radius (Arb, through python-flint). The precision in python-flint is one setting
for the whole process, so whoever computes holds `precision`, which is also a lock: another thread can then neither
lower it half-way nor leave it changed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

from parco.errors import InternalError

__all__ = ["arb", "ball", "bits_below_one", "ctx_precision", "dyadic", "lower", "precision", "upper"]

_LOCK = threading.RLock()
_PRECISION = ctx.prec


def _after_fork() -> None:
    """A child has only the thread that forked: whoever held the lock is not there to give it back."""
    global _LOCK  # noqa: PLW0603 - one lock a process
    _LOCK = threading.RLock()
    ctx.prec = _PRECISION


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Within the block balls carry `bits` bits, and no other thread computes with balls."""
    with _LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ctx_precision() -> int:
    """The bits that balls carry now."""
    bits: int = ctx.prec
    return bits


def ball(value: Fraction | int) -> arb:
    """A ball that contains `value`, as small as the current precision allows."""
    return arb(fmpq(value.numerator, value.denominator))


def bits_below_one(value: Fraction) -> int:
    """About -log2 of a positive number, and 0 above one: the bits lost when it is what two numbers near 1 differ by."""
    return max(0, value.denominator.bit_length() - value.numerator.bit_length())


def upper(value: arb) -> Fraction:
    """A rational at least as large as every number in the ball; raises InternalError for a ball without a bound."""
    return _rational(value.upper())


def lower(value: arb) -> Fraction:
    """A rational at most as large as every number in the ball; raises InternalError for a ball without a bound."""
    return _rational(value.lower())


def _rational(exact: arb) -> Fraction:
    if not exact.is_finite():
        raise InternalError("a bound could not be computed: the ball has no finite end")
    mantissa, exponent = exact.man_exp()
    return dyadic(int(mantissa), int(exponent))


def dyadic(mantissa: int, exponent: int) -> Fraction:
    """mantissa * 2^exponent."""
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)
