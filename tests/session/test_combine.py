"""Answers combined: the weighted mean, its interval and receipts, and what is no two answers to one question."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import parco
from parco import Release
from parco.mechanisms.mechanism import Gaussian, TwoSidedGeometric
from parco.mechanisms.stopping import StoppedGaussian
from parco.session.combining import _reach
from parco.session.session import Session
from tests.noise.tapes import Stream
from tests.shop import contract_text, open_shop

ZCDP = 'measure = "zcdp"\nrho = "4"\ndelta = "1e-6"'
PURE = 'measure = "pure"\nepsilon = "4"'
ONE, LEVEL = Fraction(1), Fraction(95, 100)


@pytest.mark.parametrize("budget", [ZCDP, PURE])
def test_fresh_answers_and_the_last_of_a_path_make_one_at_no_cost(tmp_path: Path, budget: str) -> None:
    with Session(open_shop(tmp_path, budget=budget)) as session:
        first = session.count(by="month", error="60")
        fresh = session.count(by="month", error="50", fresh=True)
        finer = session.refine(first, error="40")
        entries = list(session._store.entries())
        made = parco.combine([finer, fresh])
        assert list(session._store.entries()) == entries
        weights = [1 / part.receipt.mechanism.scale**2 for part in (finer, fresh)]
        for place, row in enumerate(made.value):
            values: list[Fraction] = [list(part.value)[place].value for part in (finer, fresh)]
            mean = sum((w * x for w, x in zip(weights, values, strict=True)), Fraction(0)) / sum(weights)
            assert abs(row.value - mean) <= made.value.lattice / 2
            assert row.upper - row.value == row.value - row.lower == made.value.half_width
        assert made.value.labels == first.value.labels
        assert made.cost.units == 0
        assert made.repeat
        assert [part.release for part in made.receipt.parts] == [  # type: ignore[attr-defined]
            finer.receipt.release,
            fresh.receipt.release,
        ]
        if budget == ZCDP:
            assert made.value.half_width < finer.value.half_width
        assert parco.combine([finer, fresh], confidence="0.5").value.half_width < made.value.half_width


@pytest.mark.parametrize(("budget", "kind"), [(ZCDP, StoppedGaussian), (PURE, TwoSidedGeometric)])
def test_cells_that_stand_apart_are_weighted_and_covered_each_by_its_own_noise(
    tmp_path: Path, budget: str, kind: Any
) -> None:
    rows = [(str(one), "2024-02-01", "3", "30", "phone" if one < 30 else "web") for one in range(900)]
    with Session(open_shop(tmp_path, budget=budget, purchases=rows)) as session:
        ask, rule = parco.Ask("count", by="channel"), parco.RelativeError("20%")
        run = parco.release_until(
            session, ask, rule, at_most="2", ladder=parco.Geometric("0.001", 2), reserve=True, keys="each"
        )
        fresh = session.count(by="channel", error="25", fresh=True)
        made, receipt = parco.combine([run.release, fresh]), run.release.receipt
        assert len(set(receipt.scales)) > 1
        law = fresh.receipt.mechanism
        for row, scale, one, other in zip(made.value, receipt.scales, run.release.value, fresh.value, strict=True):
            first, second = 1 / scale**2, 1 / law.scale**2
            mean = (first * one.value + second * other.value) / (first + second)
            assert abs(row.value - mean) <= made.value.lattice / 2
            if kind is StoppedGaussian:
                least = 1.95 / math.sqrt(first + second)
                # The lattice of each answer is an eighth of its scale or finer, and all roundings are at their worst.
                assert least <= row.upper - row.value <= least * 1.01 + made.value.lattice + fresh.value.lattice
            else:
                joined = first * kind(scale, receipt.mechanism.lattice).half_width(Fraction(975, 1000))
                joined += second * law.half_width(Fraction(975, 1000))  # type: ignore[attr-defined]
                assert abs(row.upper - row.value - joined / (first + second)) <= made.value.lattice


def pair(session: Session) -> tuple[Release[Any], Release[Any]]:
    first = session.count(by="month", error="60")
    return first, session.count(by="month", error="50", fresh=True)


def one_more(answer: parco.Answer) -> parco.Answer:
    """No answer of the ledger's any more."""
    return replace(answer, values=tuple(steps + 1 for steps in answer.values))


