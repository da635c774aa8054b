"""Checks by a sparse vector in a session: charged whole and first, alone on the account, settled with the verdicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import parco
from parco.accuracy.validation import Validation, stream_of
from parco.audit.controls import controls
from parco.audit.verify import verify
from parco.engines.duckdb import DuckDBEngine
from parco.errors import BudgetError, BusyError, ForfeitedError, RequestError
from parco.ledger import points
from parco.mechanisms.sparse_vector import Stream
from parco.privacy.sensitivity import Sensitivity
from parco.queries.query import Query
from parco.queries.sensitivity import sensitivity
from parco.session.checking import Checking, scored
from parco.stores.sqlite import SqliteStore
from tests.accuracy.test_sessions import PARTS, purchases
from tests.cli.run import parco as run_parco
from tests.shop import open_shop

PURE = 'measure = "pure"\nepsilon = "9"'
EPSILON = 10**15
TARGET = "0.8"


@pytest.fixture
def session(tmp_path: Path) -> parco.Session:
    return parco.Session(open_shop(tmp_path, purchases=purchases(300), budget=PURE, columns=PARTS))


def checking(session: parco.Session, *, epsilon: str = "1", attempts: int = 5, margin: int = 0) -> Checking:
    validation = Validation(TARGET, check="sparse-vector", epsilon=epsilon, margin=margin)
    vector, threshold = stream_of(validation)
    target = validation.accuracy
    return Checking(session, part="validation", target=target, vector=vector, threshold=threshold, attempts=attempts)


def account(session: parco.Session) -> tuple[int, int]:
    row = next(row for row in session.budget() if row.label == "validation")
    return row.spent, row.reserved


def state(session: parco.Session) -> list[str]:
    return [row.state for row in session.history() if row.mechanism is not None]


def test_the_whole_cost_is_on_disk_before_a_row_is_read_and_settled_with_the_verdicts(
    session: parco.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[tuple[str, tuple[int, int]]]()
    other = parco.Session(session.contract)
    monkeypatch.setattr(points, "reach", lambda point: seen.append((point, account(other))))
    stream = checking(session)
    assert (stream.charged, stream.request, account(session)) == (0, None, (0, 0))
    assert [stream.check("items = 2"), stream.check("items = 1 or items = 2")] == [False, False]
    assert account(session) == (0, EPSILON)
    assert stream.check("items is not null")
    assert account(session) == (EPSILON, 0)
    assert stream.charged == EPSILON
    assert seen == [
        ("before-reserve", (0, 0)),
        *[("after-reserve", (0, EPSILON)), ("before-settle", (0, EPSILON))] * 3,
        ("after-settle", (EPSILON, 0)),
    ]
    (row,) = [row for row in session.history() if row.mechanism is not None]
    assert (row.state, row.cells, row.fresh) == ("settled", 5, True)
    stored = session._store.stored(stream.request or 0)
    body = json.loads(stored.answer)
    assert (body["cells"], body["threshold"]) == ([0, 0, 1], 0)
    assert body["asked"] == ["items = 2", "items between 1 and 2", "items is not null"]
    with pytest.raises(RequestError, match="ended"):
        stream.check("items = 3")
    stream.end()
    session._store.verify()


def counts(session: parco.Session, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], int]:
    """Units of the validation part that meet a condition: by questions of another ledger, with next to no noise."""
    folder = session.contract.folder / "rich"
    budget = PURE.replace("9", "9000")
    rich = parco.Session(open_shop(folder, purchases=purchases(300), budget=budget, columns=PARTS))
    secret = session._store.secret(session._signed.account)
    monkeypatch.setattr(rich._store, "secret", lambda _: secret)

    def count(where: str | None) -> int:
        (row,) = rich.count_units(part="validation", where=where, cost="1000").value
        return round(row.value)

    return count


CONDITIONS = ["channel = 'web'", "items = 2", "items is not null or items is null"]


def test_what_is_compared_is_the_exact_score_of_the_part(
    session: parco.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()
    real = Stream.passes

    def passes(self: Stream, score: int) -> bool:
        asked.append(score)
        return real(self, score)

    monkeypatch.setattr(Stream, "passes", passes)
    stream = checking(session)
    for condition in CONDITIONS:
        stream.check(condition)
    count, lattice = counts(session, monkeypatch), stream._vector.lattice
    assert asked == [(5 * count(condition) - 4 * count(None)) / lattice for condition in CONDITIONS]
    assert 100 < count(None) < 200
    assert 0 < count(CONDITIONS[0]) < count(None)


def test_a_score_is_a_release_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its own sensitivity, free the second time, refined for the difference, and checked by both verifiers."""
    budget = 'measure = "gdp"\nmu = "50"\nreceipt_order = 2\ndelta = "1e-6"'
    session = parco.Session(open_shop(tmp_path, purchases=purchases(300), budget=budget, columns=PARTS))
    count = counts(session, monkeypatch)

    def score(condition: str, cost: str, target: str = "0.8") -> parco.Release[parco.Answer]:
        return scored(session, part="validation", target=Fraction(target), condition=condition, cost=cost)

    for condition in CONDITIONS:
        release = score(condition, "400")
        (row,) = release.value
        assert abs(row.value - (5 * count(condition) - 4 * count(None))) <= 6 * 4 / 20
        assert score(condition, "400").repeat
        assert score(condition, "300").repeat
    receipt = release.receipt
    assert receipt.sensitivity == Sensitivity(l1=Fraction(4), l2_squared=Fraction(16))
    assert receipt.accounts == ("validation",)
    assert receipt.question == "score at 0.8 in part validation"
    before = account(session)[0]
    sharper = score("items = 2", "500")
    assert sharper.receipt.refines
    assert account(session)[0] - before == sharper.cost.units <= 100 * EPSILON
    assert sharper.receipt.path_cost.units == pytest.approx(500 * EPSILON, rel=1e-12)
    assert score("items = 2", "200", target="0.1").receipt.sensitivity.l1 == 9
    verify(session._store, strict=True)
    assert all(control.bites is not False for control in controls(session._store))
    with pytest.raises(RequestError):
        session.ask("score", part="validation")


