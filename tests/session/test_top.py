"""Top keys end to end: which are named, what is charged and stored, and that no number goes out with them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import parco
from parco.queries.plan import Spend
from parco.session.top import TopAnswer
from tests.session.test_mean import spent
from tests.shop import COLUMNS, open_shop

RICH = 'measure = "pure"\nepsilon = "9000"'
BINS = '\n[bins.price]\ncolumn = "dollars"\nedges = ["0", "10", "50"]\n'


def sales(**times: int) -> list[tuple[str, ...]]:
    """So many customers of each channel, with a row each."""
    channels = [channel for channel, count in times.items() for _ in range(count)]
    return [(str(unit), "2024-01-05", "1", "3", channel) for unit, channel in enumerate(channels)]


def test_the_keys_with_the_most_rows_come_out_in_their_order(tmp_path: Path) -> None:
    with parco.Session(open_shop(tmp_path, purchases=sales(web=5, shop=2, phone=9, mail=50), budget=RICH)) as session:
        release = session.top("channel", k=2, cost="4000")
        assert isinstance(release.value, TopAnswer)
        assert release.value.chosen == ("phone", "web")
        assert release.value.rows() == [{"rank": 1, "channel": "phone"}, {"rank": 2, "channel": "web"}]
        assert release.table().to_pydict() == {"rank": [1, 2], "channel": ["phone", "web"]}
        assert release.receipt.mechanism.kind == "exponential"
        assert set(release.record()["rows"][0]) == {"rank", "channel"}  # type: ignore[index]
        # Two choices, each of which a unit's two rows can move by their number.
        assert release.cost.value == 2 * 2 / release.receipt.mechanism.scale


def test_a_top_is_planned_charged_and_stored(tmp_path: Path) -> None:
    with parco.Session(open_shop(tmp_path)) as session:
        plan = session.plan.top("month", k=2, cost="0.1")
        release = session.top("month", k=2, cost="0.1")
        assert spent(session) == plan.cost.value == release.cost.value <= Fraction(1, 10)
        again = session.top("month", k=2, cost="0.05")
        assert (again.repeat, again.value) == (True, release.value)
        assert session.top("date", k=2).repeat
        assert session.release([parco.Ask("top", "month", k=2)])[0].repeat
        assert session.plan.top("month", k=2).repeat
        with pytest.raises(parco.SharperError):
            session.top("month", k=2, cost="0.2")
        # Another number of keys is another question.
        assert not session.top("month", k=1, cost="0.1").repeat
        planned = session.plan.top("month", k=3, error="40")
        assert 39 < planned.half_width <= 40
        assert "left out" in str(planned)


def test_all_keys_and_empty_tables_have_the_same_form(tmp_path: Path) -> None:
    for name, rows in (("none", []), ("some", sales(web=3)), ("undeclared", sales(mail=9))):
        with parco.Session(open_shop(tmp_path / name, purchases=rows)) as session:
            release = session.top("channel", k=3, cost="0.5")
            assert sorted(map(str, release.value.chosen)) == ["phone", "shop", "web"]  # type: ignore[attr-defined]
            assert [row.keys[0] for row in release.value] == [1, 2, 3]


@pytest.mark.parametrize(
    ("bins", "how", "told"),
    [
        ("channel", {"k": 0}, "1 to 3"),
        ("channel", {"k": 4}, "1 to 3"),
        ("channel", {"k": True}, "1 to 3"),
        ("channel", {"k": "2"}, "1 to 3"),
        ("channel", {"k": None}, "how many keys"),
        ("channel", {"k": 1, "by": "month"}, "leave out by"),
        ("items", {"k": 1}, "there are: month, channel"),
        ("nothing", {"k": 1}, "there are: month, channel"),
        ("channel", {"k": 1, "delta": "1e-9"}, "only a selection"),
    ],
)
def test_what_is_no_top_is_refused_before_data_are_read(
    tmp_path: Path, bins: str, how: dict[str, object], told: str
) -> None:
    with parco.Session(open_shop(tmp_path), data=tmp_path / "nothing.csv") as session:
        with pytest.raises(parco.QuestionError, match=told):
            session.top(bins, **how)  # type: ignore[arg-type]
        with pytest.raises(parco.QuestionError, match="k=3"):
            session.ask("top", "channel")
        with pytest.raises(parco.QuestionError, match="only a top"):
            session.release([parco.Ask("count", k=2)])
        assert spent(session) == 0


def test_the_count_that_a_top_reads_is_the_one_that_is_asked_beside_it(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, purchases=sales(web=5, shop=2), budget=RICH, columns=COLUMNS + BINS)
    with parco.Session(contract) as session:
        top, count = session.release(
            [parco.Ask("top", "price", k=1, cost="1000"), parco.Ask("histogram", "price", cost="1000")]
        )
        assert [row.keys for row in top.value] == [(1, "[0, 10)")]
        assert [round(row.value or 0) for row in count.value] == [7, 0]
        assert spent(session) == sum(one.cost.value for one in (top, count))


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_replaced_units_cost_twice_as_much(tmp_path: Path, neighbours: str) -> None:
    contract = open_shop(tmp_path)
    text = (contract.folder / "contract.toml").read_text("utf-8").replace('"add-or-remove"', f'"{neighbours}"')
    query = parco.Query.of(parco.Contract.parse(text), "top", column="channel", k=3)
    plan = parco.Plan.of(query, version="1", spend=Spend(cost=Fraction(1)))
    times = 1 if neighbours == "add-or-remove" else 2
    # Three choices; a unit has two rows in a group.
    assert plan.cost.value <= 1
    assert abs(plan.mechanism.scale - 3 * 2 * times) < Fraction(1, 10**9)
