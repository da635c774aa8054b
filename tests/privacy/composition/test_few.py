"""Few outcomes, gone through one by one: against an enumeration of its own, and where a profile has kinks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parco.balls import precision, upper
from parco.errors import InternalError
from parco.privacy.composition import composition
from parco.privacy.composition.few import Few, few_outcomes
from parco.privacy.composition.groups import grouped
from parco.privacy.schedule import Schedule
from tests.privacy.composition.build import composed, record
from tests.privacy.composition.exact import BITS, exactly, profile_of
from tests.privacy.composition.test_range import deltas, powers, sizes

POINTS = [["0.0948", "1e-2"], ["237/1250", "1e-4"], ["711/2500", "0"]]
TINY = Fraction(1, 10**40)

Entry = dict[str, Any]


def few_of(entries: Sequence[Entry], *, removal: bool = True, most: int = 1 << 18) -> Few | None:
    return few_outcomes(grouped(Schedule.of(entries).releases), removal=removal, most=most)


def few_always(entries: Sequence[Entry], *, removal: bool = True) -> Few:
    found = few_of(entries, removal=removal)
    assert found is not None
    return found


@pytest.mark.parametrize("tolerance", ["1e-4", "1e-11"])
@pytest.mark.parametrize(("epsilon", "delta"), POINTS[:2])
@pytest.mark.parametrize("way", [None, "by_nodes"])
def test_one_table_has_its_points(
    way: str | None, epsilon: str, delta: str, tolerance: str, request: pytest.FixtureRequest
) -> None:
    """At the delta of a point the profile has a kink, which a sum over nodes sees last."""
    if way is not None:
        request.getfixturevalue(way)
    found = composed(record("profile", points=POINTS), tolerance=tolerance).epsilon(delta)
    assert found.lower <= Fraction(epsilon) <= found.upper <= found.lower * (1 + Fraction(tolerance))


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(
    several=st.lists(
        st.tuples(
            st.sampled_from(("randomised-response", "pure", "sparse-vector", "approximate")),
            sizes,
            st.integers(1, 6),
            st.none() | powers(1e-9, 1),
        ),
        min_size=1,
        max_size=3,
    ),
    delta=deltas,
    at=powers(1e-6, 1e3),
)
def test_ends_hold_what_an_enumeration_of_its_own_says(
    several: list[tuple[str, str, int, str | None]], delta: str, at: str
) -> None:
    own = {"approximate": {"delta": "1e-40"}}
    entries = [record(kind, rate=rate, times=n, epsilon=e, **own.get(kind, {})) for kind, e, n, rate in several]
    whole = composed(*entries, tolerance="1e-11")
    found, deltas_found = whole.epsilon(delta), whole.delta(at)
    with precision(BITS):
        truth = profile_of(entries)
        assert truth(found.upper) <= exactly(Fraction(delta) + TINY)
        assert found.lower == 0 or truth(found.lower) >= exactly(Fraction(delta) - TINY)
        exact = truth(Fraction(at))
        assert not exact < exactly(deltas_found.lower)
        assert not exact > exactly(deltas_found.upper)
    assert found.upper - found.lower <= Fraction(1, 10**11) * max(found.upper, Fraction(1, 1000))
    assert deltas_found.upper - deltas_found.lower <= Fraction(1, 10**11) * deltas_found.upper


def test_masses_add_up_under_both_laws() -> None:
    entries = [record("profile", times=7), record("approximate", rate="0.3", times=2), record("pure", times=3)]
    for removal in (True, False):
        few = few_always(entries, removal=removal)
        with precision(256):
            assert abs(sum(few.under_p, exactly("0")) - 1) < exactly(TINY)
            # Both are in the scale in which the finite losses' mass under P is 1.
            kept = 1 - composed(*entries).infinite[removal].lower
            assert sum(few.under_q, exactly("0")) * exactly(kept) < 1 + exactly(TINY)
        losses = [float(loss.mid()) for loss in few.losses]
        assert losses == sorted(losses, reverse=True)


def test_no_set_of_outcomes_says_more_than_the_upper_end() -> None:
    """Whatever set of outcomes is looked for: P(S) - e^eps Q(S) is at most delta, and some set reaches it."""
    few = few_always([record("pure", times=2), record("randomised-response", epsilon="0.7", times=2)])
    epsilon = Fraction(1, 3)
    low, high = few.delta(epsilon)
    with precision(256):
        said = [
            sum(
                (
                    p - exactly(epsilon).exp() * q
                    for p, q, one in zip(few.under_p, few.under_q, chosen, strict=True)
                    if one
                ),
                exactly("0"),
            )
            for chosen in product((0, 1), repeat=len(few.losses))
        ]
        assert all(one <= exactly(high + TINY) for one in said)
        assert any(upper(one) >= low for one in said)
    assert low <= high <= low + TINY


def test_only_so_many_outcomes_and_only_where_they_can_be_counted() -> None:
    entry = record("randomised-response", times=99)
    assert len(few_always([entry]).losses) == 100
    assert few_of([entry], most=100) is not None
    assert few_of([entry], most=99) is None
    assert few_of([record("profile", times=40)], most=10**4) is None
    assert few_of([record("gaussian"), entry]) is None


def test_what_neither_nodes_nor_few_outcomes_reach_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "_OUTCOMES_FEW", 0)
    monkeypatch.setattr(composition, "_OUTCOMES_MAX", 0)
    with pytest.raises(InternalError, match="tolerance"):
        composed(record("profile", points=POINTS), tolerance="1e-4").epsilon("0.01")