@pytest.mark.parametrize("target", ["0.1", "0.5", "0.8", "0.95", "1/3"])
def test_a_unit_moves_a_score_by_what_it_adds_or_takes(session: parco.Session, target: str) -> None:
    """Every unit that comes is counted once, and is right or not; both kinds of question have that distance."""
    share = Fraction(target)
    for condition in (None, "items = 2"):
        query = Query.scored(session.contract, part="validation", target=share, where=condition)
        moves = [
            abs(query.score_of(units + 1, right + more) - query.score_of(units, right))
            for units in range(4)
            for right in range(units + 1)
            for more in (0, 1)
        ]
        assert sensitivity(query).l1 == max(moves) == Validation(share, cost=1).reach
        assert sensitivity(query).l2_squared == max(moves) ** 2


def test_a_run_that_nobody_passes_is_settled_at_its_end(session: parco.Session) -> None:
    stream = checking(session, attempts=2)
    assert not stream.check("items = 2")
    assert not stream.check("items = 2")
    with pytest.raises(RequestError, match="2 checks at most"):
        stream.check("items = 2")
    stream.end()
    stream.end()
    assert account(session) == (EPSILON, 0)
    assert json.loads(session._store.stored(stream.request or 0).answer)["cells"] == [0, 0]
    assert state(session) == ["settled"]


def test_a_run_without_a_check_costs_nothing(session: parco.Session) -> None:
    stream = checking(session)
    stream.end()
    assert (stream.charged, account(session), state(session)) == (0, (0, 0), [])


def test_while_it_runs_nothing_else_does_on_its_account(session: parco.Session) -> None:
    known = session.count(part="validation", cost="0.1")
    stream = checking(session)
    stream.check("items = 2")
    before = account(session)
    other = parco.Session(session.contract, actor="bob")
    for busy in (
        lambda: session.sum("items", part="validation", cost="0.1"),
        lambda: other.sum("items", part="validation", cost="0.1"),
        lambda: other.count(part="validation", cost="0.1", fresh=True),
        lambda: other.refine(known, cost="0.1"),
        lambda: other.sum("items", cost="0.1"),  # of all units, which every part pays
        lambda: checking(other).check("items = 2"),
    ):
        with pytest.raises(BusyError, match=f"request {stream.request}"):
            busy()
    assert account(session) == before
    assert other.count(part="validation", cost="0.1").repeat
    assert not other.count(part="fit", cost="0.1").repeat
    told = run_parco(
        "release", session.contract.folder / "contract.toml", "sum", "items", "--part", "validation", "--cost", "0.1",
        code=5,
    )  # fmt: skip
    assert "has this account to itself" in told.stderr
    stream.end()
    assert not other.sum("items", part="validation", cost="0.1").repeat
    session._store.verify()


