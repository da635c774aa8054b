"""The law of refined answers: what a path shows together, by many draws and by exact sums, and planted faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.errors import RequestError
from parco.measure import Measure
from parco.mechanisms import design
from parco.mechanisms.mechanism import Gaussian, TwoSidedGeometric
from parco.mechanisms.refinement import GaussianPath, RefinedGaussian, reach_steps
from parco.mechanisms.refining import refined_for_cost, refined_for_error
from parco.privacy.sensitivity import Sensitivity
from tests.noise.tapes import Stream

ONE = Fraction(1)
UNIT = Sensitivity(l1=Fraction(2), l2_squared=Fraction(2))
LEVEL = Fraction(95, 100)
DRAWS = 40_000
# Of a test that is made once, at a seed that is fixed: how rarely a right law may look wrong.
FALSE_ALARM = 1e-6
MEASURES = (Measure.ZCDP, Measure.GDP, Measure.renyi(Fraction(4)), Measure.PURE)


def ladder(*scales: int) -> list[RefinedGaussian]:
    """A path of answers of these scales, each refining the one before, on a lattice of 1."""
    laws = [Gaussian(Fraction(scale), ONE) for scale in scales]
    return [
        RefinedGaussian(law.scale, law.lattice, before=tuple(laws[:place])) for place, law in enumerate(laws) if place
    ]


def estimates(path: GaussianPath, drawn: Sequence[Sequence[int]]) -> list[float]:
    return [float(estimate) for estimate in path.estimates(drawn)]


def off(found: float, wanted: float, deviation: float) -> bool:
    """Whether a mean of many draws is further from what it should be than chance would have it."""
    return abs(found - wanted) > -NormalDist().inv_cdf(FALSE_ALARM / 2) * deviation


def wrong_covariances(
    told: Sequence[Sequence[float]], variances: Sequence[float], slack: float
) -> list[tuple[int, int]]:
    """The pairs (j, k) whose covariance is not min(t_j, t_k), roundings apart."""
    found = []
    for j, first in enumerate(told):
        for k, second in enumerate(told[: j + 1]):
            products = np.multiply(first, second)
            deviation = float(np.std(products)) / math.sqrt(len(first))
            wanted = min(variances[j], variances[k])
            if off(float(np.mean(products)), wanted, deviation + slack * wanted):
                found.append((j, k))
    return found


def test_answers_on_a_path_have_the_covariances_of_a_brownian_path() -> None:
    """(m_1, m_2, m_3) of exact value 0, against Cov(m_j, m_k) = min(t_j, t_k); a planted weight is seen."""
    finest = ladder(40, 20, 9)[-1]
    draws = finest.path.draws
    drawn = [draw.draw([0] * DRAWS, Stream(f"path {place}")) for place, draw in enumerate(draws)]
    paths = [GaussianPath(draws[:length]) for length in (1, 2, 3)]
    told = [estimates(path, drawn[: len(path.draws)]) for path in paths]
    variances = [float(path.variance) for path in paths]
    assert variances == pytest.approx([1600, 400, 81], rel=1e-12)
    assert wrong_covariances(told, variances, 1e-3) == []

    # As if the second draw weighed as much as the first: unbiased, and of the wrong law.
    planted = [(one * draws[0].lattice + two * draws[1].lattice) / 2 for one, two in zip(*drawn[:2], strict=True)]
    assert wrong_covariances([told[0], list(map(float, planted))], variances[:2], 1e-3) != []


def test_the_first_and_the_refined_answer_are_two_draws_weighted_by_precision() -> None:
    """What tells first and refined apart is independent of the refined one, and normal: by the squares of both."""
    (refined,) = ladder(30, 12)
    first, second = refined.path.draws
    drawn = [first.draw([0] * DRAWS, Stream("first")), second.draw([0] * DRAWS, Stream("second"))]
    fine = np.array(estimates(refined.path, drawn))
    rest = np.array(drawn[0], float) - fine

    def faults(fine: np.ndarray, rest: np.ndarray) -> list[str]:
        t_1, t_2 = 900.0, 144.0
        moments = {
            "mean": (fine, 0.0),
            "variance": (fine**2, t_2),
            "rest": (rest**2, t_1 - t_2),
            "product": (fine * rest, 0.0),
            "squares": ((fine**2 - t_2) * (rest**2 - t_1 + t_2), 0.0),
            "fourth": (fine**4, 3 * t_2**2),
        }
        return [
            name
            for name, (values, wanted) in moments.items()
            if off(float(values.mean()), wanted, float(values.std()) / math.sqrt(DRAWS) + 1e-3 * abs(wanted))
        ]

    assert faults(fine, rest) == []
    # A weight that is a tenth too large.
    share = float(refined.path.variance / first.scale**2) * 1.1
    wrong = share * np.array(drawn[0]) + (1 - share) * float(second.lattice) * np.array(drawn[1])
    assert faults(wrong, np.array(drawn[0]) - wrong) != []


def test_cells_are_the_estimates_rounded_halves_upwards() -> None:
    for law in ladder(40, 25, 10, 4):
        drawn = [draw.draw([7, -3, 0, 10**9], Stream(str(draw.scale))) for draw in law.path.draws]
        exact = law.path.estimates(drawn)
        assert law.cells(drawn) == [math.floor(one / law.lattice + Fraction(1, 2)) for one in exact]
    for bad in ([], [[1]], [[1], [1, 2]]):
        with pytest.raises(RequestError):
            ladder(4, 3)[0].cells(bad)


def test_a_refined_interval_covers_and_not_by_much_more() -> None:
    """Exactly, for two draws: over all values of the first, the chance that the second leaves the cell inside."""
    for scales in ((12, 5), (9, 8), (30, 3)):
        (law,) = ladder(*scales)
        first, second = law.path.draws
        variance, width = law.path.variance, law.half_width(LEVEL)
        own, other = (float(variance / draw.scale**2 * draw.lattice) for draw in (first, second))
        scale = float(second.scale / second.lattice)

        def below(steps: int, scale: float = scale) -> float:
            return math.erfc(-(steps + 0.5) / scale / math.sqrt(2)) / 2

        covered = 0.0
        reach = float(width / law.lattice) + 0.5
        for n in range(-12 * scales[0], 12 * scales[0] + 1):
            chance = (
                math.erf((n + 0.5) / scales[0] / math.sqrt(2)) - math.erf((n - 0.5) / scales[0] / math.sqrt(2))
            ) / 2
            # -reach <= own n + other m < reach
            high, low = math.ceil((reach - own * n) / other) - 1, math.ceil((-reach - own * n) / other)
            covered += chance * (below(high) - below(low - 1))
        assert 0.95 <= covered <= 0.985
        assert width >= law.lattice


def test_roundings_and_variance_widen_an_interval() -> None:
    wide = [reach_steps(Fraction(100), slack=Fraction(slack), lattice=ONE, confidence=LEVEL) for slack in (0, 1, 5)]
    assert wide == [20, 21, 25]  # 19.6 - 0.5, and the slack, rounded up
    assert reach_steps(Fraction(1, 10**9), slack=Fraction(0), lattice=ONE, confidence=LEVEL) == 0


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_ten_refinements_cost_what_one_release_of_the_last_scale_does(measure: Measure) -> None:
    laws: list[object] = [design.for_error(measure, UNIT, step=ONE, error=Fraction(100), confidence=LEVEL)]
    charged = [laws[0].cost_units(UNIT, measure)]  # type: ignore[attr-defined]
    for place in range(10):
        error = Fraction(90 - 8 * place)
        law = refined_for_error(measure, UNIT, step=ONE, before=laws, error=error, confidence=LEVEL)  # type: ignore[arg-type]
        assert law.half_width(LEVEL) <= error
        charged.append(law.cost_units(UNIT, measure) - laws[-1].cost_units(UNIT, measure))  # type: ignore[attr-defined]
        laws.append(law)
    last = laws[-1]
    family = TwoSidedGeometric if measure == Measure.PURE else Gaussian
    once = family(last.scale, last.lattice)  # type: ignore[attr-defined]
    assert sum(charged) == once.cost_units(UNIT, measure)
    assert min(charged) > 0
    if isinstance(last, RefinedGaussian):
        # What the draws really lose is no more than that.
        assert last.path.cost_units(UNIT, measure) <= sum(charged)
        assert last.scale**2 <= last.path.variance <= last.scale**2 * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@settings(max_examples=15, deadline=None)
@given(costs=st.lists(st.integers(10**9, 10**14), min_size=2, max_size=5))
def test_a_refinement_costs_no_more_than_is_asked_and_is_the_sharpest_for_it(
    measure: Measure, costs: list[int]
) -> None:
    total, laws = costs[0], [design.for_cost(measure, UNIT, step=ONE, units=costs[0])]
    for more in costs[1:]:
        total += more
        law = refined_for_cost(measure, UNIT, step=ONE, before=laws, units=total)
        assert law.cost_units(UNIT, measure) <= total
        assert law.scale == design.for_cost(measure, UNIT, step=ONE, units=total).scale
        laws.append(law)  # type: ignore[arg-type]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_the_cheapest_refinement_is_nearly_the_cheapest_there_is(measure: Measure) -> None:
    first = design.for_error(measure, UNIT, step=ONE, error=Fraction(50), confidence=LEVEL)
    law = refined_for_error(measure, UNIT, step=ONE, before=[first], error=Fraction(20), confidence=LEVEL)
    wider = (
        RefinedGaussian(law.scale * (1 + Fraction(1, 10**11)), law.lattice, before=law.before)
        if isinstance(law, RefinedGaussian)
        else TwoSidedGeometric(law.scale * (1 + Fraction(1, 10**11)), law.lattice)
    )
    assert law.half_width(LEVEL) <= 20 < wider.half_width(LEVEL)
    fresh = design.for_error(measure, UNIT, step=ONE, error=Fraction(20), confidence=LEVEL)
    assert law.cost_units(UNIT, measure) < fresh.cost_units(UNIT, measure) * Fraction(102, 100)


def test_what_is_no_sharper_or_too_sharp_is_refused() -> None:
    first = design.for_cost(Measure.GDP, UNIT, step=ONE, units=10**14)
    with pytest.raises(RequestError, match="no sharper"):
        refined_for_cost(Measure.GDP, UNIT, step=ONE, before=[first], units=10**14)
    for error in (Fraction(1, 10**30), Fraction(1, 10**5)):
        for measure in MEASURES[:3]:
            law = design.for_cost(measure, UNIT, step=ONE, units=10**14)
            with pytest.raises(RequestError, match="ask for a larger one"):
                refined_for_error(measure, UNIT, step=ONE, before=[law], error=error, confidence=LEVEL)
    # Geometric noise can be 0 often enough.
    law = design.for_cost(Measure.PURE, UNIT, step=ONE, units=10**14)
    least = refined_for_error(Measure.PURE, UNIT, step=ONE, before=[law], error=Fraction(1, 10**5), confidence=LEVEL)
    assert least.half_width(LEVEL) == 0
    for scales in ((4,), (4, 4), (4, 5)):
        with pytest.raises(RequestError):
            RefinedGaussian(
                Fraction(scales[-1]), ONE, before=tuple(Gaussian(Fraction(one), ONE) for one in scales[:-1])
            )


# Geometric paths, exactly: with ratios a = e^(-1/b), all sums over the lattice are finite here up to their tails.


def _law(ratio: float, noise: int) -> float:
    return (1 - ratio) / (1 + ratio) * ratio ** abs(noise)


def _finer(fine: float, wide: float, noise: int, coarse: int) -> float:
    """P(n2 = noise given n1 = coarse), from the step of the path: Bayes, not the formula that is drawn from."""
    stays = fine / wide * ((1 - wide) / (1 - fine)) ** 2
    step = (stays if noise == coarse else 0) + (1 - stays) * _law(wide, coarse - noise)
    return _law(fine, noise) * step / _law(wide, coarse)


def test_a_step_that_was_drawn_lost_and_drawn_anew_costs_what_its_last_value_does() -> None:
    """(m1, m2') with a lost draw in between has the law of a path without it; with the lost one told it has not."""
    wide, fine, finest = (math.exp(-1 / scale) for scale in (4.0, 2.0, 1.0))
    places = range(-14, 15)
    told = [(one, two) for one in places for two in places]

    def seen(first: int, last: int, exact: int) -> float:
        """The lost draw, of the scale between, is summed away: nobody ever saw it."""
        lost = math.fsum(_finer(fine, wide, one, first - exact) for one in range(-90, 91))
        return _law(wide, first - exact) * lost * _finer(finest, wide, last - exact, first - exact)

    def along(first: int, last: int, exact: int) -> float:
        return _law(wide, first - exact) * _finer(finest, wide, last - exact, first - exact)

    assert all(seen(*one, 0) == pytest.approx(along(*one, 0), rel=1e-9) for one in told)
    losses = [abs(math.log(seen(*one, 0) / seen(*one, 1))) for one in told]
    assert max(losses) == pytest.approx(1.0, rel=1e-9)  # D / b of the last value, whatever was shown before


def test_the_loss_of_a_geometric_path_of_three_is_that_of_its_last_value() -> None:
    ratios = [math.exp(-1 / scale) for scale in (5.0, 3.0, 1.25)]
    places = range(-8, 9)

    def chance(path: tuple[int, int, int], exact: int) -> float:
        noise = [value - exact for value in path]
        first, second = (_finer(ratios[k + 1], ratios[k], noise[k + 1], noise[k]) for k in (0, 1))
        return _law(ratios[0], noise[0]) * first * second

    for path in ((x, y, z) for x in places for y in places for z in places):
        loss = math.log(chance(path, 0) / chance(path, 1))
        last = math.log(_law(ratios[2], path[2]) / _law(ratios[2], path[2] - 1))
        assert loss == pytest.approx(last, abs=1e-9)
        assert abs(loss) <= 1 / 1.25 + 1e-9
