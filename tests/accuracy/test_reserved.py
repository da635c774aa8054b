"""Runs that are reserved whole: read once, climbed in memory, settled at what the steps cost; nothing oversold."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import parco
from parco.accuracy import reserved
from parco.accuracy.ladders import Explicit, Geometric, Ladder, Predictive
from parco.accuracy.reserved import ReservedMeasurement
from parco.accuracy.rules import AbsoluteError, RelativeError, View
from parco.accuracy.sessions import release_until
from parco.audit.verify import verify
from parco.errors import ForfeitedError, RequestError
from parco.measure import COST_UNIT
from parco.mechanisms.stopping import StoppedGaussian
from parco.privacy.expost import ExPost
from parco.testing import TapeSession
from tests.shop import HEADER, contract_text, open_shop, write_csv

BUDGETS = {
    "gdp": 'measure = "gdp"\nmu = "2"\nreceipt_order = 8\ndelta = "1e-6"',
    "zcdp": 'measure = "zcdp"\nrho = "4"\nreceipt_order = 8\ndelta = "1e-6"',
    "renyi": 'measure = "renyi"\norder = "8"\nepsilon = "20"\ndelta = "1e-6"',
    "pure": 'measure = "pure"\nepsilon = "4"',
}
DOUBLED = Geometric("0.001", 2)
COUNT = parco.Ask("count", by="channel")
TAPE = bytes(range(256)) * 400


def purchases(web: int = 900, shop: int = 300, phone: int = 30) -> list[tuple[str, ...]]:
    """So many customers, each with one purchase."""
    channels = ["web"] * web + ["shop"] * shop + ["phone"] * phone
    return [(str(one), "2024-02-01", "3", "30", channel) for one, channel in enumerate(channels)]


def opened(
    folder: Path, measure: str = "gdp", *, rows: list[tuple[str, ...]] | None = None, **more: Any
) -> parco.Session:
    folder.mkdir(exist_ok=True)
    rows = purchases() if rows is None else rows
    return parco.Session(open_shop(folder, purchases=rows, budget=BUDGETS[measure], groups=1, rows=1, **more))


def replacing(folder: Path) -> parco.Session:
    """Under replace, with a column whose amounts have both signs."""
    text = contract_text(budget=BUDGETS["gdp"], groups=1, rows=1).replace("add-or-remove", "replace")
    text += '[columns.change]\ntype = "integer"\nlower = -5\nupper = 10\n'
    write_csv(folder / "purchases.csv", [(*row, "1") for row in purchases()], (*HEADER, "change"))
    (folder / "contract.toml").write_text(text)
    contract = parco.Contract.read(folder / "contract.toml")
    parco.sign(contract, actor="steward")
    return parco.Session(contract)


def amounts(session: parco.Session) -> list[tuple[int, int]]:
    return [(row.spent, row.reserved) for row in session.budget()]


def at_step(number: int) -> Any:
    """A rule that looks at no value."""

    def rule(view: View) -> bool:
        return view.step >= number

    return rule


@pytest.mark.parametrize("keys", ["together", "each"])
@pytest.mark.parametrize("measure", BUDGETS)
def test_what_the_steps_cost_is_charged_and_the_rest_is_free_again(tmp_path: Path, measure: str, keys: Any) -> None:
    session = opened(tmp_path, measure)
    found = release_until(session, COUNT, RelativeError("20%"), at_most="3", ladder=DOUBLED, reserve=True, keys=keys)
    receipt, run = found.release.receipt, found.stopped
    assert run.enough
    assert amounts(session) == [(run.cost.units, 0)]
    assert receipt.cost == run.cost
    assert receipt.reserved is not None
    assert 0 < receipt.cost.units < receipt.reserved.units <= 3 * 10**15
    assert receipt.reserved.value > Fraction(29, 10)
    order = receipt.order
    assert receipt.ex_post == ExPost.of(session.contract.budget.measure, receipt.cost.value, order=order)
    assert all(row.upper - row.value <= Fraction(1, 5) * row.value for row in found.release.value)
    exact = dict(zip(("web", "shop", "phone"), (900, 300, 30), strict=True))
    assert all(abs(row.value - exact[row.keys[0]]) <= 3 * (row.upper - row.value) for row in found.release.value)  # type: ignore[index]
    # The data were read once, and one request is on the ledger.
    assert [row.state for row in session.history()] == ["open", "settled"]
    record = json.loads(json.dumps(found.record()))
    assert (record["receipt"]["cost"], record["receipt"]["reserved"]) == (str(receipt.cost), str(receipt.reserved))
    verify(session._store, strict=True, releases=[found.release.record()])


def test_step_by_step_shows_what_a_reserved_run_came_to_and_does_not_refine_it(tmp_path: Path) -> None:
    session = opened(tmp_path)
    first = release_until(session, COUNT, RelativeError("20%"), at_most="3", ladder=DOUBLED, reserve=True, keys="each")
    before = amounts(session)
    again = release_until(session, COUNT, RelativeError("20%"), at_most="3", ladder=DOUBLED)
    assert again.stopped.enough
    assert again.stopped.last.half_widths == first.stopped.last.half_widths
    with pytest.raises(parco.RequestError, match="reserved whole"):
        release_until(session, COUNT, RelativeError("1%"), at_most="3", ladder=DOUBLED)
    assert amounts(session) == before


@pytest.mark.parametrize("at_most", ["0.5", "0.7", "1e-14"])
def test_what_a_run_is_charged_is_within_the_cap_that_it_tells(tmp_path: Path, at_most: str) -> None:
    """Also where it climbs to the top: prices are rounded up, and the ladder's costs are not."""
    session = opened(tmp_path)
    run = release_until(
        session, COUNT, AbsoluteError("0.01"), at_most=at_most, ladder=Geometric("1e-15", 4), reserve=True
    )
    assert not run.stopped.enough
    assert run.stopped.cost.units <= run.stopped.cap.units <= Fraction(at_most) * 10**15
    assert run.stopped.cap.units >= Fraction(at_most) * 10**15 - 1