def test_it_does_not_begin_while_another_release_is_open(session: parco.Session) -> None:
    seen = list[str]()

    def begins(point: str) -> None:
        if point == "before-settle":
            with pytest.raises(BusyError, match="open on this account"):
                checking(parco.Session(session.contract)).check("items = 2")
            seen.append(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points, "reach", begins)
        session.count(part="validation", cost="0.1")
    assert seen == ["before-settle"]
    stream = checking(session)
    stream.check("items = 2")
    assert account(session) == (EPSILON // 10, EPSILON)


def test_what_is_refused_before_a_row_is_read_does_not_end_it(session: parco.Session) -> None:
    stream = checking(session)
    for wrong in ("nothing = 2", "items = 99", "items ="):
        with pytest.raises(RequestError):
            stream.check(wrong)
    assert account(session) == (0, 0)
    stream.check("items = 2")
    with pytest.raises(RequestError):
        stream.check("nothing = 2")
    stream.check("items = 2")
    stream.end()
    assert json.loads(session._store.stored(stream.request or 0).answer)["cells"] == [0, 0]
    with pytest.raises(BudgetError):
        checking(session, epsilon="8.5").check("items = 2")
    assert account(session) == (EPSILON, 0)


def _secret(*_: Any, **__: Any) -> Any:
    raise ValueError("secret of somebody's row")


@pytest.mark.parametrize("place", [(DuckDBEngine, "run_all"), (Stream, "passes")])
def test_a_failure_behind_the_charge_forfeits_it_and_tells_nothing(
    session: parco.Session, monkeypatch: pytest.MonkeyPatch, place: tuple[type, str]
) -> None:
    stream = checking(session)
    stream.check("items = 2")
    with monkeypatch.context() as patch:
        patch.setattr(*place, _secret)
        with pytest.raises(ForfeitedError, match="the charge stands") as caught:
            stream.check("items = 2")
    assert "secret" not in repr(caught.value)
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert (account(session), state(session)) == ((EPSILON, 0), ["forfeited"])
    with pytest.raises(RequestError, match="ended"):
        stream.check("items = 2")
    stream.end()
    session.count(part="validation", cost="0.1")


def test_an_interrupt_inside_forfeits_and_is_told_as_what_it_is(
    session: parco.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    stream = checking(session)
    monkeypatch.setattr(Stream, "passes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stream.check("items = 2")
    assert state(session) == ["forfeited"]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_fork_asks_nothing_of_the_threshold(session: parco.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = checking(session)
    stream.check("items = 2")
    monkeypatch.setattr(stream, "_process", -1)
    with pytest.raises(RequestError, match="process that began it"):
        stream.check("items = 2")
    stream.end()
    assert state(session) == ["started"]


def test_the_same_run_again_is_another_charge(session: parco.Session) -> None:
    for times in (1, 2):
        stream = checking(session)
        stream.check("items = 2")
        stream.end()
        assert account(session) == (times * EPSILON, 0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.ask("checks", part="validation"),
        lambda session: session.plan.ask("checks", part="validation", cost="0.1"),
        lambda session: session.refine(2, cost="0.1"),
        lambda session: checking(parco.Session(session.contract, schedule="none")),
    ],
)
def test_it_is_asked_by_no_other_door(session: parco.Session, ask: Callable[[parco.Session], object]) -> None:
    stream = checking(session)
    stream.check("items = 2")
    stream.end()
    assert stream.request == 2
    with pytest.raises(RequestError):
        ask(session)


def test_the_receipt_of_the_entry_can_be_made(session: parco.Session) -> None:
    """As for any release: whoever shows the ledger's entry shows its cost and what may be claimed."""
    from parco.session.receipt import receipt_of

    stream = checking(session)
    stream.check("items is not null")
    stream.end()
    stored = session._store.stored(stream.request or 0)
    labels = {number: label for label, number in session._signed.accounts.items()}
    receipt = receipt_of(
        session._store, stored, question=str(stream._plan.query), limits=stream._plan.query.limits, version="1",
        labels=labels,
    )  # fmt: skip
    assert receipt.cost.units == EPSILON
    assert receipt.bound == 1
    assert receipt.record()["mechanism"] == "sparse-vector"
    assert "checks at 0.8 in part validation" in str(receipt)
    assert SqliteStore.open(session.contract.folder / "shop.ledger").verify().streams == {2: 2}
