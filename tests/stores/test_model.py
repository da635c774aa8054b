"""Any life of a ledger, in each store: what it answers and what it holds is what the model says, act for act."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import Connection, select

from parco.errors import ParcoError
from parco.ledger.accounts import replay
from parco.ledger.entries import Charge, MechanismFacts, Steps
from parco.stores import requests, streams, tables
from parco.stores.lease import Lease
from parco.stores.records import Pending, Recosting, Reserved, Started, Stopped, Stored
from parco.stores.store import Store

from .build import ACT, TENTH, Address, anything, ask, nothing, opening, quota, scheduling, signed_store, stream
from .model import Account, Charges, Outcome, Told
from .model_acts import FullAsk, FullModel, Planned, half

LABELS = ("fit", "test", "validation")
CAP = 15
EXAMPLES, STEPS = {"sqlite": 36, "postgres": 12}, 25
EXAMPLES_LONG, STEPS_LONG = 400, 60

CHARGES = st.dictionaries(st.integers(1, 3), st.integers(0, 5), min_size=1).map(
    lambda found: tuple(sorted(found.items()))
)
ASKS = st.builds(
    FullAsk,
    question=st.sampled_from("abcd"),
    charges=CHARGES,
    fresh=st.booleans(),
    key=st.none() | st.sampled_from("xyz"),
    contract=st.sampled_from([0, 0, 0, 1]),
    schedule=st.none() | st.sampled_from("st"),
    actor=st.sampled_from(["ana", "bob"]),
)
# Of derived data: all accounts that they descend from are charged with their own, or nothing is.
DERIVED = st.builds(
    FullAsk,
    question=st.sampled_from("ef"),
    charges=st.tuples(st.integers(0, 3), st.sampled_from([(1, 2, 3, 4)] * 3 + [(1, 3, 4), (4,)])).map(
        lambda found: tuple((number, found[0]) for number in found[1])
    ),
    actor=st.sampled_from(["ana", "bob"]),
    derived=st.just(True),
)
STEPS_PLANNED = st.lists(st.tuples(st.sampled_from("abcd"), CHARGES), min_size=1, max_size=3)
PLACES = st.integers(0, 50)
ENDS = st.sampled_from(["settle", "forfeit", "let go", None])


def as_stream(one: FullAsk) -> FullAsk:
    """An interactive one, on a question of its own."""
    return replace(one, question=one.question.upper(), schedule=None, is_stream=True)


def text_of(version: int) -> str:
    return f"the contract, version {version}"


class _ToldWatch:
    """Instead of a clock: a lease is over when the machine says so."""

    def __init__(self) -> None:
        self.over: set[int] = set()

    def is_over(self, request: int, _: Lease) -> bool:
        return request in self.over


class Life(RuleBasedStateMachine):
    """One ledger with three accounts, a fourth of derived data, and its model; a subclass says where the ledger is."""

    new_ledger: ClassVar[Callable[[], Address]]

    def __init__(self) -> None:
        super().__init__()
        self.store: Store = signed_store(type(self).new_ledger(), contract=text_of(0), cap=CAP * TENTH, labels=LABELS)
        self.watch = _ToldWatch()
        self.store._watch = self.watch  # type: ignore[assignment]
        self.store.sign(
            opening(dataset="view", contract="of the view", cap=CAP * TENTH, parents=("purchases",), disjoint=None)
        )
        # Signed, signed, and the lineage of the second.
        self.model = FullModel({number: Account(CAP) for number in (1, 2, 3, 4)}, entries=3)
        self.numbers: list[int] = []
        self.recosts: list[int | None] = []
        self.contracts = {0: self.store.signed("purchases", "sales").contract}
        self.view = self.store.signed("view", "sales").contract

    @rule(asks=st.lists(ASKS | DERIVED, min_size=1, max_size=2), serves=st.booleans())
    def begin(self, asks: list[FullAsk], *, serves: bool) -> None:
        asks = self._known(asks)
        wanted = [self._request(one) for one in asks]
        expected = self.model.begin(asks, serves=serves)
        serve = anything if serves else nothing
        self._agree(expected, lambda: self.store.begin_all(wanted, serves=[serve] * len(wanted)))

    @rule(asks=st.lists(ASKS | DERIVED, min_size=1, max_size=2), place=PLACES, after=ENDS)
    def begin_stream(self, asks: list[FullAsk], place: int, after: str | None) -> None:
        """One of these is a stream, beside nothing or the other. As a rule it ends at once: while it is open, nothing
        else begins.
        """
        place %= len(asks)
        self.begin([as_stream(one) if number == place else one for number, one in enumerate(asks)], serves=True)
        if after is not None and self._streams():
            self._end_stream(self._streams()[-1], after)

    @precondition(lambda self: self._streams())
    @rule(place=PLACES, act=ENDS.filter(bool))
    def end_stream(self, place: int, act: str) -> None:
        streams = self._streams()
        self._end_stream(streams[place % len(streams)], act)

    @precondition(lambda self: self.numbers)
    @rule(place=PLACES, cost=st.integers(0, 3), serves=st.booleans(), key=st.none() | st.sampled_from("xyz"))
    def refine(self, place: int, cost: int, *, serves: bool, key: str | None) -> None:
        place %= len(self.numbers)
        old = self.model.requests[place].ask
        charges = tuple((number, cost) for number, _ in old.charges)
        # The contract of the derived data is never revised.
        contract = old.contract if old.derived else self.model.version
        again = FullAsk(old.question, charges, key=key, contract=contract, actor=old.actor, derived=old.derived)
        one = replace(again, parent=place, depth=old.depth + 1)
        expected = self.model.begin([one], serves=serves)
        serve = anything if serves else nothing
        self._agree(expected, lambda: self.store.begin_all([self._request(one)], serves=[serve]))

    @rule(one=ASKS, is_stream=st.sampled_from([False, False, True]))
    def reserve(self, one: FullAsk, *, is_stream: bool) -> None:
        (one,) = self._known([as_stream(one) if is_stream else one])
        expected = self.model.begin([one], queued=True)
        self._agree(expected, lambda: self.store.reserve(self._request(one), serves=anything, lease_seconds=3600))

    @precondition(lambda self: self.numbers)
    @rule(place=PLACES, act=st.sampled_from(["start", "settle", "stop", "forfeit", "void"]))
    def end(self, place: int, act: str) -> None:
        place %= len(self.numbers)
        number = self.numbers[place]
        expected = getattr(self.model, act)(place)
        options: dict[str, Any] = {"answer": str(place).encode()} if act in ("settle", "stop") else {}
        if act == "stop":
            charges = _charged(half(self.model.requests[place].ask.charges))
            # The price of a law is not the store's to know: that of twice the scale is half.
            law = MechanismFacts("two-sided-geometric", Fraction(20), Fraction(1))
            options["stopped"] = Stopped(law, charges)
        self._same_error(expected, lambda: getattr(self.store, act)(number, **options))

    @precondition(lambda self: self.numbers)
    @rule(place=PLACES)
    def let_go(self, place: int) -> None:
        place %= len(self.numbers)
        self.model.let_go(place)
        self.store.abandon(self.numbers[place])
        self.watch.over.add(self.numbers[place])

    @rule()
    def recover(self) -> None:
        assert self.store.tidy() == [self.numbers[place] for place in self.model.tidy()]

    @rule(version=st.integers(0, 3))
    def revise(self, version: int) -> None:
        expected = self.model.revise(version)
        cap = self.model.accounts[1].cap * TENTH
        self._same_error(expected, lambda: self.store.revise(self._opening(version, cap), reason="why"))
        self._remember(version)

    @rule(cap=st.integers(0, 2 * CAP), is_new=st.booleans())
    def move_cap(self, cap: int, *, is_new: bool) -> None:
        version = max({self.model.version, *self.model.replaced}) + 1 if is_new else self.model.version
        expected = self.model.move_cap(cap, version)
        self._same_error(expected, lambda: self.store.move_cap(self._opening(version, cap * TENTH), reason="why"))
        self._remember(version)

    @rule(name=st.sampled_from("st"), steps=STEPS_PLANNED)
    def sign_schedule(self, name: str, steps: list[Planned]) -> None:
        expected = self.model.sign_schedule(name, steps)
        facts = ask(self.store)
        fixed = tuple(
            Steps((question,), facts.mechanism, facts.sensitivity, facts.cells, _charged(charges))
            for question, charges in steps
        )
        wanted = scheduling(self.store, name=name, steps=fixed)
        self._same_error(expected, lambda: self.store.sign_schedule(wanted))

    @rule(name=st.sampled_from("st"))
    def leave_schedule(self, name: str) -> None:
        expected = self.model.leave_schedule(name)
        self._same_error(expected, lambda: self.store.leave_schedule(name, actor="steward", reason="why"))

    @invariant()
    def draws_the_same(self) -> None:
        drawn = {one.name: [step.request for step in one.steps] for one in self.store.schedules()}
        numbers: dict[int | None, int | None] = {None: None, **dict(enumerate(self.numbers))}
        assert drawn == {name: [numbers[place] for place in told] for name, told in self.model.drawn().items()}

    @rule(factor=st.integers(1, 3), is_correction=st.booleans(), of_streams=st.sampled_from([False, False, True]))
    def recost(self, factor: int, *, is_correction: bool, of_streams: bool) -> None:
        corrects = len(self.recosts) - 1 if is_correction and self.recosts else None
        expected = self.model.recost(factor, corrects, of_streams=of_streams)
        entry = None if corrects is None else self.recosts[corrects]
        mechanism = "sparse-vector" if of_streams else "two-sided-geometric"
        wanted = Recosting(mechanism=mechanism, factor=Fraction(factor), corrects=entry)
        self._same_error(expected, lambda: self.recosts.append(self.store.recost(ACT, wanted).position))

    @precondition(lambda self: self.numbers)
    @rule(place=PLACES, by=st.none() | PLACES)
    def supersede(self, place: int, by: int | None) -> None:
        place, by = place % len(self.numbers), None if by is None else by % len(self.numbers)
        expected = self.model.supersede(place, by)
        other = None if by is None else self.numbers[by]
        self._same_error(expected, lambda: self.store.supersede(ACT, request=self.numbers[place], by=other))

    @precondition(lambda self: self.numbers)
    @rule(place=PLACES, is_flag=st.booleans())
    def remark(self, place: int, *, is_flag: bool) -> None:
        number = self.numbers[place % len(self.numbers)]
        self.model.remark()
        if is_flag:
            self.store.flag(ACT, entry=number)
        else:
            self.store.amend(ACT, entry=number, field="title", text=f"title {self.model.entries}")

    @precondition(lambda self: len(self.numbers) > 2)
    @rule()
    def close(self) -> None:
        self._same_error(self.model.close(), lambda: self.store.close_account(ACT, dataset="purchases"))

    @rule(
        name=st.sampled_from(["team", "others"]),
        members=st.sets(st.sampled_from(["ana", "bob"]), min_size=1),
        amount=st.none() | st.integers(0, 12),
    )
    def set_quota(self, name: str, members: set[str], amount: int | None) -> None:
        expected = self.model.set_quota(name, members, amount)
        units = None if amount is None else amount * TENTH
        wanted = quota(name=name, members=tuple(members), amount=units, dataset="purchases")
        self._same_error(expected, lambda: self.store.set_quota(wanted))

    @invariant()
    def holds_the_same(self) -> None:
        shares = [(row.name, row.number, row.amount // TENTH, row.used // TENTH) for row in self.store.quotas()]
        assert sorted(shares) == self.model.shares()
        shown = [(row.cap // TENTH, row.spent // TENTH, row.reserved // TENTH) for row in self.store.accounts()]
        assert shown == self.model.amounts()
        states = [row.state for row in self.store.history() if row.charges or row.state == "void"]
        assert states == self.model.states()
        assert len(list(self.store.entries())) == self.model.entries

    def teardown(self) -> None:
        assert self.store.verify() == replay(self.store.entries())
        for place, state in enumerate(self.model.states()):
            if state == "settled":
                question = self.model.requests[place].ask.question
                stored = {one.request: one.answer for one in self.store.answers(question)}
                assert stored[self.numbers[place]] == str(place).encode()
        self.store.close()

    def _opening(self, version: int, cap: int) -> Any:
        return opening(contract=text_of(version), cap=cap, labels=LABELS)

    def _remember(self, version: int) -> None:
        if version == self.model.version:
            self.contracts[version] = self.store.signed("purchases", "sales").contract

    def _end_stream(self, place: int, act: str) -> None:
        if act == "let go":
            self.let_go(place)
        else:
            self.end(place, act if self.model.requests[place].state == "started" else "void")

    def _streams(self) -> list[int]:
        return [place for place, one in enumerate(self.model.requests) if one.is_open and one.ask.is_stream]

    def _known(self, asks: list[FullAsk]) -> list[FullAsk]:
        """Asked under a version that exists, each question and key once: what a session makes of its list."""
        found = {one.question: one for one in asks}.values()
        kept = [one for place, one in enumerate(found) if one.key is None or place == 0]
        old = min(self.model.replaced, default=self.model.version)
        versions = (self.model.version, old)
        return [replace(self._planned(one), contract=versions[one.contract]) for one in kept]

    def _planned(self, one: FullAsk) -> FullAsk:
        """Drawn from a schedule that exists, as a rule for what a step of it says: chance alone would rarely do so."""
        schedule = self.model.schedules.get(one.schedule or "")
        if schedule is None:
            return replace(one, schedule=None)
        said = [charges for question, charges in schedule.steps if question == one.question]
        return replace(one, charges=said[-1]) if said and one.key != "z" else one

    def _request(self, one: FullAsk) -> Any:
        # Streams have a scale of their own, and are not refined.
        law = {} if one.is_stream else {"scale": Fraction(10, 2**one.depth)}
        return (stream if one.is_stream else ask)(
            self.store,
            question=one.question,
            charges=_charged(one.charges),
            fresh=one.fresh,
            key=one.key,
            schedule=None if one.schedule is None else self.store.schedule(one.schedule).position,
            parent=None if one.parent is None else self.numbers[one.parent],
            contract=self.view if one.derived else self.contracts[one.contract],
            actor=one.actor,
            **law,
        )

    def _agree(self, expected: list[Outcome] | Outcome | Told, act: Callable[[], Any]) -> None:
        if isinstance(expected, type):
            self._same_error(expected, act)
            return
        found = act()
        if isinstance(found, list):
            for outcome in found:
                if isinstance(outcome, Started | Reserved):
                    self.numbers.append(outcome.request)
            assert [self._told(outcome) for outcome in found] == expected
        else:
            if isinstance(found, Reserved):
                self.numbers.append(found.request)
            assert self._told(found) == (expected[0] if isinstance(expected, list) else expected)

    def _told(self, outcome: Started | Reserved | Stored | Pending) -> Outcome:
        kind = {Started: "started", Reserved: "reserved", Stored: "stored", Pending: "pending"}[type(outcome)]
        return kind, self.numbers.index(outcome.request)

    @staticmethod
    def _same_error(expected: Told | None, act: Callable[[], Any]) -> None:
        if expected is None:
            act()
            return
        with pytest.raises(ParcoError) as caught:
            act()
        assert type(caught.value) is expected


def _charged(charges: Charges) -> tuple[Charge, ...]:
    return tuple(Charge(number, cost * TENTH) for number, cost in charges)


def life_at(new_ledger: Callable[[], Address]) -> type[Life]:
    return type("LifeHere", (Life,), {"new_ledger": staticmethod(new_ledger)})


@contextmanager
def emptied(request: pytest.FixtureRequest, kind: str) -> Iterator[Callable[[], Address]]:
    """A place for one empty ledger after another."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            numbers = iter(range(10**9))
            yield lambda: Path(folder) / f"{next(numbers)}.ledger"
        return
    server = request.getfixturevalue("postgres")
    name = server.ledger()

    def empty() -> str:
        server.empty(name)
        return str(server.url(name))

    yield empty
    server.free(name)


