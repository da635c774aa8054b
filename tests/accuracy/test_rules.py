"""Stopping rules, and how little they can see."""

from __future__ import annotations

import dataclasses
import gc
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from parco.accuracy.cells import Reach
from parco.accuracy.ladders import Geometric
from parco.accuracy.loop import refine_until
from parco.accuracy.memory import Account, Held
from parco.accuracy.rules import AbsoluteError, RelativeError, View, rule_of
from parco.errors import RequestError
from parco.measure import Measure
from tests.noise.tapes import Stream

ONE = Fraction(1)


def view(*cells: tuple[int, int]) -> View:
    estimates, widths = zip(*((Fraction(estimate), Fraction(width)) for estimate, width in cells), strict=True)
    return View(1, 3, tuple((place,) for place in range(len(cells))), estimates, widths, Fraction(19, 20), charged=7)


def test_an_absolute_error_is_a_half_width() -> None:
    assert AbsoluteError("5").done(view((1, 5), (1000, 6))) == (True, False)
    assert list(AbsoluteError(5).shortfall(view((1, 5), (0, 10)), doubt=ONE)) == [1, 2]


def test_a_relative_error_is_a_half_width_against_the_estimate() -> None:
    seen = view((100, 5), (100, 6), (-100, 5), (0, 1))
    for share in ("0.05", "5%", 0.05, "1/20"):
        assert RelativeError(share).done(seen) == (True, False, True, False)
    assert RelativeError("5%").shortfall(seen, doubt=Fraction(0)) == (ONE, Fraction(6, 5), ONE, None)
    assert RelativeError("5%").shortfall(view((100, 20), (10, 20)), doubt=ONE) == (Fraction(20, 4), None)


def test_a_function_of_a_view_is_a_rule() -> None:
    seen = view((1, 5), (2, 6))
    assert rule_of(lambda known: known.charged > 6).done(seen) == (True, True)
    assert rule_of(lambda known: [width < 6 for width in known.half_widths]).done(seen) == (True, False)
    wrong: Any
    for wrong in (1, None, [True], [True, 1], "yes"):
        with pytest.raises(RequestError, match="True or False"):
            rule_of(partial(_says, wrong)).done(seen)
    with pytest.raises(RequestError):
        rule_of(0.05)  # type: ignore[arg-type]


def test_what_is_no_error_is_refused() -> None:
    for make in (lambda: AbsoluteError(0), lambda: RelativeError("-5%"), lambda: RelativeError("five %")):
        with pytest.raises(RequestError):
            make()


def _says(answer: Any, _: View) -> Any:
    return answer


def reachable(root: Any) -> list[Any]:
    """All objects that can be reached from one, but for classes and what modules hold."""
    found, left = dict[int, Any](), [root]
    while left:
        one = left.pop()
        if id(one) not in found and not isinstance(one, type):
            found[id(one)] = one
            left += gc.get_referents(one)
    return list(found.values())


def test_from_what_a_predicate_sees_neither_data_nor_desk_can_be_reached() -> None:
    secret = 123_456_789
    account = Account(Measure.GDP, 100)
    held = Held([secret], account, reach=Reach(1, ONE), bits=Stream("view"))
    seen = list[View]()

    def keeps(known: View) -> bool:
        seen.append(known)
        return False

    refine_until(held, keeps, ladder=Geometric("0.001", 4, count=3))
    assert len(seen) == 3
    for known in seen:
        assert {type(one) for one in reachable(known)} <= {View, dict, tuple, str, int, Fraction}
        assert secret not in [one for one in reachable(known) if isinstance(one, int)]
        with pytest.raises(dataclasses.FrozenInstanceError):
            known.charged = 0  # type: ignore[misc]
    # The search itself would find both, were they there.
    assert any(one is account for one in reachable(held))
    assert any(type(one) is int and one == secret for one in reachable(held))


def test_an_error_of_the_predicate_is_its_callers() -> None:
    held = Held([100], Account(Measure.GDP, 100), reach=Reach(1, ONE), bits=Stream("own"))

    def fails(known: View) -> bool:
        raise ZeroDivisionError(str(known.step))

    with pytest.raises(ZeroDivisionError):
        refine_until(held, fails, ladder=Geometric("0.001", 4, count=3))
    assert held.charged > 0