@pytest.mark.parametrize("measure", ["gdp", "pure"])
def test_each_key_is_refined_only_while_it_needs_it(tmp_path: Path, measure: str) -> None:
    """A unit is in one key: the run costs what the smallest key does, and large keys keep wide intervals."""
    session = opened(tmp_path, measure)
    found = release_until(session, COUNT, RelativeError("20%"), at_most="3", ladder=DOUBLED, reserve=True, keys="each")
    widths = {row.keys[0]: row.upper - row.value for row in found.release.value}
    assert widths["web"] > 2 * widths["phone"]
    assert found.release.value.half_width == max(widths.values())
    receipt = found.release.receipt
    assert len(receipt.scales) == 3
    assert receipt.mechanism.scale == max(receipt.scales) > min(receipt.scales)
    finest = min(receipt.scales)
    exact = 1 / finest if measure == "pure" else 1 / finest**2
    assert receipt.cost.units == -(-exact.numerator * 10**15 // exact.denominator)
    assert "each cell's own" in str(receipt)
    # Asked again without an accuracy, each cell has the interval of its own noise.
    again = session.count(by="channel")
    assert again.repeat
    plain = {row.keys[0]: row.upper - row.value for row in again.value}
    assert plain["web"] > 2 * plain["phone"]
    assert again.value.half_width == max(plain.values())
    assert session.count(by="channel", confidence="0.5").value.half_widths < again.value.half_widths


def test_the_law_of_a_gaussian_stop_covers_its_draws(tmp_path: Path) -> None:
    """Scale, variance and rounding, worked out from the draws that the answer holds."""
    session = opened(tmp_path)
    found = release_until(session, COUNT, at_step(4), at_most="3", ladder=DOUBLED, reserve=True)
    law = found.release.receipt.mechanism
    body = json.loads(session._store.stored(found.release.receipt.release).answer)
    laws = [Fraction(*one) for one in body["laws"]]
    assert [len(path) for path in body["draws"]] == [4] * 3
    variance = 1 / sum(1 / laws[place] ** 2 for place, _ in body["draws"][0])
    assert isinstance(law, StoppedGaussian)
    assert law.scale**2 <= variance <= law.variance
    assert law.variance / variance < 1 + Fraction(1, 10**13)
    estimates = [sum(variance / laws[place] ** 2 * steps for place, steps in path) / 64 for path in body["draws"]]
    assert [cell - estimate for cell, estimate in zip(body["cells"], estimates, strict=True)] == [
        pytest.approx(0, abs=0.5) for _ in estimates
    ]
    assert [row.value for row in found.release.value] == [cell * law.lattice for cell in body["cells"]]
    # The step-by-step way has the same intervals: same ladder, same level, same variance.
    stepwise = release_until(opened(tmp_path / "b"), COUNT, at_step(4), at_most="3", ladder=DOUBLED)
    widths = [run.stopped.last.half_widths[0] for run in (found, stepwise)]
    assert float(widths[0]) == pytest.approx(float(widths[1]), rel=0.02)


@pytest.mark.parametrize("ladder", [None, Predictive("0.001"), Explicit(("0.1", "1", "3"))])
def test_every_ladder_is_climbed_and_ends_at_what_was_reserved(tmp_path: Path, ladder: Ladder | None) -> None:
    session = opened(tmp_path)
    found = release_until(session, COUNT, RelativeError("0.01%"), at_most="3", ladder=ladder, reserve=True)
    assert not found.stopped.enough
    reserved = found.release.receipt.reserved
    assert reserved is not None
    assert reserved.value - found.release.receipt.cost.value < Fraction(1, 10**13)
    assert amounts(session) == [(found.release.receipt.cost.units, 0)]
    verify(session._store, strict=True)


def test_the_same_run_again_is_free_and_a_sharper_one_begins_anew(tmp_path: Path) -> None:
    session = opened(tmp_path)
    run = {"at_most": "1", "ladder": DOUBLED, "reserve": True}
    first = release_until(session, COUNT, RelativeError("50%"), **run)  # type: ignore[arg-type]
    spent = amounts(session)
    again = release_until(session, COUNT, RelativeError("50%"), **run)  # type: ignore[arg-type]
    assert again.release.repeat
    assert (again.stopped.enough, again.stopped.cost.units) == (True, 0)
    assert list(again.release.value) == list(first.release.value)
    with pytest.raises(parco.RequestError, match=r"fresh=True"):
        release_until(session, COUNT, RelativeError("1%"), **run)  # type: ignore[arg-type]
    with pytest.raises(parco.RequestError, match=r"is not refined\. Repeats of it stay free"):
        release_until(session, COUNT, RelativeError("1%"), at_most="1", ladder=DOUBLED)
    with pytest.raises(parco.RequestError, match=r"is not refined\. Repeats of it stay free"):
        session.refine(first.release, cost="0.1")
    with pytest.raises(parco.SharperError) as told:
        session.count(by="channel", cost="1")
    assert "refine" not in str(told.value)
    assert amounts(session) == spent
    fresh = release_until(session, replace(COUNT, fresh=True), RelativeError("1%"), **run)  # type: ignore[arg-type]
    assert amounts(session) == [(spent[0][0] + fresh.stopped.cost.units, 0)]


def test_what_cannot_be_reserved_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    session = opened(tmp_path)
    refused: list[tuple[parco.Ask, dict[str, Any], str]] = [
        (parco.Ask("mean", "dollars"), {}, "parts of a mean"),
        (parco.Ask("quantile", "dollars", at="0.5"), {}, "counts and sums"),
        (replace(COUNT, cost="1"), {}, "leave out cost"),
        (COUNT, {"confidence": "1"}, "confidence"),
        (COUNT, {"at_most": "0"}, "at_most is a positive cost"),
        (COUNT, {"keys": "some"}, "together"),
        (COUNT, {"reserve": False, "keys": "each"}, "reserve=True"),
    ]
    for ask, options, message in refused:
        with pytest.raises(parco.RequestError, match=message):
            release_until(session, ask, RelativeError("5%"), **{"at_most": "1", "reserve": True, **options})
    with pytest.raises(parco.BudgetError):
        release_until(session, COUNT, RelativeError("5%"), at_most="4.1", reserve=True)
    pure = opened(tmp_path / "pure", "pure")
    with pytest.raises(parco.RequestError, match="Geometric"):
        release_until(pure, COUNT, RelativeError("5%"), at_most="1", ladder=Predictive("0.1"), reserve=True)
    assert [row.state for row in session.history()] == ["open"]


def test_under_replace_keys_stand_apart_where_a_unit_moves_them_alike(tmp_path: Path) -> None:
    """Two units may meet in no key: twice as many cells. Amounts of both signs have no such count."""
    session = replacing(tmp_path)
    found = release_until(session, COUNT, RelativeError("20%"), at_most="3", ladder=DOUBLED, reserve=True, keys="each")
    two = sorted(found.release.receipt.scales)[:2]
    assert found.release.receipt.cost.value == pytest.approx(sum(1 / scale**2 for scale in two), rel=1e-12)
    change = parco.Ask("sum", "change", by="channel")
    with pytest.raises(parco.RequestError, match="both signs"):
        release_until(session, change, RelativeError("20%"), at_most="1", reserve=True, keys="each")
    release_until(session, change, AbsoluteError("500"), at_most="1", ladder=DOUBLED, reserve=True)


def test_a_rule_that_fails_has_what_was_released_settled(tmp_path: Path) -> None:
    session = opened(tmp_path)

    def breaks(view: View) -> bool:
        if view.step == 3:
            raise KeyError("mine")
        return False

    with pytest.raises(KeyError, match="mine"):
        release_until(session, COUNT, breaks, at_most="3", ladder=DOUBLED, reserve=True)
    ((spent, reserved),) = amounts(session)
    assert spent * COST_UNIT == pytest.approx(Fraction(4, 1000), rel=1e-9)
    assert reserved == 0
    assert session.count(by="channel").repeat
    verify(session._store, strict=True)


def test_a_draw_that_fails_forfeits_all_and_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(tmp_path)

    def fails(*_: object) -> object:
        raise ValueError("the exact count is 900")

    def second(view: View) -> bool:
        monkeypatch.setattr("parco.accuracy.cells._GaussianStep.draw", fails)
        return False

    with pytest.raises(parco.ParcoError) as told:
        release_until(session, COUNT, second, at_most="3", ladder=DOUBLED, reserve=True)
    assert "900" not in str(told.value)
    assert told.value.__cause__ is told.value.__context__ is None
    ((spent, reserved),) = amounts(session)
    assert spent * COST_UNIT == pytest.approx(3, rel=1e-9)
    assert reserved == 0
    assert [row.state for row in session.history()] == ["open", "forfeited"]


def test_nothing_is_reserved_by_a_run_that_was_never_climbed(tmp_path: Path) -> None:
    session = opened(tmp_path)
    with ReservedMeasurement(session, COUNT, most=10**15):
        pass
    assert amounts(session) == [(0, 0)]


DIES = """
import os, sys, parco
from parco.accuracy.rules import RelativeError
from parco.accuracy.sessions import release_until
from parco.accuracy import reserved
from parco.accuracy.ladders import Geometric

def dies(view):
    if view.step == 3:
        os._exit(9)
    return False

session = parco.Session(parco.Contract.read(sys.argv[1]))
release_until(session, parco.Ask("count", by="channel"), dies, at_most="3", ladder=Geometric("0.001", 2), reserve=True)
"""


def test_a_crash_in_the_middle_forfeits_the_whole_reservation(tmp_path: Path) -> None:
    session = opened(tmp_path)
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "contract.toml")], check=False, timeout=60)
    assert died.returncode == 9
    ((spent, reserved),) = amounts(session)
    assert spent == 0
    assert reserved * COST_UNIT == pytest.approx(3, rel=1e-9)
    assert session._store.tidy() == [2]
    assert amounts(session) == [(reserved, 0)]
    verify(session._store, strict=True)


