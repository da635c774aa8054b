"""The worked example: the published digits, bounds against an oracle, and claims that move with what they cover."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

import parco
from parco.privacy import classical
from parco.privacy.sensitivity import Sensitivity
from parco.reports import example
from parco.reports.example import Bounds, bounds
from tests.data import make_figures, make_gaussian
from tests.reports import oracle
from tests.shop import open_shop

SLACK = Fraction(1, 10**12)
# The grid's orders are 1/25,000 of a decade apart, so that the nearest is within 4.7e-5 of the best in ratio; the bound
# is above its least by at most half of that squared, as a share of it.
GRID_SLACK = Fraction(12, 10**10)
DOUBLES = Fraction(1, 10**14)


def test_the_published_table_is_reproduced_to_its_last_digit() -> None:
    shown = [(repr(float(row.bounds.valid)), repr(row.dense_search)) for row in example.witnesses()]
    assert shown == oracle.PRINTED
    assert len(shown) == 4


def test_closed_form_and_search_are_what_exact_arithmetic_gives() -> None:
    for row, truth in zip(example.witnesses(), oracle.WITNESS, strict=True):
        closed_form, searched = Fraction(truth["closed_form"]), Fraction(truth["dense_search"])
        assert oracle.is_just_above(row.bounds.valid, closed_form, slack=SLACK)
        assert abs(Fraction(row.dense_search) - searched) <= 2 * Fraction(math.ulp(row.dense_search))
        assert closed_form < searched <= closed_form * (1 + GRID_SLACK)


@settings(max_examples=15, deadline=None)
@given(mu_squared=st.fractions(Fraction(1, 10**5), Fraction(10**5), max_denominator=10**6).filter(bool))
def test_no_order_of_the_grid_does_better_than_the_closed_form(mu_squared: Fraction) -> None:
    closed_form = classical.epsilon_upper(mu_squared, example.DELTA)
    searched = Fraction(example.dense_search(mu_squared))
    assert closed_form * (1 - DOUBLES) <= searched <= closed_form * (1 + GRID_SLACK)
    # The search tells a closed form that is one in a million too large from the right one.
    assert searched < closed_form * (1 + Fraction(1, 10**6))


def test_both_bounds_enclose_the_oracle() -> None:
    assert len(oracle.EPSILONS) == 55
    for (releases, scale), (valid, tight) in oracle.EPSILONS.items():
        row = bounds(releases, Fraction(scale))
        assert oracle.is_just_above(row.valid, valid, slack=SLACK)
        assert oracle.is_just_above(row.tight, tight, slack=SLACK)
        assert not oracle.is_just_above(row.tight / (1 + 2 * SLACK), tight, slack=SLACK)


def test_the_recipe_gives_the_table() -> None:
    with mp.workdps(make_gaussian.DIGITS):
        for row in oracle.WITNESS[1:3]:
            searched = make_figures.searched(int(row["releases"]), int(row["scale"]))
            assert make_gaussian.text(searched) == row["dense_search"]


def test_the_rows_are_all_of_them_in_order() -> None:
    told: list[tuple[int, int]] = []
    rows = example.composition(3, progress=lambda done, total: told.append((done, total)))
    assert [(str(row.scale), row.releases) for row in rows] == [
        (s, k) for s in ("2", "4", "8", "16", "32") for k in (1, 2, 3)
    ]
    assert told == [(done, 15) for done in range(1, 16)]


def below(less: Bounds, more: Bounds) -> bool:
    """Whether the one claim is smaller than the other by both bounds."""
    return less.valid < more.valid and less.tight < more.tight


@settings(max_examples=25, deadline=None)
@given(
    releases=st.integers(1, 1000),
    scale=st.fractions(Fraction(1, 2), Fraction(64), max_denominator=100),
    bound=st.integers(1, 6),
)
def test_leaving_out_a_release_or_changing_the_bound_moves_the_claim(
    releases: int, scale: Fraction, bound: int
) -> None:
    def moved(size: int) -> Sensitivity:
        return Sensitivity(l1=Fraction(size), l2_squared=Fraction(size) ** 2)

    claimed = bounds(releases, scale, sensitivity=moved(bound))
    assert claimed.tight < claimed.valid
    assert below(bounds(releases - 1, scale, sensitivity=moved(bound)), claimed)
    assert below(claimed, bounds(releases + 1, scale, sensitivity=moved(bound)))
    assert below(claimed, bounds(releases, scale, sensitivity=moved(bound + 1)))
    assert below(bounds(releases, scale * Fraction(101, 100), sensitivity=moved(bound)), claimed)
    assert below(claimed, bounds(releases, scale, sensitivity=moved(bound), delta=example.DELTA / 2))
    # Twice the bound is four times the releases, and nothing else is.
    assert bounds(releases, scale, sensitivity=moved(2 * bound)).mu_squared == 4 * claimed.mu_squared


def test_nothing_released_is_nothing_claimed() -> None:
    nothing = bounds(0, Fraction(8))
    assert nothing.valid == nothing.tight == nothing.mu_squared == 0


def realised(folder: Path, *, rows: int, releases: int) -> tuple[Fraction, Fraction]:
    """What a signed account may claim of so many counts, each within 30 rows: total, and the smaller realised epsilon.

    The error fixes the noise, so that what changes with the contract's bound is the cost alone.
    """
    budget = 'epsilon = "4"\ndelta = "1e-6"\nreceipt_order = 8'
    session = parco.Session(open_shop(folder, budget=budget, rows=rows, groups=1))
    for _ in range(releases):
        receipt = session.count(error="30", fresh=True).receipt
    return receipt.spent.value, min(claim.epsilon for claim in receipt.claims() if claim.basis == "realised")


def test_an_account_claims_more_for_a_release_more_and_for_a_larger_bound(tmp_path: Path) -> None:
    spent, claimed = realised(tmp_path / "whole", rows=1, releases=3)
    spent_less, claimed_less = realised(tmp_path / "one-left-out", rows=1, releases=2)
    assert (spent_less / spent, claimed_less < claimed) == (Fraction(2, 3), True)
    spent_more, claimed_more = realised(tmp_path / "two-rows", rows=2, releases=3)
    assert claimed_more > claimed
    # Charges are rounded up to 10^-15, and scales to sixteen digits.
    assert spent_more == pytest.approx(4 * spent, rel=1e-12)
