"""Killed at random under load, by a real SIGKILL: afterwards the ledger verifies, and is what the model says.

The child says what it is about to do, and what came of it. What it was told is done must be there; of the one act
whose answer nobody heard, all or nothing.
"""

from __future__ import annotations

import copy
import json
import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from parco.errors import ParcoError
from parco.ledger.entries import Charge
from parco.stores.address import open_ledger
from parco.stores.records import Reserved, Started
from parco.stores.store import Store

from .build import TENTH, Address, anything, ask, signed_store
from .forks import forked
from .model import Account, Ask, Model
from .test_model import LABELS, emptied

SEED = 6
KILLS, KILLS_LONG, KILLS_A_LEDGER = 50, 2000, 25
ACTS_MAX = 8
CAP = 10_000


class _Load:
    """One child's work: acts drawn by chance, each told to the parent before and after."""

    def __init__(self, address: Address, seed: int, pipe: int) -> None:
        self.store = open_ledger(address)
        self.dice = random.Random(seed)
        self.pipe = pipe
        self.open: dict[str, list[int]] = {"started": [], "reserved": []}
        self.asked = 0
        self.name = seed

    def run(self) -> None:
        while True:
            act = self.dice.choice(["begin", "begin", "reserve", "start", "settle", "settle", "forfeit", "void"])
            self._ask(act) if act in ("begin", "reserve") else self._end(act)

    def _ask(self, act: str) -> None:
        self.asked += 1
        charges = tuple((number, self.dice.randrange(3)) for number in sorted(self.dice.sample([1, 2, 3], 2)))
        one = Ask(f"question {self.name} {self.asked}", charges, fresh=self.dice.random() < 0.5)
        self._say({"act": act, "question": one.question, "charges": one.charges, "fresh": one.fresh})
        request = request_of(self.store, one)
        if act == "begin":
            outcome: Any = self.store.begin(request, serves=anything)
        else:
            outcome = self.store.reserve(request, serves=anything, lease_seconds=3600)
        assert isinstance(outcome, Started | Reserved)
        self.open["started" if act == "begin" else "reserved"].append(outcome.request)
        self._say({"request": outcome.request})

    def _end(self, act: str) -> None:
        state = "reserved" if act in ("start", "void") else "started"
        if not self.open[state]:
            return
        number = self.open[state].pop(self.dice.randrange(len(self.open[state])))
        self._say({"act": act, "request": number})
        if act == "settle":
            self.store.settle(number, answer=str(number).encode())
        else:
            getattr(self.store, act)(number)
        if act == "start":
            self.open["started"].append(number)
        self._say({})

    def _say(self, what: dict[str, Any]) -> None:
        os.write(self.pipe, json.dumps(what).encode() + b"\n")


def request_of(store: Store, one: Ask) -> Any:
    charges = tuple(Charge(number, cost * TENTH) for number, cost in one.charges)
    return ask(store, question=one.question, charges=charges, fresh=one.fresh)


def _loaded_and_killed(address: Address, seed: int, *, acts: int, share: float) -> list[dict[str, Any]]:
    """What a child told until it was killed: after some acts, and then after that share of the time they took."""
    here, there = os.pipe()
    child = forked(lambda: _Load(address, seed, there).run())
    os.close(there)
    with os.fdopen(here, "rb") as stream:
        first = stream.readline()
        start = time.monotonic()
        first += b"".join(stream.readline() for _ in range(2 * acts))
        time.sleep(share * (time.monotonic() - start) / acts)
        os.kill(child, signal.SIGKILL)
        rest = stream.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child ended by itself: its load failed"
    lines = (first + rest).split(b"\n")
    return [json.loads(line) for line in lines if line]


class _Told:
    """The model after all that a child was told, and, if one act was not answered, after that one too."""

    def __init__(self, model: Model[Ask], numbers: list[int]) -> None:
        self.model, self.numbers = model, numbers

    def hear(self, told: list[dict[str, Any]]) -> list[_Told]:
        """The states in which the ledger may be."""
        while len(told) >= 2:
            intent, answer, *told = told
            self._do(intent, answer.get("request"))
        if not told:
            return [self]
        other = copy.deepcopy(self)
        other._do(told[0], None)
        return [self, other]

    def _do(self, intent: dict[str, Any], request: int | None) -> None:
        act = intent["act"]
        if act in ("begin", "reserve"):
            one = Ask(intent["question"], tuple((number, cost) for number, cost in intent["charges"]), intent["fresh"])
            outcome = self.model.begin([one], queued=act == "reserve")
            assert isinstance(outcome, list)
            # Of an unanswered one the number is only seen in the ledger.
            self.numbers.append(-1 if request is None else request)
            return
        assert getattr(self.model, act)(self.numbers.index(intent["request"])) is None

    def recovered(self) -> Model[Ask]:
        """After whoever comes next: all that was started is forfeited, what is reserved waits for its lease."""
        for place, state in enumerate(self.model.states()):
            if state == "started":
                self.model.let_go(place)
        self.model.tidy()
        return self.model

    def is_shown(self, store: Store) -> bool:
        shown = [(row.cap // TENTH, row.spent // TENTH, row.reserved // TENTH) for row in store.accounts()]
        history = store.history()
        states = [row.state for row in history if row.charges or row.state == "void"]
        self.numbers = [row.seq for row in history if row.charges or row.state == "void"]
        model = self.model
        return (shown, states, len(list(store.entries()))) == (model.amounts(), model.states(), model.entries)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("kills", [KILLS, pytest.param(KILLS_LONG, marks=pytest.mark.long)])
def test_killed_at_random_under_load(request: pytest.FixtureRequest, kind: str, kills: int) -> None:
    dice = random.Random(SEED)
    with emptied(request, kind) as new_ledger:
        for _ in range(kills // KILLS_A_LEDGER):
            _kill_again_and_again(new_ledger, dice)


def _kill_again_and_again(new_ledger: Callable[[], Address], dice: random.Random) -> None:
    address = new_ledger()
    signed_store(address, cap=CAP * TENTH, labels=LABELS).close()
    known, acts = _Told(Model({number: Account(CAP) for number in (1, 2, 3)}), []), 0
    for _ in range(KILLS_A_LEDGER):
        seed = dice.randrange(10**9)
        told = _loaded_and_killed(address, seed, acts=dice.randint(1, ACTS_MAX), share=dice.uniform(0, 2))
        acts += len(told) // 2
        may_be = known.hear(told)
        for one in may_be:
            one.recovered()
        try:
            store = open_ledger(address)
            store.verify()
        except ParcoError as error:
            raise AssertionError(f"not as it should be after the load of seed {seed}: {error}") from error
        fitting = [one for one in may_be if one.is_shown(store)]
        assert fitting, f"neither as before nor as after the load of seed {seed}"
        known = fitting[-1]
        store.close()
    assert acts > KILLS_A_LEDGER, "the load was none"
