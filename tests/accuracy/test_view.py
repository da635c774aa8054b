"""What a caller's predicate or model is shown: released numbers and texts, and no way from them to anything private."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import parco
from parco.accuracy.cells import Reach
from parco.accuracy.ladders import Geometric
from parco.accuracy.loop import refine_until
from parco.accuracy.memory import Account, Held, HeldPart
from parco.accuracy.rules import View
from parco.accuracy.sessions import release_until
from parco.accuracy.validation import Validation
from parco.measure import Measure
from tests.accuracy.test_sessions import PARTS, purchases
from tests.shop import open_shop

LADDER = Geometric("0.01", 2, count=3)
PLAIN = {View, tuple, dict, Fraction, int, str, bool, type(None)}
FIT = parco.Ask("count", by="channel", part="fit")


def reachable(root: object) -> Iterator[object]:
    """All that attributes, items, cells of closures and bound methods lead to, however deep.

    Classes and modules are let be: they lead to all code and to no instance of their own.
    """
    seen, left = set[int](), [root]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, types.FunctionType):
            left += [*(one.__closure__ or ()), *(one.__defaults__ or ()), one.__kwdefaults__, one.__dict__]
        else:
            left += gc.get_referents(one)


def test_the_walk_finds_what_is_hidden() -> None:
    """In an attribute, in a closure, behind a bound method, in a generator's frame."""
    held = Held([12345], Account(Measure.GDP, "1"), reach=Reach(1, Fraction(1)))

    def closure() -> object:
        return held

    class Owner:
        def __init__(self) -> None:
            self.inner = {"x": [held]}

        def method(self) -> None: ...

    generator = (held for _ in range(1))
    for root in (Owner(), closure, Owner().method, generator, functools_partial(closure)):
        assert any(one is held for one in reachable(root)), root


def functools_partial(function: Callable[[], object]) -> object:
    from functools import partial

    return partial(print, function)


@pytest.fixture
def divided(tmp_path: Path) -> parco.Session:
    budget = 'measure = "gdp"\nmu = "3"\nreceipt_order = 8\ndelta = "1e-6"'
    return parco.Session(open_shop(tmp_path, purchases=purchases(300), budget=budget, columns=PARTS))


def check(view: View) -> None:
    # At the step, while the session is in the middle of its run, and not only afterwards.
    found = {type(one) for one in reachable(view)}
    assert found <= PLAIN, found - PLAIN


@pytest.mark.parametrize("reserve", [False, True])
def test_from_a_view_neither_session_nor_data_can_be_reached(divided: parco.Session, reserve: bool) -> None:
    """A run that is reserved whole has exact numbers in memory while the rule looks at the view."""
    views = list[View]()

    def predicate(view: View) -> bool:
        check(view)
        views.append(view)
        return False

    def model(view: View) -> str:
        check(view)
        views.append(view)
        return "items = 2"

    how = {"at_most": "0.04", "ladder": LADDER, "reserve": reserve}
    release_until(divided, FIT, predicate, **how)  # type: ignore[arg-type]
    again = parco.Ask("sum", "items", by="channel", part="fit")
    release_until(divided, again, Validation("0.8", cost="0.01", model=model), **how)  # type: ignore[arg-type]
    assert len(views) == 6


def test_nor_private_numbers_held_in_memory() -> None:
    accounts = [Account(Measure.GDP, "10", label=label) for label in ("fit", "validation")]
    held = Held([98765], accounts[0], reach=Reach(1, Fraction(1)))
    part = HeldPart([[{"x": 1}]] * 50, accounts[1])
    views = list[View]()

    def model(view: View) -> Any:
        check(view)
        views.append(view)
        return lambda _: False

    def predicate(view: View) -> bool:
        check(view)
        return False

    refine_until(held, predicate, ladder=LADDER)
    refine_until(held, Validation("0.8", cost="0.1", model=model), ladder=Geometric("0.1", 2, count=2), desk=part)
    assert len(views) == 2


def test_a_view_is_frozen_all_the_way() -> None:
    views = list[View]()
    held = Held([1, 2], Account(Measure.GDP, "1"), reach=Reach(1, Fraction(1)))
    refine_until(held, lambda view: (views.append(view), True)[1], ladder=LADDER)  # type: ignore[func-returns-value]
    (view,) = views
    for field in fields(view):
        with pytest.raises(FrozenInstanceError):
            setattr(view, field.name, None)
    hash(view)  # as only what never changes has one


@pytest.mark.parametrize("in_model", [False, True])
@pytest.mark.parametrize("kind", ["gaussian", "sparse-vector"])
def test_an_error_of_the_callers_is_told_as_it_is_and_leaves_the_ledger_whole(
    divided: parco.Session, in_model: bool, kind: str
) -> None:
    raised = ValueError("the caller's own")

    def breaks(view: View) -> Any:
        if view.step == 2:
            raise raised
        return "items = 2" if in_model else False

    paid = {"cost": "0.01"} if kind == "gaussian" else {"epsilon": "0.5"}
    until = Validation("0.8", check=kind, model=breaks, **paid) if in_model else breaks  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="own") as caught:
        release_until(divided, FIT, until, at_most="0.04", ladder=LADDER)
    assert caught.value is raised
    assert raised.__context__ is raised.__cause__ is None
    divided._store.verify()
    # Two steps were released, and in the first the model was checked; nothing is left open, nothing held.
    states = [row.state for row in divided.history() if row.mechanism is not None]
    assert states == ["settled"] * (2 + in_model)
    assert all(row.reserved == 0 for row in divided.budget())
    before = {row.label: row.spent for row in divided.budget()}
    assert before["fit"] == pytest.approx(0.02e15, rel=1e-9)
    divided.count(part="validation", cost="0.01")
    found = release_until(divided, FIT, lambda _: True, at_most="0.04", ladder=LADDER)
    assert found.stopped.cost.units == 0


@pytest.mark.parametrize("said", [None, 1, "yes", [True], [True, False, 1], [1, 2, 3], (True, True, True, True)])
def test_what_is_no_verdict_is_refused(divided: parco.Session, said: object) -> None:
    with pytest.raises(parco.RequestError, match="True or False"):
        release_until(divided, FIT, lambda _: said, at_most="0.04", ladder=LADDER)  # type: ignore[arg-type,return-value]
    divided._store.verify()
    assert [row.state for row in divided.history() if row.mechanism is not None] == ["settled"]
