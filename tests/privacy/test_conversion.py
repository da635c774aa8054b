"""One door for all measures: what a budget in epsilon and delta allows, and what an amount implies."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath
import pytest

from parco.measure import Measure
from parco.privacy import conversion, expost, gaussian, pure
from parco.privacy.claim import Context, cap_claims, realised_claims

DELTA = Fraction(1, 10**6)
RENYI = Measure.renyi(Fraction(12))
MEASURES = [Measure.PURE, Measure.ZCDP, Measure.GDP, RENYI]


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    """Twice the digits of a ball of 256 bits: an oracle that cancels must still be the better one."""
    with mpmath.workdps(160):
        yield


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("epsilon", [Fraction(2), Fraction(7, 3), Fraction(40)])
def test_an_amount_and_its_epsilon_are_each_others_inverse(measure: Measure, epsilon: Fraction) -> None:
    amount = conversion.amount_lower(measure, epsilon, DELTA)
    back = conversion.epsilon_upper(measure, amount, DELTA)
    # Both ways are rounded outward, and each finds an order of its own.
    assert epsilon * (1 - Fraction(1, 10**9)) <= back <= epsilon * (1 + Fraction(1, 10**12))


def test_gaussian_noise_is_told_alike_in_every_measure() -> None:
    """mu^2 in gdp is mu^2/2 in zcdp and alpha mu^2/2 at order alpha; the sharper the measure, the less epsilon."""
    mu_squared = Fraction(1, 2)
    exact = conversion.epsilon_upper(Measure.GDP, mu_squared, DELTA)
    zcdp = conversion.epsilon_upper(Measure.ZCDP, mu_squared / 2, DELTA)
    at_order = conversion.epsilon_upper(RENYI, mu_squared * 12 / 2, DELTA)
    assert exact < zcdp < at_order
    for measure, total in ((Measure.GDP, mu_squared), (Measure.ZCDP, mu_squared / 2), (RENYI, 6 * mu_squared)):
        assert expost.bound_at_order(measure, total, order=Fraction(12)) == 6 * mu_squared


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 10), Fraction(1), Fraction(5), Fraction(60)])
def test_a_pure_mechanism_costs_at_least_what_randomised_response_loses(epsilon: Fraction) -> None:
    """Randomised response is the worst of them: its divergence at each order must be covered, and is reached at one."""
    exact = mpmath.mpf(epsilon.numerator) / epsilon.denominator
    likely = mpmath.exp(exact) / (1 + mpmath.exp(exact))

    def divergence(order: int) -> mpmath.mpf:
        rare = 1 - likely
        return mpmath.log(likely**order * rare ** (1 - order) + rare**order * likely ** (1 - order)) / (order - 1)

    charged = pure.cost_upper(epsilon, RENYI)
    at_order = mpmath.mpf(charged.numerator) / charged.denominator
    assert divergence(12) <= at_order <= divergence(12) * (1 + mpmath.mpf(10) ** -15)
    rho = pure.cost_upper(epsilon, Measure.ZCDP)
    for order in (2, 3, 12, 200):
        assert divergence(order) <= order * mpmath.mpf(rho.numerator) / rho.denominator
    assert pure.cost_upper(epsilon, Measure.PURE) == epsilon
    assert pure.cost_upper(epsilon, Measure.GDP) == pure.mu_squared_upper(epsilon)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_delta_set_aside_for_mechanisms_is_added_to_every_claim_and_ends_the_probabilistic_one(
    measure: Measure,
) -> None:
    context, aside = Context("unit", "add-or-remove", "bounds", measure), Fraction(1, 10**8)
    cap = cap_claims(context, cap=Fraction(1), delta=DELTA, delta_mechanisms=aside)
    made = realised_claims(context, total=Fraction(1), order=Fraction(12), delta=DELTA, delta_mechanisms=aside)
    whole = aside if measure == Measure.PURE else DELTA + aside
    assert {claim.delta for claim in (*cap, *made)} == {whole}
    assert "ex-post-probabilistic" not in {claim.accountant for claim in made}
    plain = realised_claims(context, total=Fraction(1), order=Fraction(12), delta=DELTA)
    assert len(plain) == (1 if measure == Measure.PURE else 2)


def test_the_cost_factor_of_gaussian_noise_is_the_divergence_of_two_normal_laws() -> None:
    """D_alpha(N(1, s^2) || N(0, s^2)) by quadrature, at s = 2."""
    for order in (2, 12):

        def density(x: mpmath.mpf, order: int = order) -> mpmath.mpf:
            return mpmath.exp(-order * (x - 1) ** 2 / 8 - (1 - order) * x**2 / 8) / mpmath.sqrt(8 * mpmath.pi)

        divergence = mpmath.log(mpmath.quad(density, [-60, -5, 0, order, 2 * order, 80])) / (order - 1)
        factor = gaussian.cost_factor(Measure.renyi(Fraction(order)))
        assert abs(divergence - mpmath.mpf(factor.numerator) / factor.denominator / 4) < mpmath.mpf(10) ** -20
        zcdp = gaussian.cost_factor(Measure.ZCDP)
        assert factor == order * zcdp
