"""A mean is two stored parts and nothing else: what it costs, what is free, what its interval covers."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.measure import Measure
from parco.mechanisms import design
from parco.mechanisms.mechanism import Additive
from parco.noise.bits import CipherBits
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from parco.session.mean import MeanAnswer, MeanRow
from parco.session.release import Answer
from parco.session.session import Session
from tests.shop import contract_text, open_shop

COST_UNIT = Fraction(1, 10**15)
LEVEL = Fraction(95, 100)


def spent(session: Session) -> Fraction:
    (account,) = session.budget()
    return account.spent * COST_UNIT


def rows(total: list[int], count: list[int], *, width: int = 0, reach: int = 0) -> list[MeanRow]:
    """Means of whole numbers between 0 and 100 around 50, from noisy sums and counts with these half-widths."""
    labels = tuple((place,) for place in range(len(total)))

    def part(values: list[int], half_width: int) -> Answer:
        return Answer(("key",), labels, tuple(values), Fraction(1), Fraction(half_width), Fraction(975, 1000))

    return list(
        MeanAnswer(
            by=("key",),
            labels=labels,
            sums=part(total, width),
            counts=part(count, reach),
            centre=Fraction(50),
            lower=Fraction(0),
            upper=Fraction(100),
            step=Fraction(1, 100),
            confidence=LEVEL,
        )
    )


def test_without_noise_it_is_the_mean_rounded_half_upwards() -> None:
    found = rows([0, 100, -100, 1, -1, 1, 10**6], [4, 4, 4, 3, 3, 800, 1])
    texts = ["50", "75", "25", "50.33", "49.67", "50", "100"]
    assert [row.value for row in found] == [Fraction(text) for text in texts]
    # 1/800 is 0.00125: the ends are rounded outwards.
    assert (found[5].lower, found[5].upper) == (Fraction(50), Fraction("50.01"))
    assert (found[3].lower, found[3].upper) == (Fraction("50.33"), Fraction("50.34"))


def test_its_interval_holds_every_ratio_of_the_parts_intervals() -> None:
    for total in (-400, -30, -7, 0, 7, 30, 400):
        for count in (11, 12, 30, 100):
            (row,) = rows([total], [count], width=20, reach=10)
            corners = [Fraction(total + s, count + c) for s in (-20, 20) for c in (-10, 10)]
            low, high = (min(max(50 + ratio, Fraction(0)), Fraction(100)) for ratio in (min(corners), max(corners)))
            assert row.lower <= low
            assert row.upper >= high
            assert low - row.lower < Fraction(1, 100)
            assert row.upper - high < Fraction(1, 100)
            assert row.value is not None
            assert row.lower <= row.value <= row.upper


def test_a_count_that_may_be_nothing_has_no_mean() -> None:
    none = [MeanRow((place,), None, Fraction(0), Fraction(100)) for place in range(4)]
    assert rows([5, 0, 900, -3], [10, 0, 3, -40], width=20, reach=10) == none
    assert rows([0], [0]) == [MeanRow((0,), None, Fraction(0), Fraction(100))]


def test_two_parts_are_charged_what_was_asked_together(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        plan = session.plan.mean("dollars", by="channel", cost="0.333333333333333")
        assert [part.cost.units for part in plan.parts] == [166666666666666, 166666666666667]
        release = session.mean("dollars", by="channel", cost="0.333333333333333")
        assert plan.cost == release.cost == release.receipt.cost
        assert spent(session) == Fraction("0.333333333333333")
        assert release.remaining == plan.remaining == 1 - spent(session)
        states = [(row.state, str(row.question).count('"centre":"50"')) for row in session.history()]
        assert states == [("open", 0), ("settled", 1), ("settled", 0)]
        record = release.record()
        assert [part["question"] for part in record["receipt"]["parts"]] == [  # type: ignore[index]
            "sum dollars - 50 by channel",
            "count dollars by channel",
        ]
        assert release.receipt.question == "mean dollars by channel"
        assert release.receipt.bound == sum(Fraction(str(part.cost)) for part in plan.parts)


@pytest.mark.parametrize(("split", "shares"), [("0.25", ("0.05", "0.15")), ("9/10", ("0.18", "0.02"))])
def test_the_shares_are_declared(tmp_path: Path, split: str, shares: tuple[str, str]) -> None:
    with Session(open_shop(tmp_path)) as session:
        plan = session.plan.mean("dollars", cost="0.2", split=split)
        assert tuple(str(part.cost) for part in plan.parts) == shares
        assert str(session.mean("dollars", cost="0.2", split=split).cost) == "0.2"


def test_what_is_stored_is_free(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        first = session.mean("dollars", by="channel", cost="0.2")
        again = session.mean("dollars", by="channel", cost="0.2")
        assert again.repeat
        assert str(again.cost) == "0"
        assert again.value == first.value
        assert again.receipt.record() == first.receipt.record()
        count = session.count("dollars", by="channel", cost="0.1")
        assert count.repeat
        assert count.value.values == first.value.counts.values
        assert session.plan.mean("dollars", by="channel", cost="0.2").repeat
        assert spent(session) == Fraction(2, 10)


def test_a_count_that_is_stored_is_not_paid_again(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        count = session.count("dollars", cost="0.15")
        plan = session.plan.mean("dollars", cost="0.2")
        assert [str(part.cost) for part in plan.parts] == ["0.1", "0"]
        mean = session.mean("dollars", cost="0.2")
        assert str(mean.cost) == "0.1"
        assert not mean.repeat
        assert mean.value.counts.values == count.value.values
        with pytest.raises(parco.SharperError, match="sum dollars - 50"):
            session.mean("dollars", cost="0.6")
        assert spent(session) == Fraction("0.25")


def test_what_does_not_fit_is_charged_in_no_part(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        session.count_units(cost="0.5")
        before = session.history()
        # One of the parts would fit.
        with pytest.raises(parco.BudgetError):
            session.mean("dollars", cost="0.8")
        assert not session.plan.mean("dollars", cost="0.8").fits
        assert session.history() == before
        assert spent(session) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"error": "5"}, "a mean takes no error"),
        ({"cost": "0.1", "split": "0"}, "split is the sum's share"),
        ({"cost": "0.1", "split": "1"}, "split is the sum's share"),
        ({"cost": "0.1", "split": "nan"}, "split: 'nan'"),
        ({"cost": "1e-15"}, "share of the cost"),
        ({"cost": "1e-16"}, "below 1e-15"),
        ({"cost": "0.1", "key": "k" * 199}, "key: give a text"),
    ],
)
def test_what_no_mean_can_promise_is_refused(tmp_path: Path, how: dict[str, str], words: str) -> None:
    with Session(open_shop(tmp_path)) as session:
        with pytest.raises(parco.RequestError, match=words):
            session.mean("dollars", **how)  # type: ignore[arg-type]
        for column in ("channel", "date", "customer", "nothing"):
            with pytest.raises(parco.QuestionError, match="not a column with declared bounds"):
                session.mean(column, cost="0.1")
        assert spent(session) == 0


def test_one_bound_for_all_is_refused(tmp_path: Path) -> None:
    columns = '[columns.dollars]\ntype = "decimal"\nlattice = "0.01"\nlower = "3"\nupper = "3"\n'
    with (
        Session(open_shop(tmp_path, columns=columns)) as session,
        pytest.raises(parco.QuestionError, match="one bound only"),
    ):
        session.mean("dollars", cost="0.1")


def test_a_key_never_pays_twice(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path)) as session:
        first = session.mean("dollars", cost="0.2", key="k")
        again = session.mean("dollars", cost="0.2", key="k")
        assert again.value == first.value
        assert again.repeat
        with pytest.raises(parco.KeyReuseError):
            session.mean("dollars", cost="0.3", key="k")
        assert spent(session) == Fraction(2, 10)


def test_an_empty_group_has_the_declared_form(tmp_path: Path) -> None:
    # So much epsilon leaves next to no noise: a count that is not 0 is certain.
    alone = [("1", "2024-01-05", "2", "10.50", "web")]
    with Session(open_shop(tmp_path, purchases=alone, budget='measure = "pure"\nepsilon = "9000"')) as session:
        release = session.mean("dollars", by="channel", cost="8000")
        (web, *others) = release.value.rows()
        assert [row["value"] for row in others] == [None, None]
        assert {(row["lower"], row["upper"]) for row in others} == {("0", "100")}
        assert abs(Fraction(str(web["value"])) - Fraction("10.5")) < 2
        assert release.table().to_pylist()[1]["value"] is None
        assert release.table().schema == session.mean("dollars", by="channel", cost="8000").table().schema
        assert str(release).splitlines()[2].split() == ["shop", "0", "100"]


def noisy(mechanism: Additive, exact: list[int], step: Fraction) -> Answer:
    finer = int(step / mechanism.lattice)
    drawn = mechanism.draw([value * finer for value in exact], CipherBits())
    level = (1 + LEVEL) / 2
    labels = tuple(() for _ in exact)
    return Answer((), labels, tuple(drawn), mechanism.lattice, mechanism.half_width(level), level)


@pytest.mark.parametrize("measure", [Measure.PURE, Measure.GDP], ids=str)
@pytest.mark.parametrize(("size", "value"), [(1, 0), (3, 100), (10, 80), (40, 5), (400, 50), (4000, 99)])
def test_it_covers_at_its_level_in_groups_of_every_size(measure: Measure, size: int, value: int) -> None:
    # Each group is drawn 400 times by the mechanisms a session would use: 12 groups, 4,800 intervals in all.
    contract = parco.Contract.parse(contract_text(groups=1, rows=2))
    query = Query.of(contract, "sum", column="dollars", centred=True)
    count = Query.of(contract, "count", column="dollars")
    units = 10**14
    parts = [
        noisy(design.for_cost(measure, sensitivity(one), step=one.step, units=units), [exact] * 400, one.step)
        for one, exact in ((query, size * (value - 50) * 100), (count, size))
    ]
    answer = MeanAnswer(
        by=(), labels=parts[0].labels, sums=parts[0], counts=parts[1], centre=query.centre,
        lower=Fraction(0), upper=Fraction(100), step=Fraction(1, 10**4), confidence=LEVEL,
    )  # fmt: skip
    missed = sum(not row.lower <= value <= row.upper for row in answer)
    # At 95 % a correct interval misses more than 42 of 400 less than once in 100,000 runs.
    assert missed <= 42
    if size == 4000:
        narrow = [row.upper - row.lower for row in answer]
        assert max(narrow) < 20
        assert all(row.value is not None for row in answer)


def test_it_covers_over_real_sessions(tmp_path: Path) -> None:
    purchases = [(str(place), "2024-01-05", "1", str(place % 7), "web") for place in range(60)]
    truth = Fraction(sum(place % 7 for place in range(60)), 60)
    missed = 0
    with Session(open_shop(tmp_path, purchases=purchases, budget='measure = "pure"\nepsilon = "100"')) as session:
        for _ in range(25):
            web, _, _ = session.mean("dollars", by="channel", cost="4", fresh=True).value
            missed += not web.lower <= truth <= web.upper
    assert missed <= 7
    assert math.isclose(spent(session), 100)
