"""Claims: epsilon and delta together with everything they depend on, and what they say in words.

Two kinds of claim may be made of any account at a time chosen from released output (docs/mathematics.md, "What may be
claimed"): its cap, and its realised total by an ex-post conversion. A third holds while all its releases are drawn from
schedules that were signed before the first of them. Putting a realised total into the exact profile is
not among them: after adaptive stopping it is wrong by a factor that grows with the number of possible stops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from parco.balls import ball, precision, upper
from parco.errors import RequestError
from parco.measure import Measure, exact_text, significant_text
from parco.privacy import classical, conversion, expost
from parco.privacy.facts import Gaussian
from parco.privacy.schedule import Schedule

__all__ = ["Claim", "Context", "cap_claims", "realised_claims", "schedule_claim"]

_DIGITS, _DIGITS_IN_WORDS = 15, 4
_BITS = 256
_FALSE_POSITIVES = Fraction(5, 100)

# Neighbouring relation -> (what the two data sets are called, what an attacker's odds are about).
_NEIGHBOURS = {
    "add-or-remove": ("in", "out", "that the unit is in the data against that it is not"),
    "replace": ("one value", "another value", "that the unit has one value against that it has another"),
}


@dataclass(frozen=True)
class Context:
    """What every claim on one account shares: unit and bounds as text, `neighbours` (the relation), measure.

    Raises RequestError for a neighbouring relation other than `add-or-remove` and `replace`.
    """

    unit: str
    neighbours: str
    bounds: str
    measure: Measure

    def __post_init__(self) -> None:
        if self.neighbours not in _NEIGHBOURS:
            raise RequestError("the neighbouring relation is add-or-remove or replace")

    def in_words(self) -> str:
        """Whom the claims protect, in a sentence."""
        return f"Protected: one {self.unit} ({self.neighbours}; {self.bounds})."


@dataclass(frozen=True)
class Claim:
    """An upper bound `epsilon` at `delta` in a `context`, with all it depends on.

    Source: docs/mathematics.md, "What a claim carries".

    `accountant`: how epsilon was derived: gaussian-profile, zcdp-improved, renyi-improved, closed-form, basic, pld,
    ex-post-hockey-stick or ex-post-probabilistic. `status`: valid (holds) or tight (holds, and no smaller epsilon
    does). `basis`: cap, realised or schedule; `total` is that amount of the measure. `order`: the Renyi order, where
    one was used. `fixed_in_advance`: whether the parameters of all releases were. `sampling`: the sampling assumption.
    `schedules`: the names of those whose releases it is about.
    """

    context: Context
    epsilon: Fraction
    delta: Fraction
    accountant: str
    status: str
    basis: str
    total: Fraction
    order: Fraction | None = None
    fixed_in_advance: bool = False
    sampling: str = "none"
    schedules: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """The claim as text, bool and None only; epsilon and delta are rounded up to 15 significant digits."""
        return {
            "epsilon": significant_text(self.epsilon, _DIGITS, up=True),
            "delta": significant_text(self.delta, _DIGITS, up=True),
            "unit": self.context.unit,
            "neighbours": self.context.neighbours,
            "bounds": self.context.bounds,
            "measure": str(self.context.measure),
            "accountant": self.accountant,
            "fixed_in_advance": self.fixed_in_advance,
            "sampling": self.sampling,
            "status": self.status,
            "order": None if self.order is None else exact_text(self.order),
            "basis": self.basis,
            "total": exact_text(self.total),
            **({"schedules": list(self.schedules)} if self.schedules else {}),
        }

    def in_words(self) -> str:
        """A plain reading that promises no more than the claim does; epsilon rounded up to four digits.

        Odds appear only where they follow: for a probabilistic claim, and where delta is 0.
        """
        return " ".join([self.context.in_words(), self.statement(), *self.caveats()])

    def statement(self) -> str:
        """The reading without unit and caveats, for a list of claims under one heading."""
        names = ", ".join(self.schedules)
        what = {
            "cap": f"Everything this account may release under its cap of {exact_text(self.total)}",
            "schedule": f"The whole of what was fixed in advance ({names}), drawn or not, and nothing outside of it",
        }.get(self.basis, "What was released up to here")
        return " ".join([f"{what}: {self._inequality()}", *self._attack()])

    def caveats(self) -> list[str]:
        """What must be said beside the statement, once where several claims share it."""
        caveats = []
        if self.delta and self.accountant != "ex-post-probabilistic":
            caveats.append(
                "delta is an additive slack between the two laws, not the probability that the data are exposed."
            )
        if self.basis == "schedule":
            caveats.append(
                "A claim on a schedule ends with the first release outside of it; then the cap's claim is what holds."
            )
        if self.status == "tight":
            caveats.append(
                "Tight: the noise as it was fixed loses this much, except for what rounding to a lattice hides."
            )
        if self.status == "valid":
            caveats.append("This is a valid bound, not a tight one: the truth may be smaller.")
        return caveats

    def true_positive_rate_upper(self, false_positive_rate: Fraction) -> Fraction:
        """For every false_positive_rate a in [0, 1], returns the most that an attacker with it finds, or RequestError.

        As a share of those who are in: min(e^epsilon a + delta, 1 - e^-epsilon (1 - delta - a)), rounded up, at most 1;
        meant for claims that bound every set of outcomes. Source: Kairouz, Oh & Viswanath 2015, theorem 2.1;
        docs/mathematics.md, "What an attacker finds".
        """
        if not 0 <= false_positive_rate <= 1:
            raise RequestError("a rate lies between 0 and 1")
        with precision(_BITS):
            odds, rate = ball(self.epsilon).exp(), ball(false_positive_rate)
            first = upper(odds * rate + ball(self.delta))
            second = upper(1 - (1 - ball(self.delta) - rate) / odds)
        return min(first, second, Fraction(1))

    def _inequality(self) -> str:
        epsilon, delta = (significant_text(value, _DIGITS_IN_WORDS, up=True) for value in (self.epsilon, self.delta))
        first, second, odds = _NEIGHBOURS[self.context.neighbours]
        if self.accountant == "ex-post-probabilistic":
            return (
                f"except with probability {delta}, the odds {odds} grow by a factor of at most e^{epsilon}, everything "
                "else about the data held fixed."
            )
        sets = "every set S of outcomes"
        if self.accountant == "ex-post-hockey-stick":
            sets += " that come with this bound or a smaller one"
        slack = f" + {delta}" if self.delta else ""
        text = f"for {sets}, Pr[S | {first}] <= e^{epsilon} Pr[S | {second}]{slack}, and conversely."
        if self.delta:
            return text
        return f"{text} So the odds {odds} grow by a factor of at most e^{epsilon}, everything else held fixed."

    def _attack(self) -> list[str]:
        """What an attacker can do, where the claim bounds every set of outcomes alike."""
        # An ex-post claim of a cap that moved bounds outcomes with this cap or a smaller one, not every set.
        every_set = self.basis in ("cap", "schedule") and not self.accountant.startswith("ex-post")
        if not every_set or self.context.neighbours != "add-or-remove":
            return []
        found = significant_text(100 * self.true_positive_rate_upper(_FALSE_POSITIVES), _DIGITS_IN_WORDS, up=True)
        return [
            f"So whoever tries to tell from it all whether a given {self.context.unit} is in the data, and is wrong "
            f"about {float(100 * _FALSE_POSITIVES):g} % of those who are not, finds at most {found} % of those who are."
        ]


def cap_claims(
    context: Context, *, cap: Fraction, delta: Fraction, delta_mechanisms: Fraction = Fraction(0)
) -> tuple[Claim, ...]:
    """For every account with this cap, returns what always holds of it, the sharpest first, or raises RequestError.

    `context`: what all claims on the account share; `cap` >= 0, an amount of its measure. By the sharpest conversion at
    `delta` (0 < delta < 1; unused for pure), and for gdp and zcdp the classical closed form beside it; the claims'
    delta adds `delta_mechanisms`, what mechanisms may spend of their own. Labelled valid, not tight: parameters are
    chosen along the way, so that a run may end below the cap, or spend it on better mechanisms; a tight claim needs a
    schedule fixed in advance. Source: docs/mathematics.md, "What may be claimed" (i).
    """
    _check_total(cap)
    measure = context.measure
    epsilons = {conversion.ACCOUNTANTS[measure.tag]: conversion.epsilon_upper(measure, cap, delta)}
    if measure in (Measure.GDP, Measure.ZCDP):
        epsilons["closed-form"] = classical.epsilon_upper(cap if measure == Measure.GDP else 2 * cap, delta)
    whole = delta_mechanisms + (delta if measure != Measure.PURE else 0)
    return tuple(
        Claim(context, epsilon, whole, accountant=name, status="valid", basis="cap", total=cap)
        for name, epsilon in epsilons.items()
    )


def realised_claims(
    context: Context, *, total: Fraction, order: Fraction, delta: Fraction, delta_mechanisms: Fraction = Fraction(0)
) -> tuple[Claim, ...]:
    """For every total realised at a stopping time, returns what may be claimed of it, or raises RequestError.

    `context`: what all claims on the account share; `total` >= 0, an amount of its measure. pure: the total itself,
    without order or delta. Other measures: a hockey-stick and a probabilistic claim at `delta`, 0 < delta < 1, and the
    receipt `order` > 1, both fixed at signing; the second only where no mechanism spent a delta of its own
    (`delta_mechanisms`, which the first adds to its delta). Source: docs/mathematics.md, "What may be claimed" (ii).
    """
    _check_total(total)
    if context.measure == Measure.PURE:
        made = Claim(
            context, total, delta_mechanisms, accountant="basic", status="valid", basis="realised", total=total
        )
        return (made,)
    bound = expost.bound_at_order(context.measure, total, order=order)
    epsilons = {"ex-post-hockey-stick": expost.hockey_stick_epsilon_upper(bound, order=order, delta=delta)}
    if delta_mechanisms == 0:
        epsilons["ex-post-probabilistic"] = expost.probabilistic_epsilon_upper(bound, order=order, delta=delta)
    whole = delta + delta_mechanisms
    return tuple(
        Claim(context, epsilon, whole, accountant=name, status="valid", basis="realised", total=total, order=order)
        for name, epsilon in epsilons.items()
    )


def schedule_claim(
    context: Context, schedule: Schedule, *, total: Fraction, delta: Fraction, schedules: tuple[str, ...]
) -> Claim:
    """For every schedule signed before the first release, returns what holds of all of it, or raises RequestError.

    `context`: what all claims on the account share; `schedule`: the pairs of its steps, all of them; `schedules`: the
    names under which they were signed; `total` >= 0: what they are charged, an amount of the measure. By composition at
    `delta`, rounded up, where 0 < delta < 1; at delta 0, which only pure has, the total itself. Tight where all noise
    is Gaussian. It bounds every set of outcomes in which nothing was released outside. Source: docs/mathematics.md,
    "Drawn from a schedule".
    """
    from parco.privacy.composition import compose

    _check_total(total)
    made = Claim(
        context,
        total,
        delta,
        accountant="basic",
        status="valid",
        basis="schedule",
        total=total,
        fixed_in_advance=True,
        schedules=schedules,
    )
    if delta == 0:
        if context.measure != Measure.PURE:
            raise RequestError("a claim on a schedule needs a delta above 0")
        return made
    composed = compose(schedule)
    gaussian = all(isinstance(release.facts, Gaussian) for release in schedule.releases)
    status = "tight" if composed.tight and gaussian else "valid"
    return replace(made, epsilon=composed.epsilon(delta).upper, accountant="pld", status=status)


def _check_total(total: Fraction) -> None:
    if total < 0:
        raise RequestError("a total is not negative")