def test_two_runs_that_fit_only_once_are_not_both_admitted(tmp_path: Path) -> None:
    """The first holds all that it may need until it stops; the second is refused meanwhile, and fits afterwards."""
    session, met, seen = opened(tmp_path), threading.Event(), threading.Event()
    other = parco.Ask("count_units", by="channel")
    failures: list[BaseException] = []

    def waits(view: View) -> bool:
        met.set()
        assert seen.wait(60)
        return view.step >= 2

    def runs() -> None:
        try:
            release_until(session, COUNT, waits, at_most="3", ladder=DOUBLED, reserve=True)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    thread = threading.Thread(target=runs)
    thread.start()
    try:
        assert met.wait(60)
        with pytest.raises(parco.BudgetError, match="is left"):
            release_until(session, other, at_step(2), at_most="3", ladder=DOUBLED, reserve=True)
    finally:
        seen.set()
        thread.join(60)
    assert failures == []
    release_until(session, other, at_step(2), at_most="3", ladder=DOUBLED, reserve=True)
    (row,) = session.budget()
    assert row.spent * COST_UNIT == pytest.approx(Fraction(4, 1000), rel=1e-9)
    assert row.reserved == 0
    verify(session._store, strict=True)


@pytest.mark.parametrize("keys", ["together", "each"])
@pytest.mark.parametrize("measure", ["gdp", "pure"])
def test_all_but_the_answer_is_equal_between_neighbours(tmp_path: Path, measure: str, keys: Any) -> None:
    """One customer more, the same randomness: entries differ in the answer's digest and in salted names alone."""
    told = []
    for number, rows in enumerate((purchases(), purchases(phone=31))):
        session = opened(tmp_path / str(number), measure, rows=rows)
        tape = TapeSession(session.contract, tape=TAPE)
        found = release_until(tape, COUNT, at_step(3), at_most="3", ladder=DOUBLED, reserve=True, keys=keys)
        entries = [_told(line) for line in session._store.entries()]
        rest = {name: value for name, value in found.record().items() if name not in ("rows", "receipt")}
        told.append((entries, rest, found.release.receipt.cost, found.stopped.last.half_widths, amounts(session)))
    assert told[0] == told[1]


