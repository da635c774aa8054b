"""The budget of a contract, in the field's own words, and the caps that follow from it."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, model_validator

from parco.contract.fields import Exact, Part
from parco.measure import Cost, Measure, delta_units_floor, units_floor
from parco.privacy import conversion

__all__ = ["AMOUNTS", "Budget"]

AMOUNTS = ("epsilon", "mu", "rho", "epsilon_at_order", "total")
_OWN_AMOUNT = {"pure": "epsilon", "gdp": "mu", "zcdp": "rho", "renyi": "epsilon_at_order"}

# A gdp budget with a larger epsilon has mu squared above 169,000 for every delta >= 1e-300: no account can hold it, and
# beyond about 1e5 the profile costs more digits than it is worth.
_EPSILON_MAX = 10**5


class Budget(Part):
    """The most that all releases together may cost, in the account's measure.

    One amount is given: `epsilon` (with `delta`, unless pure), or the measure's own: `mu` for gdp, `rho` for zcdp,
    `epsilon_at_order` for renyi, or `total` in any. `delta` is the claims' delta; `delta_mechanisms` of it is set
    aside for mechanisms that need some, and the rest converts costs into epsilon.
    """

    tag: Literal["gdp", "pure", "zcdp", "renyi"] = Field(default="gdp", alias="measure")
    order: Exact | None = None
    epsilon: Exact | None = None
    mu: Exact | None = None
    rho: Exact | None = None
    epsilon_at_order: Exact | None = None
    total: Exact | None = None
    delta: Exact = Fraction(0)
    delta_mechanisms: Exact = Fraction(0)
    receipt_order: Exact = Fraction(8)
    default_share: Exact = Fraction(1, 20)

    @model_validator(mode="before")
    @classmethod
    def _own_order(cls, budget: object) -> object:
        """A renyi budget has one order; written out, so that leaving it out and writing it are one contract."""
        if isinstance(budget, dict) and "order" in budget:
            return {"receipt_order": budget["order"], **budget}
        return budget

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_amount()
        self._check_delta()
        if (self.tag == "renyi") != (self.order is not None):
            raise ValueError("the measure renyi, and no other, needs an order")
        if self.receipt_order <= 1:
            raise ValueError("receipt_order must be above 1")
        if self.order not in (None, self.receipt_order):
            raise ValueError("a renyi budget has one order: leave out receipt_order")
        if not 0 < self.default_share <= 1:
            raise ValueError("default_share must be above 0 and at most 1")
        too_large = self.epsilon is not None and self.epsilon > _EPSILON_MAX
        if too_large or not 0 < self.cap_units < 2**63:
            raise ValueError("the budget is outside what an account can hold: 1e-15 to 9223 in its measure")
        return self

    def _check_amount(self) -> None:
        own = _OWN_AMOUNT[self.tag]
        given = [name for name in AMOUNTS if getattr(self, name) is not None]
        if len(given) != 1 or given[0] not in ("epsilon", own, "total"):
            words = dict.fromkeys(("epsilon", own, "total"))
            raise ValueError(f"a {self.tag} budget is given by exactly one of {', '.join(words)}")
        if getattr(self, given[0]) <= 0:
            raise ValueError("the budget must be above 0")

    def _check_delta(self) -> None:
        if not 0 <= self.delta_mechanisms <= self.delta < 1:
            raise ValueError("0 <= delta_mechanisms <= delta < 1 must hold")
        if self.tag == "pure" and self.delta_for_conversion != 0:
            raise ValueError("a pure budget converts nothing: leave out delta, or set it all aside as delta_mechanisms")
        if self.tag != "pure" and self.delta_for_conversion < Fraction(10) ** -300:
            raise ValueError(f'a {self.tag} budget needs delta, for example delta = "1e-6"')

    @property
    def measure(self) -> Measure:
        """The account's currency."""
        return Measure(self.tag, self.order)

    @property
    def delta_for_conversion(self) -> Fraction:
        """What is left of delta to convert costs into epsilon."""
        return self.delta - self.delta_mechanisms

    @property
    def cap_units(self) -> int:
        """The cap in 10^-15 of the measure, rounded down."""
        if self.total is not None:
            return units_floor(self.total)
        if self.mu is not None:
            return units_floor(self.mu**2)
        if self.epsilon is not None:
            return units_floor(conversion.amount_lower(self.measure, self.epsilon, self.delta_for_conversion))
        return units_floor(self.rho or self.epsilon_at_order or Fraction(0))

    @property
    def cap(self) -> Cost:
        """The cap as an exact amount of the measure."""
        return Cost(self.cap_units)

    @property
    def delta_cap_units(self) -> int:
        """The cap of mechanisms' own deltas in 10^-18, rounded down."""
        return delta_units_floor(self.delta_mechanisms)