def _live(request: pytest.FixtureRequest, kind: str, examples: int, steps: int) -> None:
    with emptied(request, kind) as new_ledger:
        run_state_machine_as_test(
            life_at(new_ledger),
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            ),
        )


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_any_life_is_the_models(request: pytest.FixtureRequest, kind: str) -> None:
    _live(request, kind, EXAMPLES[kind], STEPS)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_lives_are_the_models(request: pytest.FixtureRequest, kind: str) -> None:
    _live(request, kind, EXAMPLES_LONG, STEPS_LONG)


def test_the_model_can_disagree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a store that charges a tenth too little is found."""
    lifted = requests._lifted

    def less(account: int, *amounts: int) -> dict[str, int]:
        return lifted(account, *(max(0, one - TENTH) for one in amounts))

    monkeypatch.setattr(requests, "_lifted", less)
    life = life_at(lambda: tmp_path / "x.ledger")()
    life.begin([FullAsk("a", ((1, 3),))], serves=True)
    life.end(0, "settle")
    with pytest.raises(AssertionError):
        life.holds_the_same()


def _sees_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_near", lambda *_: ())


def _keeps_the_first_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    take = streams.take

    def once(connection: Connection, charges: Sequence[Charge], *, request: int) -> None:
        known = {row.account for row in connection.execute(select(tables.streams))}
        take(connection, [charge for charge in charges if charge.account not in known], request=request)

    monkeypatch.setattr(streams, "take", once)


@pytest.mark.parametrize("fault", [_sees_no_stream, _keeps_the_first_stream])
def test_the_model_finds_a_stream_that_is_not_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """The control: a store that lets a request in beside a second stream is found."""
    fault(monkeypatch)
    life = life_at(lambda: tmp_path / "x.ledger")()
    life.begin_stream([FullAsk("a", ((1, 1),))], 0, "settle")
    life.begin_stream([FullAsk("b", ((1, 1),))], 0, None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        life.begin([FullAsk("c", ((1, 1),))], serves=True)