def _told(entry: bytes) -> str:
    """An entry without digests and time."""
    return re.sub(r'"[0-9a-f]{64}"|"time":[0-9]+', "", entry.decode())


def test_a_quota_counts_what_was_realised(tmp_path: Path) -> None:
    session = opened(tmp_path)
    store = session._store
    ledger = tmp_path / "shop.ledger"
    parco.set_quota("team", members=[session.actor], amount="3.5", reason="shares", ledger=ledger)
    release_until(session, COUNT, at_step(2), at_most="3", ladder=DOUBLED, reserve=True)
    (row,) = session.quotas()
    assert row.used == amounts(session)[0][0] < 10**13
    verify(store, strict=True)


def test_derived_data_get_back_on_all_their_accounts(tmp_path: Path) -> None:
    """The parent is charged in its own measure, by the law that was reached."""
    write_csv(tmp_path / "purchases.csv", purchases())
    sessions = []
    for name, budget, parents in (("a", "zcdp", ""), ("b", "gdp", 'derived_from = ["a"]\n\n')):
        text = contract_text(name=name, dataset=name, budget=BUDGETS[budget], groups=1, rows=1)
        (tmp_path / f"{name}.toml").write_text(text.replace("[unit]", f"{parents}[unit]"))
        contract = parco.Contract.read(tmp_path / f"{name}.toml")
        parco.sign(contract, ledger=tmp_path / "x.ledger")
        sessions.append(parco.Session(contract, ledger=tmp_path / "x.ledger"))
    found = release_until(sessions[1], COUNT, at_step(3), at_most="3", ladder=DOUBLED, reserve=True, keys="each")
    (parent, _), (own, _) = amounts(sessions[1])
    assert found.release.receipt.cost.units == own
    assert 2 * parent - own in (-1, 0, 1)
    assert [(one.account, one.cost.units) for one in found.release.receipt.also] == [("a", parent)]
    assert [reserved for _, reserved in amounts(sessions[1])] == [0, 0]
    verify(sessions[1]._store, strict=True, releases=[found.release.record()])


