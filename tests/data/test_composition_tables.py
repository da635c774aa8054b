"""The tables of compositions are what their scripts make, and two ways to the same number agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flint import arb, ctx

from tests.data import contour, make_laplace_composition, make_mixtures, make_randomised_response, make_sampled_gaussian
from tests.data.contour import Gaussian, SampledGaussian
from tests.data.roots import text

HERE = Path(__file__).parent


def read(name: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return table


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    before, ctx.prec = ctx.prec, contour.BITS
    yield
    ctx.prec = before


def test_randomised_response_is_remade() -> None:
    assert make_randomised_response.table() == read("randomised_response.json")


def test_laplace_compositions_are_remade() -> None:
    ctx.prec = make_laplace_composition.BITS
    rows = [row for row in read("laplace_composition.json")["profile"] if sum(k for _, k in row["releases"]) <= 6]
    assert len(rows) > 50
    for row in rows:
        schedule = tuple((e0, k) for e0, k in row["releases"])
        made = make_laplace_composition.profile(schedule, arb(row["epsilon"]))
        assert abs(made - arb(row["delta"])) <= made * arb("1e-16")


def test_one_laplace_is_the_closed_form() -> None:
    ctx.prec = make_laplace_composition.BITS
    for e0, epsilon in (("1", "0"), ("1", "0.4"), ("3", "2.9")):
        known = 1 - ((arb(epsilon) - arb(e0)) / 2).exp()
        assert make_laplace_composition.profile(((e0, 1),), arb(epsilon)).overlaps(known)


def test_two_steps_by_an_integral_and_by_a_contour() -> None:
    by_contour = contour.epsilon(((SampledGaussian("0.2", "1", False), 2),), "1e-5")
    assert text(by_contour) == text(make_sampled_gaussian.epsilon("0.2", "1", 2, "1e-5", False))


def test_a_gaussian_by_a_contour() -> None:
    row = next(r for r in read("gaussian.json")["epsilon"] if (r["mu"], r["delta"]) == ("2", "1e-12"))
    assert text(contour.epsilon(((Gaussian("1"), 4),), "1e-12"))[:16] == row["epsilon"][:16]


@pytest.mark.parametrize("place", [0, 4, 7])
def test_named_sampled_gaussians_are_remade(place: int) -> None:
    case, *rest = make_sampled_gaussian.NAMED[place]
    assert {"case": case, **make_sampled_gaussian.row(*rest)} == read("sampled_gaussian.json")["named"][place]


def test_every_named_value_is_there() -> None:
    rows = read("sampled_gaussian.json")["named"]
    assert [(r["case"], r["q"], r["s"], r["steps"], r["delta"]) for r in rows] == make_sampled_gaussian.NAMED


def test_a_mixture_is_remade() -> None:
    schedule = read("mixtures.json")["schedules"][2]
    assert schedule["releases"] == make_mixtures.SCHEDULES[2]
    assert make_mixtures.row(schedule["releases"], "1e-6") == schedule["epsilons"][1]
