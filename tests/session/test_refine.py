"""Refinement through the front door: what it costs, what is free, what is refused, and who may race or die."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import parco
from parco import canonical
from parco.audit.verify import verify
from parco.cli.main import app
from parco.engines.duckdb import DuckDBEngine
from parco.errors import ForfeitedError, VerificationError
from parco.ledger import points
from parco.ledger.accounts import replay
from parco.mechanisms.refinement import RefinedGaussian
from parco.session.schedules import ScheduledAsk, sign_schedule
from parco.session.session import Session
from parco.stores.address import open_ledger
from parco.testing import TapeSession
from tests.shop import contract_text, open_shop, write_csv
from tests.stores.forks import forked

if TYPE_CHECKING:
    from tests.postgres import Server

PURE = 'measure = "pure"\nepsilon = "4"'
BUDGETS = {
    "pure": PURE,
    "zcdp": 'measure = "zcdp"\nrho = "4"\ndelta = "1e-6"',
    "gdp": 'measure = "gdp"\nmu = "3"\ndelta = "1e-6"',
    "renyi": 'measure = "renyi"\norder = 4\nepsilon_at_order = "8"\ndelta = "1e-6"',
}
WHERE = "channel in ('web', 'shop') and items >= 1 and date >= '2024-01-02' or date is null"

OF_A_RELEASE = [point for point in points.POINTS if point.endswith(("reserve", "settle"))]

Shop = Callable[..., tuple[parco.Contract, str | Path]]


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """Makes a signed shop, and says where its ledger is: in each store."""
    freed: list[str] = []

    def make(**options: Any) -> tuple[parco.Contract, str | Path]:
        if request.param == "sqlite":
            return open_shop(tmp_path, **options), tmp_path / "shop.ledger"
        server: Server = request.getfixturevalue("postgres")
        freed.append(server.ledger())
        write_csv(tmp_path / "purchases.csv")
        (tmp_path / "contract.toml").write_text(contract_text(**options), encoding="utf-8")
        contract = parco.Contract.read(tmp_path / "contract.toml")
        parco.sign(contract, ledger=server.url(freed[0]))
        return contract, server.url(freed[0])

    yield make
    for name in freed:
        request.getfixturevalue("postgres").free(name)


def spent(session: Session) -> int:
    (account,) = session.budget()
    assert account.reserved == 0
    return account.spent


@pytest.mark.parametrize("measure", BUDGETS)
def test_ten_refinements_are_charged_what_one_release_at_the_last_precision_is(tmp_path: Path, measure: str) -> None:
    contract = open_shop(tmp_path, budget=BUDGETS[measure])
    with Session(contract, actor="ana") as session:
        releases = [session.sum("items", by="month", where=WHERE, error="500")]
        for error in range(450, 0, -45):
            plan = session.plan.refine(releases[-1], error=error)
            releases.append(session.refine(releases[-1], error=error))
            assert releases[-1].value.half_width <= error
            assert releases[-1].cost == plan.cost
            assert plan.remaining == releases[-1].remaining
        assert len(releases) == 11
        last = releases[-1].receipt
        once = type(releases[0].receipt.mechanism)(last.mechanism.scale, last.mechanism.lattice)
        assert spent(session) == once.cost_units(last.sensitivity, last.measure) == last.path_cost.units
        assert last.refines == tuple(release.receipt.release for release in releases[:-1])
        assert last.bound >= releases[0].receipt.bound
        verify(session._store, strict=True, releases=[release.record() for release in releases])
        assert replay(session._store.entries()) == session._store.verify()


def test_what_is_no_sharper_than_stored_is_free_and_the_last_of_a_path_is_refined(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=BUDGETS["zcdp"]), actor="ana") as session:
        first = session.count(by="month", error="60")
        fine = session.refine(first, error="30")
        before = spent(session)
        for again in (
            session.refine(first, error="30"),
            session.refine(first, error="45"),
            session.refine(first, error="60"),
            session.refine(first, cost=fine.cost.value),
            session.count(by="month", error="30"),
            session.count(by="month"),
        ):
            assert again.repeat
            assert again.cost.units == 0
        assert session.refine(first, error="45").value.values == fine.value.values
        assert session.plan.refine(first, error="40").repeat
        assert spent(session) == before
        # By the first one's number: what is beyond its cost counts, and the last of the path goes on.
        finer = session.refine(first.receipt.release, cost=fine.cost.value * 2)
        assert finer.receipt.refines == (first.receipt.release, fine.receipt.release)
        assert first.cost.units + 2 * fine.cost.units - 10 < spent(session) <= first.cost.units + 2 * fine.cost.units
        # Wide and refined answers are both kept, to the byte.
        assert [row.parent for row in session.history()[1:]] == [None, first.receipt.release, fine.receipt.release]


def test_what_is_stored_of_a_gaussian_path_is_draws_and_the_estimate_they_make(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=BUDGETS["gdp"]), actor="ana") as session:
        first = session.sum("dollars", by="month", cost="0.01")
        last = session.refine(session.refine(first, cost="0.02"), cost="0.05")
        bodies = [canonical.decode(one.answer) for one in session._store.answers(_question(session))]
        drawn = [bodies[0]["cells"], bodies[1]["drawn"], bodies[2]["drawn"]]
        law = last.receipt.mechanism
        assert isinstance(law, RefinedGaussian)
        exact = law.path.estimates(drawn)
        halves = [abs(one - law.lattice * cell) for one, cell in zip(exact, last.value.values, strict=True)]
        assert max(halves) <= law.lattice / 2
        assert bodies[2].keys() == {"cells", "drawn", "parco"}


def _question(session: Session) -> str:
    question = session.history()[-1].question
    assert question is not None
    return question


def test_a_changed_answer_on_the_path_is_found_before_anything_is_charged(tmp_path: Path) -> None:
    from tests.stores.build import harm

    contract = open_shop(tmp_path, budget=BUDGETS["zcdp"])
    with Session(contract) as session:
        first = session.count(by="month", error="60")
        harm(tmp_path / "shop.ledger", "UPDATE answers SET body = x'7b7d'")
        with pytest.raises(VerificationError):
            session.refine(first, error="30")
        assert spent(session) == first.cost.units


def test_a_release_that_asks_for_more_is_told_of_refine(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=PURE)) as session:
        first = session.count(by="month", error="60")
        with pytest.raises(parco.SharperError, match=r"parco refine.* 2 .*refine\(2") as caught:
            session.count(by="month", error="20")
        assert caught.value.facts["release"] == first.receipt.release
        session.refine(caught.value.facts["release"], error="20")
        assert session.count(by="month", error="20").repeat


REFUSED: list[tuple[str, Callable[[Session], Any]]] = [
    ("refine those that should be sharper", lambda s: s.refine(s.mean("items"), error="1")),
    ("a choice is not refined", lambda s: s.refine(s.quantile("items", at="0.5"), error="1")),
    ("a choice is not refined", lambda s: s.refine(s.top("month", k=1, cost="0.1"), error="1")),
    ("has no answer", lambda s: s.refine(99, error="1")),
    ("has no answer", lambda s: s.refine(1, error="1")),
    ("takes a release", lambda s: s.refine(True, error="1")),
    ("takes a release", lambda s: s.refine("2", error="1")),  # type: ignore[arg-type]
    ("by error, or by cost", lambda s: s.refine(s.count())),
    ("cost or error, not both", lambda s: s.refine(s.count(), error="1", cost="0.1")),
    ("below 1e-15", lambda s: s.refine(s.count(), cost="1e-16")),
]


@pytest.mark.parametrize(("message", "act"), REFUSED)
def test_what_cannot_be_refined_is_refused_with_the_reason(
    tmp_path: Path, message: str, act: Callable[[Session], Any]
) -> None:
    with Session(open_shop(tmp_path, budget=PURE)) as session:
        with pytest.raises(parco.RequestError, match=message):
            act(session)
        assert not any(row.parent for row in session.history())


def test_parts_of_a_mean_are_refined_one_by_one_and_the_mean_is_free(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=BUDGETS["zcdp"])) as session:
        mean = session.mean("items", cost="0.01")
        for part in mean.receipt.parts:  # type: ignore[attr-defined]
            session.refine(part.release, cost="0.02")
        again = session.mean("items")
        assert again.repeat
        assert [part.refines for part in again.receipt.parts] == [  # type: ignore[attr-defined]
            (part.release,)
            for part in mean.receipt.parts  # type: ignore[attr-defined]
        ]
        assert again.value.sums.half_width < mean.value.sums.half_width


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2"},
        {"columns": contract_text().split("[budget]")[1].split("\n", 3)[3].replace("upper = 10", "upper = 11")},
        {"rows": 3},
        {"groups": 1},
    ],
    ids=str,
)
def test_another_version_bound_or_limit_is_another_question(tmp_path: Path, change: dict[str, Any]) -> None:
    contract = open_shop(tmp_path, budget=PURE)
    with Session(contract) as session:
        first = session.sum("items", by="month", error="500")
    version = change.pop("version", None)
    if change:
        (tmp_path / "contract.toml").write_text(contract_text(budget=PURE, **change), encoding="utf-8")
        contract = parco.Contract.read(tmp_path / "contract.toml")
        parco.revise(contract, reason="why")
    with Session(contract, version=version) as session:
        with pytest.raises(parco.QuestionError, match="another question"):
            session.refine(first, error="10")
        assert spent(session) == first.cost.units


def test_a_revision_that_leaves_the_question_alone_leaves_its_answer_refinable(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget=PURE)
    with Session(contract) as session:
        first = session.count(by="month", where="items >= 3", error="60")
    text = contract_text(budget=PURE).replace('"a test"', '"another purpose"')
    (tmp_path / "contract.toml").write_text(text, encoding="utf-8")
    contract = parco.Contract.read(tmp_path / "contract.toml")
    parco.revise(contract, reason="why")
    with Session(contract) as session:
        assert session.refine(first, error="20").receipt.refines == (first.receipt.release,)
        session._store.verify()


def test_an_erased_question_and_a_tape_are_refused(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget=PURE)
    with Session(contract) as session:
        first = session.count(error="60")
        with pytest.raises(parco.RequestError, match="tape"):
            TapeSession(contract, tape=b"").refine(first, error="20")
        session.amend(first.receipt.release, "question", erase=True, reason="asked for")
        with pytest.raises(parco.RequestError, match="erased"):
            session.refine(first, error="20")


def test_a_budget_that_is_short_refuses_and_charges_nothing(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget='measure = "pure"\nepsilon = "1"')) as session:
        first = session.count(by="month", cost="0.9")
        plan = session.plan.refine(first, cost="0.2")
        assert not plan.fits
        assert "it would be refused" in str(plan)
        with pytest.raises(parco.BudgetError):
            session.refine(first, cost="0.2")
        assert spent(session) == first.cost.units


THREADS = 8


@pytest.mark.parametrize(
    "errors", [["20"] * THREADS, [str(30 - 2 * place) for place in range(THREADS)]], ids=["one", "all"]
)
def test_threads_race_and_the_path_does_not_fork(shop: Shop, errors: list[str]) -> None:
    """Whoever comes second is served by the first one's answer, or goes on from it: all is charged as one path."""
    contract, ledger = shop(budget=BUDGETS["zcdp"])
    with Session(contract, ledger=ledger, actor="ana") as session:
        first = session.count(by="month", error="60")
    start, found = threading.Barrier(THREADS), list[parco.Release[parco.Answer]]()

    def race(error: str) -> None:
        with Session(contract, ledger=ledger, actor="ana") as own:
            start.wait()
            found.append(own.refine(first, error=error))
            assert own.count(by="month").value.half_width <= Fraction(error)

    threads = [threading.Thread(target=race, args=(error,)) for error in errors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == THREADS
    with Session(contract, ledger=ledger) as session:
        rows = [row for row in session.history() if row.parent is not None]
        assert len({row.parent for row in rows}) == len(rows)
        # A chain: each refines the one before.
        assert [row.parent for row in rows] == [first.receipt.release, *(row.seq for row in rows)][: len(rows)]
        assert sum(not release.repeat for release in found) == len(rows)
        assert len(rows) == 1 or len(set(errors)) > 1
        best = session.count(by="month")
        assert best.value.half_width <= min(map(Fraction, errors))
        assert spent(session) == best.receipt.path_cost.units
        verify(session._store)


# point -> (states of the refinement afterwards, how often the difference was paid once it is asked again)
OUTCOMES = {"before-reserve": ([], 1), "after-reserve": (["forfeited"], 2), "before-settle": (["forfeited"], 2),
            "after-settle": (["settled"], 1)}  # fmt: skip


@pytest.mark.parametrize("budget", ["pure", "zcdp"])
@pytest.mark.parametrize("point", OF_A_RELEASE)
def test_a_refinement_killed_at_each_point(
    shop: Shop, point: str, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was lost stays charged, its answer is refined anew from the last that was settled, and that once."""
    contract, ledger = shop(budget=BUDGETS[budget])
    with Session(contract, ledger=ledger, actor="ana") as session:
        first = session.count(by="month", error="60")
        difference = session.plan.refine(first, error="20").cost.units

    def die(at: str) -> None:
        if at == point:
            os._exit(9)

    def child() -> None:
        monkeypatch.setattr(points, "reach", die)
        Session(contract, ledger=ledger, actor="ana").refine(first, error="20")

    assert os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1]) == 9
    states, paid = OUTCOMES[point]
    with Session(contract, ledger=ledger, actor="ana") as session:
        session._store.tidy()
        assert [row.state for row in session.history() if row.parent] == states
        refined = session.refine(first, error="20")
        assert refined.repeat is (states == ["settled"])
        assert refined.receipt.refines == (first.receipt.release,)
        assert spent(session) == first.cost.units + paid * difference
        assert refined.receipt.path_cost.units == first.cost.units + difference
        verify(session._store)


def test_a_failure_behind_the_charge_is_forfeited_and_told_in_one_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(open_shop(tmp_path, budget=PURE)) as session:
        first = session.count(by="month", error="60")
        with monkeypatch.context() as patched:
            patched.setattr(DuckDBEngine, "run_all", lambda *_, **__: 1 / 0)
            with pytest.raises(ForfeitedError, match="the charge stands"):
                session.refine(first, error="20")
        assert session.refine(first, error="20").value.half_width <= 20
        assert session.accesses() == parco.Accesses(first=1, refinement=1, forfeited=1)


def test_a_queued_refinement_stands_in_the_way_and_its_end_makes_way(shop: Shop) -> None:
    contract, ledger = shop(budget=PURE)
    with Session(contract, ledger=ledger, actor="ana") as session:
        first = session.count(by="month", error="60")
        session.refine(first, error="40")
        entries = len(list(session._store.entries()))
        assert session.refine(first, error="40").repeat
        assert len(list(session._store.entries())) == entries


def test_history_budget_and_refine_on_the_command_line(tmp_path: Path) -> None:
    open_shop(tmp_path, budget=BUDGETS["zcdp"])
    contract, ledger = str(tmp_path / "contract.toml"), str(tmp_path / "shop.ledger")

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*arguments])
        assert done.exit_code == code or (code and done.exception), done.output
        return done.output

    run("release", contract, "count", "--by", "month", "--error", "60")
    run("release", contract, "count", "--by", "month", "--error", "50", "--fresh")
    plan = json.loads(run("refine", contract, "2", "--error", "20", "--dry-run", "--json"))
    assert plan["refines"] == 2
    assert "more than release 2 did" in run("refine", contract, "2", "--error", "20", "--dry-run")
    shown = json.loads(run("refine", contract, "2", "--error", "20", "--json"))
    assert (shown["cost"], shown["receipt"]["refines"]) == (plan["cost"], [2])
    assert "refines    2" in run("refine", contract, "2", "--error", "20")
    history = json.loads(run("history", "--ledger", ledger, "--json"))["history"]
    told = [(row["access"], row["fresh"], row["refines"], row["repeats"]) for row in history]
    assert told == [(None, False, None, 0), ("first", False, None, 0), ("fresh", True, None, 0),
                    ("refinement", False, 2, 1)]  # fmt: skip
    assert "refines 2" in " ".join(run("history", "--ledger", ledger).split())
    counts = json.loads(run("budget", "--ledger", ledger, "--json"))["accesses"]
    assert counts == {"first": 1, "fresh": 1, "refinement": 1, "forfeited": 0, "repeats": 1}
    assert "1 refinements" in " ".join(run("budget", "--ledger", ledger).split())
    with Session(parco.Contract.read(contract)) as session:
        assert str(session.accesses()) in " ".join(run("budget", "--ledger", ledger).split())


def test_what_was_superseded_or_withdrawn_is_neither_served_nor_refined(tmp_path: Path) -> None:
    with Session(open_shop(tmp_path, budget=BUDGETS["gdp"]), actor="ana") as session:
        first = session.count(by="month", cost="0.01")
        finer = session.refine(first, cost="0.01")
        other = session.count(by="month", cost="0.001", fresh=True)
        numbers = [one.receipt.release for one in (finer, other)]
        session.supersede(numbers[0], reason="of the wrong rows", withdraw=True)
        before = spent(session)
        for ask in (session.refine, session.plan.refine):
            for cost in ("0.01", "0.02"):
                with pytest.raises(parco.SupersededError, match="was withdrawn"):
                    ask(first, cost=cost)
        assert spent(session) == before
        session.supersede(numbers[0], numbers[0], reason="they were right")
        assert session.refine(first, cost="0.01").receipt.release == numbers[0]
        sharper = session.refine(other, cost="0.02")
        assert not sharper.repeat
        assert list(sharper.receipt.refines) == [numbers[1]]


def test_a_refinement_is_no_step_of_a_schedule(tmp_path: Path) -> None:
    contract = open_shop(tmp_path, budget=BUDGETS["gdp"])
    with Session(contract) as session:
        asks = [ScheduledAsk(parco.Ask("count", by="month", cost="0.01"), (session.version,))]
        sign_schedule(session, "weekly", asks)
    with Session(contract, schedule="weekly") as session:
        first = session.count(by="month")
        for ask in (session.refine, session.plan.refine):
            with pytest.raises(parco.RequestError, match="no step of a schedule"):
                ask(first, cost="0.01")
        assert session.refine(first, error="100000").repeat
        assert spent(session) == first.cost.units


def test_values_of_a_path_come_nearer(tmp_path: Path) -> None:
    """The wiring: the exact value is read again for each draw, and weighs what it should."""
    rows = [(str(unit), "2024-01-05", "3", "1", "web") for unit in range(400)]
    for measure in ("pure", "zcdp"):
        folder = tmp_path / measure
        with Session(open_shop(folder, budget=BUDGETS[measure], purchases=rows), actor="ana") as session:
            release = session.count(error="60", confidence="0.999999")
            for error in (40, 25, 14):
                release = session.refine(release, error=error, confidence="0.999999")
                (row,) = release.value
                assert row.lower <= 400 <= row.upper
                assert row.upper - row.lower <= 2 * error
            widths = [session.refine(release, error=100, confidence=level).value.half_width for level in ("0.9", "0.5")]
            assert all(narrow < wide for wide, narrow in pairwise([release.value.half_width, *widths]))
            open_ledger(folder / "shop.ledger").verify()


DIVIDED = {
    "periods": (("rows = 2", 'rows = 2\nperiod = "month"'), {"by": "month", "period": ["2024-01", "2024-02"]}),
    "parts": (("[columns.date]", '[parts]\nfit = "0.5"\ntest = "0.5"\n[columns.date]'), {"by": "channel"}),
    "a part": (("[columns.date]", '[parts]\nfit = "0.5"\ntest = "0.5"\n[columns.date]'), {"part": "fit"}),
    "replace": (("add-or-remove", "replace"), {"by": "month"}),
}


@pytest.mark.parametrize(("kind", "measure"), [*zip(DIVIDED, ("pure", "zcdp", "gdp", "pure"), strict=True)])
def test_every_account_that_paid_pays_the_difference(tmp_path: Path, kind: str, measure: str) -> None:
    change, how = DIVIDED[kind]
    write_csv(tmp_path / "purchases.csv")
    (tmp_path / "contract.toml").write_text(contract_text(budget=BUDGETS[measure]).replace(*change), encoding="utf-8")
    contract = parco.Contract.read(tmp_path / "contract.toml")
    parco.sign(contract)
    with Session(contract) as session:
        first = session.sum("dollars", error="5000", where="items > 1 or channel = 'web'", **how)  # type: ignore[arg-type]
        finer = session.refine(first, error="2000")
        paid = {row.label: row.spent for row in session.budget() if row.spent}
        assert paid == dict.fromkeys(first.receipt.accounts, finer.receipt.path_cost.units)
        verify(session._store, strict=True, releases=[first.record(), finer.record()])