REFUSED: list[tuple[str, Callable[[Session], list[Any]]]] = [
    ("two or more", lambda s: [s.count()]),
    ("two or more", lambda _: [1, 2]),
    ("one answer", lambda s: [s.count(), s.count()]),
    ("what refines it", lambda s: [pair(s)[0], s.refine(2, error="40")]),
    ("what refines it", lambda s: [s.refine(2, error=error) for error in ("40", "30")] if pair(s) else []),
    ("different questions", lambda s: [s.count(), s.count(by="month")]),
    ("different questions", lambda s: [s.count(where="items >= 1"), s.count(where="not items >= 1")]),
    ("as they were released", lambda s: [s.mean("items"), s.mean("items", fresh=True)]),
    ("as they were released", lambda s: [one.map(str) for one in pair(s)]),
    ("as they were released", lambda s: [one.map(one_more) for one in pair(s)]),
    ("as they were released", lambda s: [s.quantile("items", at="0.5"), s.quantile("items", at="0.5", fresh=True)]),
    ("different confidence", lambda s: [s.count(confidence="0.9"), s.count(fresh=True)]),
]


@pytest.mark.parametrize(("message", "make"), REFUSED)
def test_what_is_no_two_answers_to_one_question_is_refused(
    tmp_path: Path, message: str, make: Callable[[Session], list[Any]]
) -> None:
    with Session(open_shop(tmp_path, budget=ZCDP)) as session, pytest.raises(parco.RequestError, match=message):
        parco.combine(make(session))


def test_answers_on_two_versions_or_under_other_bounds_are_not_combined(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget=ZCDP)
    with Session(contract) as session, Session(contract, version="2") as later:
        with pytest.raises(parco.RequestError, match="different questions"):
            parco.combine([session.sum("items"), later.sum("items")])
        old = session.sum("items")
    text = contract_text(budget=ZCDP).replace("upper = 10", "upper = 11")
    (tmp_path / "contract.toml").write_text(text, encoding="utf-8")
    revised = parco.Contract.read(tmp_path / "contract.toml")
    parco.revise(revised, reason="why")
    with Session(revised) as session, pytest.raises(parco.RequestError, match="different questions"):
        parco.combine([old, session.sum("items")])


@pytest.mark.parametrize(
    "laws",
    [
        [Gaussian(Fraction(9), ONE), Gaussian(Fraction(14), ONE)],
        [
            TwoSidedGeometric(Fraction(9), ONE),
            TwoSidedGeometric(Fraction(14), ONE),
            TwoSidedGeometric(Fraction(3), ONE),
        ],
    ],
    ids=["gaussian", "geometric"],
)
def test_the_interval_of_a_mean_covers(laws: list[Any]) -> None:
    """By draws of exact value 0: at least as often as it says, of Gaussian noise not much more."""
    count = 20_000
    drawn = [law.draw([0] * count, Stream(f"mean {place}")) for place, law in enumerate(laws)]
    precisions = [1 / law.scale**2 for law in laws]
    weights = [precision / sum(precisions) for precision in precisions]
    reach = _reach(laws, weights, lattice=ONE, confidence=LEVEL)
    shares = list(map(float, weights))
    inside = sum(
        abs(math.floor(math.fsum(w * n for w, n in zip(shares, cells, strict=True)) + 0.5)) <= reach
        for cells in zip(*drawn, strict=True)
    )
    deviation = 5 * math.sqrt(0.05 * 0.95 / count)
    assert inside / count >= 0.95 - deviation
    if isinstance(laws[0], Gaussian):
        assert inside / count <= 0.975 + deviation
