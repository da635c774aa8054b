"""Ex-post bounds: a mechanism returns a value and a bound on its privacy loss, and the bound is part of the output.

A transcript satisfies E[e^((alpha-1)(L-bound))] <= 1 at every stopping time, L its privacy loss and `bound` the sum of
the bounds it returned. `ExPost` is that bound: bounds at one order add up, may be raised, and survive every later step
that leaves them as they are. The conversions turn one into (epsilon, delta), outcome by outcome. What does not survive
(`Uncertified`) can be computed beside it, for comparison. Source: Raisa, Koskela & Honkela (arXiv 2509.22213);
docs/mathematics.md, "Ex-post bounds" and "Ex-post conversions".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Protocol, Self

from parco.balls import arb, ball, precision, upper
from parco.errors import RequestError
from parco.measure import Measure
from parco.privacy import renyi

__all__ = [
    "Bound",
    "Conversion",
    "ExPost",
    "Uncertified",
    "Weights",
    "bound_at_order",
    "capped",
    "check_weights",
    "hockey_stick_epsilon_upper",
    "least_upper",
    "over_parts",
    "probabilistic_epsilon_upper",
]

_BITS = 256

Weights = tuple[tuple[Fraction, Fraction], ...]
"""Pairs of a Renyi order > 1 and its weight > 0, fixed before the run; the weights add up to at most 1."""


class Conversion(Protocol):
    """Either of the two conversions below: from a bound at an order to an epsilon at delta."""

    def __call__(self, bound: Fraction, *, order: Fraction, delta: Fraction) -> Fraction: ...


@dataclass(frozen=True)
class Bound:
    """An `epsilon` >= 0 in nats that holds at the whole `delta`, the conversion's and the mechanisms' together.

    `order`: the Renyi order it was proven at, where the measure or the odometer has one.
    """

    epsilon: Fraction
    delta: Fraction
    order: Fraction | None = None


@dataclass(frozen=True)
class Uncertified:
    """Pr[loss > `epsilon`] <= `delta` for the very output that came: a number to compare with, never a certificate.

    Merging two outcomes may make that probability as large as the larger one's (docs/mathematics.md, "What does not
    survive"), so that no receipt carries it and nothing adds to it. `order`: the Renyi order used.
    """

    epsilon: Fraction
    delta: Fraction
    order: Fraction | None = None

    @property
    def certified(self) -> bool:
        """No."""
        return False


@dataclass(frozen=True)
class ExPost:
    """The bound that came with an output: E[e^((order-1)(L-bound))] <= 1, both orders of the pair; RequestError else.

    `measure`: the account's, in which costs added up; its own order where it has one. `order` > 1; None in pure, where
    L <= bound with certainty, hence at every order. `bound` >= 0 in nats, for what the `measure` counts; `delta` >= 0:
    what mechanisms took of their own, which stays apart and adds up. Source: docs/mathematics.md, "Ex-post bounds".
    """

    measure: Measure
    order: Fraction | None
    bound: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        _check_amount(self.bound)
        _check_amount(self.delta)
        if (self.order is None) != (self.measure == Measure.PURE):
            raise RequestError("an ex-post bound has an order, in every measure but pure")
        if self.order is not None:
            _check_order(self.order, self.measure)

    @classmethod
    def of(cls, measure: Measure, total: Fraction, *, order: Fraction, delta: Fraction = Fraction(0)) -> Self:
        """For every total >= 0 of a measure and order > 1, returns its ex-post bound, or raises RequestError.

        `total`: an amount of the `measure`; `delta` >= 0 beside it. The `order` is left out in pure. Source:
        `bound_at_order`.
        """
        bound = bound_at_order(measure, total, order=order)
        return cls(measure, None if measure == Measure.PURE else order, bound, delta)

    def __add__(self, other: Self) -> Self:
        """The bound of both outputs together, however the second was chosen after the first; RequestError for two
        orders or measures.
        """
        self._check_same(other)
        return replace(self, bound=self.bound + other.bound, delta=self.delta + other.delta)

    def raised(self, bound: Fraction) -> Self:
        """For every larger `bound` >= 0, returns it in place of this one; raises RequestError for a smaller one.

        Always valid, also where the larger one is chosen in view of the output. Source: docs/mathematics.md, "Ex-post
        bounds".
        """
        if bound < self.bound:
            raise RequestError("an ex-post bound is raised, never lowered: what came with an output stays with it")
        return replace(self, bound=bound)

    def within(self, cap: Self) -> bool:
        """Whether bound and delta are at most the `cap`'s >= 0; RequestError for a cap at another order.

        Source: docs/mathematics.md, "Ex-post bounds".
        """
        self._check_same(cap)
        return self.bound <= cap.bound and self.delta <= cap.delta

    def hockey_stick(self, delta: Fraction) -> Bound:
        """For every 0 < delta < 1, returns epsilon with P(S) <= integral over S of e^epsilon dQ + delta for all S.

        Epsilon is a function of the outcome through its bound, so that it survives post-processing; the mechanisms' own
        delta is added. In pure it is the bound itself, and `delta` is not used. Raises RequestError. Source:
        `hockey_stick_epsilon_upper`.
        """
        if self.order is None:
            return Bound(self.bound, self.delta)
        epsilon = hockey_stick_epsilon_upper(self.bound, order=self.order, delta=delta)
        return Bound(epsilon, delta + self.delta, self.order)

    def probabilistic(self, delta: Fraction) -> Uncertified:
        """For every 0 < delta < 1, returns what the loss stays below with probability 1 - delta, at all times at once.

        Raises RequestError where a mechanism took a delta of its own: the loss then has no such bound. Source:
        `probabilistic_epsilon_upper`.
        """
        if self.delta:
            raise RequestError("a mechanism has spent a delta of its own: only the hockey-stick bound holds")
        if self.order is None:
            return Uncertified(self.bound, Fraction(0))
        epsilon = probabilistic_epsilon_upper(self.bound, order=self.order, delta=delta)
        return Uncertified(epsilon, delta, self.order)

    def _check_same(self, other: Self) -> None:
        if (self.measure, self.order) != (other.measure, other.order):
            raise RequestError("ex-post bounds of one measure at one order add up and compare, and no others")


def bound_at_order(measure: Measure, total: Fraction, *, order: Fraction) -> Fraction:
    """For every realised total >= 0 and order alpha > 1, returns the exact ex-post bound, or raises RequestError.

    `total`: an amount of the `measure`. gdp: alpha mu^2/2. zcdp: alpha rho. renyi: the total itself, at its own order
    and no other. pure: the sum of epsilon itself, at every order. Source: docs/mathematics.md, "Ex-post conversions".
    """
    _check_order(order, measure)
    _check_amount(total)
    factors = {Measure.GDP: order / 2, Measure.ZCDP: order}
    return factors.get(measure, Fraction(1)) * total


def hockey_stick_epsilon_upper(bound: Fraction, *, order: Fraction, delta: Fraction) -> Fraction:
    """For every bound >= 0, order > 1 and 0 < delta < 1, returns a hockey-stick epsilon, or raises RequestError.

    bound + log(1/delta)/(alpha-1) + log(1-1/alpha) - log(alpha)/(alpha-1), rounded up and at least 0: for every set S
    of outcomes P(S) <= integral over S of e^epsilon dQ + delta, with epsilon a function of the outcome through its
    bound. Survives post-processing. Source: the conversion of Canonne, Kamath & Steinke 2020 (proposition 12) against
    e^bound Q.
    """
    return renyi.epsilon_at_order_upper(bound, order=order, delta=delta)


def probabilistic_epsilon_upper(bound: Fraction, *, order: Fraction, delta: Fraction) -> Fraction:
    """For every bound >= 0, order > 1 and 0 < delta < 1, returns a bound on the loss, or raises RequestError.

    bound + log(1/delta)/(alpha-1), rounded up: with probability at least 1 - delta the privacy loss stays below it, at
    all times at once. Valid only when all mechanism deltas are zero; lost under post-processing that drops the bound.
    Source: Ville's inequality; docs/mathematics.md, "Ex-post conversions".
    """
    _check(bound, order, delta)
    with precision(_BITS):
        return upper(ball(bound) + _slack(order, delta))


def check_weights(measure: Measure, weights: Weights) -> None:
    """For every list of orders > 1 with weights > 0 that add up to at most 1, passes; raises RequestError otherwise.

    No `measure` but pure goes without; renyi has its own order alone. Source: docs/mathematics.md, "Filters and
    odometers".
    """
    orders = [order for order, _ in weights]
    if not orders or len(set(orders)) != len(orders) or min(orders) <= 1:
        raise RequestError("an odometer has one or more orders, each greater than 1 and named once")
    if measure.order is not None and orders != [measure.order]:
        raise RequestError(f"an odometer of {measure} has its own order and no other")
    if any(weight <= 0 for _, weight in weights) or sum(weight for _, weight in weights) > 1:
        raise RequestError("the weights of the orders are positive and add up to at most 1")


def least_upper(measure: Measure, total: Fraction, *, weights: Weights, delta: Fraction, convert: Conversion) -> Bound:
    """For every total >= 0 and weights fixed before the run, returns the least epsilon over their orders.

    Each order at its weight of delta, 0 < delta < 1, by `convert`, either conversion; `measure`, `total` as
    `bound_at_order` takes them, `weights` as `check_weights` does, or RequestError is raised. Rounded up; holds at
    delta, and an order is named where there is but one. Source: docs/mathematics.md, "Filters and odometers".
    """
    check_weights(measure, weights)
    epsilon = min(
        convert(bound_at_order(measure, total, order=order), order=order, delta=weight * delta)
        for order, weight in weights
    )
    return Bound(epsilon, delta, weights[0][0] if len(weights) == 1 else None)


def capped(cap: ExPost, *, delta: Fraction) -> Bound:
    """For every run whose total stays `within` a cap fixed before it, returns an ordinary guarantee, or RequestError.

    The whole run is (order, cap)-Renyi private, in pure cap-private: epsilon at 0 < `delta` < 1 (unused in pure) is a
    constant, for every set of outcomes. By the improved conversion, rounded up. Source: docs/mathematics.md, "Ex-post
    bounds".
    """
    return cap.hockey_stick(delta)


def over_parts(bounds: Iterable[ExPost], *, neighbours: str) -> ExPost:
    """For every split of the units by a secret coin, returns the bound >= 0 of all parts together: their maximum.

    `bounds`: one a part, at one order. Raises RequestError for no part, and for `neighbours` other than add-or-remove:
    replacing a unit may change two parts, whose bounds add up. Source: docs/mathematics.md, "Parts".
    """
    if neighbours != "add-or-remove":
        raise RequestError("parts share their bounds under add-or-remove only: elsewhere the bounds add up")
    found = list(bounds)
    if not found:
        raise RequestError("units are in one part or more")
    return reduce(_larger, found)


def _larger(one: ExPost, other: ExPost) -> ExPost:
    one._check_same(other)
    return replace(one, bound=max(one.bound, other.bound), delta=max(one.delta, other.delta))


def _slack(order: Fraction, delta: Fraction) -> arb:
    return ball(1 / delta).log() / ball(order - 1)


def _check(bound: Fraction, order: Fraction, delta: Fraction) -> None:
    _check_amount(bound)
    _check_order(order)
    if not 0 < delta < 1:
        raise RequestError("delta lies strictly between 0 and 1")


def _check_amount(bound: Fraction) -> None:
    if bound < 0:
        raise RequestError("a total is not negative")


def _check_order(order: Fraction, measure: Measure | None = None) -> None:
    if order <= 1:
        raise RequestError("an order is greater than 1")
    if measure is not None and measure.order not in (None, order):
        raise RequestError(f"the bounds of {measure} hold at its own order")
