"""All accountants side by side: what each may claim of a schedule, whether that is tight, and what it assumes.

Source: docs/mathematics.md, "Costs", "Renyi conversions", "Gaussian profile", "Composition by a contour".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from parco.errors import RequestError
from parco.measure import Exactable, Measure, exact, significant_text
from parco.privacy import classical, conversion, exponential, gaussian, laplace, pure, sparse_vector
from parco.privacy.composition import Composition, compose
from parco.privacy.facts import (
    Approximate,
    Exponential,
    Facts,
    Gaussian,
    Laplace,
    PrivacyProfile,
    Pure,
    RandomisedResponse,
    SparseVector,
)
from parco.privacy.schedule import Schedule

__all__ = ["Account", "AccountantClaim", "account", "cost_upper"]

_DIGITS = 15

_SAMPLED = "each unit is in each sample by a secret coin of its own (Poisson sampling)"
_ADD_OR_REMOVE = "neighbours: add or remove one unit"
_FIXED = "mechanisms and parameters fixed in advance"
_ANY_ORDER = "parameters may be chosen along the way, within a total fixed in advance"


@dataclass(frozen=True)
class AccountantClaim:
    """An upper bound `epsilon` at the delta of its account, by one `accountant`.

    `lower`: a proven lower bound, where there is one. `status`: valid (holds), or tight (holds, and no smaller epsilon
    does, up to the width of the interval). `assumes`: what it depends on, in words.
    """

    accountant: str
    epsilon: Fraction
    lower: Fraction | None
    status: str
    assumes: tuple[str, ...]

    def record(self) -> dict[str, object]:
        """The claim as text: epsilon rounded up, lower rounded down, to 15 significant digits."""
        low = None if self.lower is None else significant_text(self.lower, _DIGITS, up=False)
        return {
            "accountant": self.accountant,
            "epsilon": significant_text(self.epsilon, _DIGITS, up=True),
            "lower": low,
            "status": self.status,
            "assumes": list(self.assumes),
        }


@dataclass(frozen=True)
class Account:
    """What all accountants say of a schedule of so many `releases`, at one `delta`.

    `claims`: in the order of `account`; `not_applicable`: those that do not apply, with the reason.
    """

    delta: Fraction
    releases: int
    claims: tuple[AccountantClaim, ...]
    not_applicable: dict[str, str]

    def record(self) -> dict[str, object]:
        """As text, for JSON."""
        return {
            "delta": significant_text(self.delta, _DIGITS, up=True),
            "releases": self.releases,
            "claims": [claim.record() for claim in self.claims],
            "not_applicable": dict(self.not_applicable),
        }


def account(schedule: Schedule, delta: Exactable, *, tolerance: Exactable = "1e-6") -> Account:
    """For every schedule fixed in advance and 0 < delta < 1, returns what each accountant claims, or raises
    RequestError.

    closed-form, rdp, zcdp, gdp and pld, in this order; `tolerance` is that of the last. An accountant that does not
    apply is named with the reason. AdaptiveHistoryError for a history that was not fixed in advance. Source:
    docs/mathematics.md, "Costs" and "Composition by a contour".
    """
    at = exact(delta, "delta")
    if not 0 < at < 1:
        raise RequestError("delta lies strictly between 0 and 1")
    composition = compose(schedule, tolerance)
    claims, missing = [], {}
    for name, make in _ACCOUNTANTS.items():
        try:
            claims.append(make(composition, at))
        except RequestError as error:
            missing[name] = str(error)
    return Account(at, schedule.count, tuple(claims), missing)


def cost_upper(facts: Facts, measure: Measure) -> tuple[Fraction, Fraction]:
    """For every mechanism on all units, `facts`, returns a cost in the measure and a delta of its own, or raises
    RequestError.

    The cost is rounded up; deltas add up beside it. A mechanism known by its profile has none, and Gaussian noise has
    none in pure. Source: docs/mathematics.md, "Costs".
    """
    if isinstance(facts, Gaussian):
        return gaussian.cost_factor(measure) * facts.mu_squared, Fraction(0)
    if isinstance(facts, Approximate):
        return pure.cost_upper(facts.epsilon, measure), facts.delta
    if isinstance(facts, PrivacyProfile):
        raise RequestError("a mechanism known by its privacy profile has no cost of its own in a measure")
    return _COSTS[type(facts)](facts.epsilon, measure), Fraction(0)  # type: ignore[attr-defined]


def _closed_form(composition: Composition, delta: Fraction) -> AccountantClaim:
    if composition.mu_squared is None:
        raise RequestError("it holds for Gaussian noise on all units only")
    epsilon = classical.epsilon_upper(composition.mu_squared.upper, delta)
    return AccountantClaim("closed-form", epsilon, None, "valid", (_ANY_ORDER,))


def _rdp(composition: Composition, delta: Fraction) -> AccountantClaim:
    return AccountantClaim("rdp", composition.renyi_epsilon(delta), None, "valid", _assumptions(composition))


def _by_measure(name: str, measure: Measure) -> Callable[[Composition, Fraction], AccountantClaim]:
    def claim(composition: Composition, delta: Fraction) -> AccountantClaim:
        if composition.schedule.sampled:
            raise RequestError(
                "sampling has no cost of its own in this measure; without it the bound would ignore the sampling"
            )
        costs = [(cost_upper(release.facts, measure), release.times) for release in composition.groups]
        own = sum((cost[1] * times for cost, times in costs), Fraction(0))
        if own >= delta:
            raise RequestError("the releases' own deltas add up to the delta of the claim: ask for a larger one")
        if measure == Measure.GDP and composition.mu_squared is not None:
            ends = composition.epsilon(delta)
            return AccountantClaim(name, ends.upper, ends.lower, "tight", (_FIXED,))
        total = sum((cost[0] * times for cost, times in costs), Fraction(0))
        epsilon = conversion.epsilon_upper(measure, total, delta - own)
        return AccountantClaim(name, epsilon, None, "valid", (_ANY_ORDER,))

    return claim


def _pld(composition: Composition, delta: Fraction) -> AccountantClaim:
    ends = composition.epsilon(delta)
    status = "tight" if composition.tight else "valid"
    return AccountantClaim("pld", ends.upper, ends.lower, status, _assumptions(composition))


def _assumptions(composition: Composition) -> tuple[str, ...]:
    return (_FIXED, _ADD_OR_REMOVE, _SAMPLED) if composition.schedule.sampled else (_FIXED,)


_COSTS: dict[type[Facts], Callable[[Fraction, Measure], Fraction]] = {
    Laplace: laplace.cost_upper,
    Pure: pure.cost_upper,
    RandomisedResponse: pure.cost_upper,
    Exponential: exponential.cost_upper,
    SparseVector: sparse_vector.cost_upper,
}

_ACCOUNTANTS: dict[str, Callable[[Composition, Fraction], AccountantClaim]] = {
    "closed-form": _closed_form,
    "rdp": _rdp,
    "zcdp": _by_measure("zcdp", Measure.ZCDP),
    "gdp": _by_measure("gdp", Measure.GDP),
    "pld": _pld,
}