def test_a_run_that_is_recosted_meanwhile_is_charged_whole(tmp_path: Path) -> None:
    """Its total counts from all that was reserved: what a part of it costs was not said."""
    session = opened(tmp_path)

    def rule(view: View) -> bool:
        if view.step == 1:
            session.recost("gaussian", factor=2, reason="advisory 7")
        return view.step >= 3

    with pytest.raises(ForfeitedError, match="charged whole"):
        release_until(session, COUNT, rule, at_most="1", ladder=DOUBLED, reserve=True)
    again = parco.Session(session.contract)
    assert [row.state for row in again.history() if row.mechanism] == ["forfeited"]
    ((spent, reserved),) = amounts(again)
    (held,) = again.history()[1].charges
    assert (spent, reserved) == (2 * held.cost, 0)
    verify(again._store)


def test_a_session_with_a_schedule_has_no_such_run(tmp_path: Path) -> None:
    session = opened(tmp_path)
    parco.sign_schedule(session, "weekly", [parco.ScheduledAsk(parco.Ask("count", by="channel", cost="0.1"), ("1",))])
    kept = parco.Session(session.contract, schedule="weekly")
    with pytest.raises(parco.RequestError, match="no step of a schedule"):
        release_until(kept, COUNT, RelativeError("5%"), at_most="1", reserve=True)


@pytest.mark.parametrize("measure", ["gdp", "pure"])
def test_an_interrupt_behind_a_draw_settles_what_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    """What nobody has seen is in no answer: neither among its draws nor in its cells."""
    session, found = opened(tmp_path, measure), reserved._last_draws
    costs = [10**12, 10**13]

    def interrupted(cells: Any) -> Any:
        if max(cells.standing) == costs[1]:
            raise KeyboardInterrupt
        return found(cells)

    monkeypatch.setattr(reserved, "_last_draws", interrupted)

    def climb() -> None:
        with ReservedMeasurement(session, COUNT, most=10**15) as run:
            for cost in costs:
                run.refine([cost] * len(run.labels))

    with pytest.raises(KeyboardInterrupt):
        climb()
    ((spent, held),) = amounts(session)
    assert held == 0
    assert spent <= costs[0]
    verify(session._store, strict=True)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_fork_of_a_run_ends_nothing(tmp_path: Path) -> None:
    """A child that unwinds must not settle what was drawn so far: its parent goes on to draw."""
    session, parent = opened(tmp_path), os.getpid()

    def rule(view: View) -> bool:
        if view.step == 1:
            child = os.fork()
            if child == 0:
                raise SystemExit
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        return view.step >= 4

    try:
        found = release_until(session, COUNT, rule, at_most="3", ladder=DOUBLED, reserve=True)
    except BaseException as error:
        if os.getpid() != parent:
            os._exit(3 if isinstance(error, SystemExit) else 4)
        raise
    assert amounts(session) == [(found.stopped.cost.units, 0)]
    assert [row.state for row in session.history()] == ["open", "settled"]


@pytest.mark.parametrize("act", ["draw", "stop", "forfeit"])
def test_a_reservation_is_ended_by_the_process_that_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    session = opened(tmp_path)
    with ReservedMeasurement(session, COUNT, most=10**15) as run:
        run.refine([10**12] * len(run.labels))
        reservation = run._reservation
        assert reservation is not None
        acts: dict[str, Callable[[], object]] = {
            "draw": lambda: run.refine([10**13] * len(run.labels)),
            "stop": run.settled,
            "forfeit": reservation.forfeit,
        }
        monkeypatch.setattr(reservation, "_process", -1)
        with pytest.raises(RequestError, match="process that began it"):
            acts[act]()
        monkeypatch.undo()
    assert [row.state for row in session.history()] == ["open", "settled"]
