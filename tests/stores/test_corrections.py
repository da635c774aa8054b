"""Corrections: entries of their own beside what they correct; money only rises, but for a recost that was wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from parco.errors import BudgetError, ForfeitedError, RequestError, SupersededError
from parco.ledger.accounts import replay
from parco.ledger.entries import Added, Charge, Entry, MechanismFacts, Recost, decode
from parco.measure import UNITS_MAX
from parco.stores import corrections
from parco.stores.address import open_ledger
from parco.stores.records import (
    Act,
    HistoryRow,
    Recosted,
    Recosting,
    Recovery,
    Started,
    Stopped,
    Stored,
    reading_now,
)
from parco.stores.store import Store

from .build import (
    ACT,
    ONE,
    TENTH,
    Address,
    amounts,
    anything,
    ask,
    harm,
    opening,
    scheduling,
    signed_store,
    started,
    stored_bytes,
)
from .forks import forked
from .scenarios import lost, reserved

GEOMETRIC = "two-sided-geometric"
ANSWER = b'{"cells":[1,2,3],"parco":"0.1.0"}'


@pytest.fixture
def store(address: Address) -> Store:
    return signed_store(address)


def answered(store: Store, question: str = "count by month", **changes: Any) -> int:
    return store.settle(started(store, question=question, **changes), answer=ANSWER).request


def by_factor(factor: int | str, **changes: Any) -> Recosting:
    return Recosting(mechanism=GEOMETRIC, factor=Fraction(factor), **changes)


def row_of(store: Store, request: int) -> HistoryRow:
    (row,) = [row for row in store.history() if row.seq == request]
    assert store.row(request) == row
    return row


def refused(act: Callable[[], object], store: Store, *, match: str) -> None:
    before = list(store.entries())
    with pytest.raises(RequestError, match=match):
        act()
    assert list(store.entries()) == before
    store.verify()


# ---- Texts ----


def test_an_amended_text_stands_beside_the_one_that_was_given(store: Store) -> None:
    number = answered(store)
    assert store.amend(ACT, entry=number, field="title", text="Purchases") == 5
    store.amend(Act(actor="bo", reason="spelt wrongly"), entry=number, field="title", text="Purchases by month")
    store.amend(ACT, entry=number, field="question", text="how many by month")
    row = row_of(store, number)
    assert row.question == "count by month"
    assert [(one.what, one.field, one.text, one.actor, one.reason) for one in row.corrections] == [
        ("amend", "title", "Purchases", "steward", "because"),
        ("amend", "title", "Purchases by month", "bo", "spelt wrongly"),
        ("amend", "question", "how many by month", "steward", "because"),
    ]
    assert reading_now(row.corrections, "title") == "Purchases by month"
    assert isinstance(store.begin(ask(store), serves=anything), Stored), "the question is known by what it was"
    assert b"Purchases" not in b"".join(store.entries())
    store.verify()


def test_an_erased_text_takes_what_it_was_amended_to_with_it(store: Store, address: Address) -> None:
    number = answered(store, "where customer = 'Ada Lovelace'")
    store.amend(ACT, entry=number, field="question", text="where customer is Lovelace, Ada")
    settled, proof = list(store.entries())[:4], store.prove(number)
    store.amend(Act(actor="bo", reason="asked for by law"), entry=number, field="question", text=None)
    assert b"Lovelace" not in stored_bytes(address)
    assert list(store.entries())[:4] == settled
    assert proof.holds
    assert store.prove(number).holds
    row = row_of(store, number)
    assert row.question is None
    assert [(one.text, one.erases, one.actor, one.reason) for one in row.corrections] == [
        (None, False, "steward", "because"),
        (None, True, "bo", "asked for by law"),
    ]
    assert store.stored(number).answer == ANSWER
    store.amend(ACT, entry=number, field="question", text="where a customer is named")
    assert reading_now(row_of(store, number).corrections, "question") == "where a customer is named"
    store.verify()


def test_a_corrections_own_reason_is_corrected(store: Store) -> None:
    number = answered(store)
    flag = store.flag(Act(actor="ana", reason="Mr Rossi was drunk"), entry=number)
    remark = store.flag(ACT, entry=flag)
    store.amend(ACT, entry=flag, field="reason", text="a shop is missing")
    store.amend(ACT, entry=remark, field="note", text="see entry 5")
    (one,) = row_of(store, number).corrections
    assert one.reason == "Mr Rossi was drunk"
    assert one.in_words() == "flagged by ana (entry 5): a shop is missing"
    assert [inner.what for inner in one.corrections] == ["flag", "amend"]
    assert one.corrections[0].corrections[0].text == "see entry 5"
    store.amend(ACT, entry=flag, field="reason", text=None)
    (one,) = row_of(store, number).corrections
    assert one.reason is None
    assert one.in_words() == "flagged by ana (entry 5): (erased)"


def test_what_cannot_be_amended(store: Store) -> None:
    number = answered(store)
    for entry, field, text, match in (
        (99, "title", "x", "no entry 99: the last is 4"),
        (number + 1, "title", "x", "belongs to release 2"),
        (1, "reason", "x", "entry 1 has no reason"),
        (1, "question", None, "entry 1 has no question"),
        (number, "title", None, "no title of entry 2 to erase"),
        (number, "question", "count by month", "reads so already"),
        (number, "contract", "x", "none of this kind"),
    ):
        refused(
            lambda entry=entry, field=field, text=text: store.amend(ACT, entry=entry, field=field, text=text),  # type: ignore[misc]
            store,
            match=match,
        )
    refused(lambda: store.flag(ACT, entry=99), store, match="no entry 99")


# ---- Answers ----


def test_a_superseded_answer_is_shown_and_not_served(store: Store) -> None:
    old, new = answered(store), answered(store, "count by week")
    seq = store.supersede(ACT, request=old, by=new)
    with pytest.raises(SupersededError, match="release 2, is superseded by release 5: `parco show`") as caught:
        store.begin(ask(store), serves=anything)
    assert caught.value.facts == {"release": old, "by": new}
    assert store.stored(old).answer == ANSWER
    assert store.stored(old).replaced == new
    assert [(one.what, one.by, one.entry) for one in row_of(store, old).corrections] == [("supersede", new, seq)]
    assert isinstance(store.begin(ask(store, fresh=True), serves=anything), Started)


def test_a_key_brings_back_its_own_answer_and_says_that_it_was_superseded(store: Store) -> None:
    old = answered(store, key="k")
    store.supersede(ACT, request=old, by=None)
    again = store.begin(ask(store, key="k"), serves=anything)
    assert isinstance(again, Stored)
    assert (again.request, again.replaced) == (old, 0)


def test_a_fresh_answer_to_the_same_question_takes_its_place(store: Store) -> None:
    old = answered(store, cost=2 * TENTH, scale=5)
    new = answered(store, fresh=True)
    store.supersede(ACT, request=old, by=new)
    served = store.begin(ask(store), serves=anything)
    assert isinstance(served, Stored)
    assert served.request == new, "the sharper one is the one that was superseded"
    store.supersede(ACT, request=old, by=old)
    served = store.begin(ask(store), serves=anything)
    assert isinstance(served, Stored)
    assert served.request == old


def test_superseding_goes_back_and_forth_and_never_round(store: Store) -> None:
    one, two, three = (answered(store, question) for question in "abc")
    store.supersede(ACT, request=one, by=two)
    store.supersede(ACT, request=two, by=three)
    for request, by, match in (
        (one, two, "is superseded by 5 already"),
        (three, three, "stands already"),
        (three, one, "superseded by 8 itself"),
        (two, one, "superseded by 5 itself"),
        (one, 3, "3 is no release that was answered"),
        (1, two, "1 is no release"),
        (99, None, "99 is no release"),
    ):
        refused(
            lambda request=request, by=by: store.supersede(ACT, request=request, by=by),  # type: ignore[misc]
            store,
            match=match,
        )
    store.supersede(ACT, request=two, by=two)
    store.supersede(ACT, request=two, by=None)
    refused(lambda: store.supersede(ACT, request=two, by=None), store, match="was withdrawn already")
    store.supersede(ACT, request=three, by=one)
    assert [one.by for one in row_of(store, two).corrections] == [three, two, 0]
    store.verify()


def test_what_is_not_answered_supersedes_nothing(store: Store) -> None:
    old, running = answered(store), started(store, question="b")
    forfeited = started(store, question="c")
    store.forfeit(forfeited)
    for number in (running, forfeited, reserved(store, question="d")):
        refused(lambda number=number: store.supersede(ACT, request=old, by=number), store, match="no release that was")  # type: ignore[misc]
        refused(lambda number=number: store.supersede(ACT, request=number, by=old), store, match="no release that was")  # type: ignore[misc]


# ---- Costs ----


def test_every_release_of_the_mechanism_is_recharged_and_the_account_overdrawn(store: Store) -> None:
    answers = [answered(store, question) for question in "ab"]
    running, dead = started(store, question="c"), started(store, question="d")
    store.forfeit(dead)
    waiting = reserved(store, question="e")
    noise = MechanismFacts("gaussian", Fraction(10), Fraction(1))
    other = answered(store, "f", mechanism=noise)
    wanted = by_factor(4)
    listed = store.affected(wanted)
    assert [one.request for one in listed.releases] == [*answers, running, dead]
    assert all(one.total == (4 * TENTH, 0) and one.before == (TENTH, 0) for one in listed.releases)
    done = store.recost(ACT, wanted)
    assert done == Recosted(done.position, listed.releases, (Added(1, 12 * TENTH, 0),), (waiting,))
    assert row_of(store, waiting).state == "void"
    (account,) = store.accounts()
    assert (account.spent, account.reserved, account.excess) == (16 * TENTH, TENTH, 7 * TENTH)
    assert account.remaining == -7 * TENTH
    with pytest.raises(BudgetError):
        store.begin(ask(store, question="g", cost=1), serves=anything)
    store.settle(running, answer=ANSWER)
    assert amounts(store) == (17 * TENTH, 0)
    assert [one.cost for one in row_of(store, answers[0]).corrections] == [4 * TENTH]
    assert row_of(store, answers[0]).charges == (Charge(1, TENTH),), "what was charged then is still told"
    assert row_of(store, other).corrections == ()
    refused(lambda: store.recost(ACT, wanted), store, match="nothing to recost")
    store.verify()


def test_a_ladder_that_is_recosted_while_it_runs_is_charged_whole(store: Store) -> None:
    """Its total counts from the whole: stopped for less, a correction would take back what is free again already."""
    answered(store)
    number = started(store, question="a ladder")
    wrong = store.recost(ACT, by_factor(3, only=(number,))).position
    stopped = Stopped(MechanismFacts(GEOMETRIC, Fraction(20), Fraction(1)), (Charge(1, TENTH // 2),))
    with pytest.raises(ForfeitedError, match=f"by entry {wrong}") as caught:
        store.stop(number, answer=ANSWER, stopped=stopped)
    assert caught.value.facts == {"request": number, "recost": wrong}
    assert amounts(store) == (3 * TENTH, TENTH), "nothing was written"
    store.abandon(number)
    assert store.tidy() == [number]
    store.recost(ACT, by_factor(1, only=(number,), corrects=wrong))
    assert amounts(store) == (2 * TENTH, 0)
    store.verify()


def test_a_recost_of_a_recost_states_the_new_total(store: Store) -> None:
    number = answered(store)
    first = store.recost(ACT, by_factor(4)).position
    refused(lambda: store.recost(ACT, by_factor(2)), store, match=f"known to cost more by entry {first}")
    second = store.recost(ACT, by_factor(6))
    assert second.added == (Added(1, 2 * TENTH, 0),)
    refused(lambda: store.recost(ACT, by_factor(2, corrects=first)), store, match=f"by entry {second.position}")
    refused(lambda: store.recost(ACT, by_factor(7, corrects=number)), store, match="no recost that could be corrected")
    third = store.recost(Act(actor="bo", reason="it was twice"), by_factor(2, corrects=second.position))
    assert third.added == (Added(1, -4 * TENTH, 0),)
    assert amounts(store) == (2 * TENTH, 0)
    store.recost(ACT, by_factor(1, corrects=third.position))
    assert amounts(store) == (TENTH, 0)
    for recosting in (
        Recosting(mechanism=GEOMETRIC, cost=TENTH - 1),
        Recosting(mechanism=GEOMETRIC, cost=TENTH - 1, corrects=first),
        Recosting(mechanism=GEOMETRIC, cost=0, corrects=third.position),
    ):
        refused(lambda recosting=recosting: store.recost(ACT, recosting), store, match="was charged more than this")  # type: ignore[misc]
    costs = [(one.cost, one.actor, one.reason) for one in row_of(store, number).corrections]
    assert costs == [
        (4 * TENTH, "steward", "because"),
        (6 * TENTH, "steward", "because"),
        (2 * TENTH, "bo", "it was twice"),
        (TENTH, "steward", "because"),
    ]
    store.verify()


def test_an_overdraft_goes_with_the_recost_that_was_wrong(store: Store) -> None:
    answered(store)
    wrong = store.recost(ACT, by_factor(20)).position
    (account,) = store.accounts()
    assert (account.excess, account.fixed_cap) == (ONE, None)
    store.recost(ACT, by_factor(2, corrects=wrong))
    (account,) = store.accounts()
    assert (account.spent, account.excess, account.fixed_cap) == (2 * TENTH, 0, ONE)
    assert isinstance(store.begin(ask(store, question="b"), serves=anything), Started)
    store.verify()


def test_a_recost_before_a_recovery_is_not_taken_back(store: Store) -> None:
    answered(store)
    wrong = store.recost(ACT, by_factor(4)).position
    store.witness([lost(store)])
    store.recover(Recovery(actor="steward", reason="why", unshown=TENTH))
    refused(lambda: store.recost(ACT, by_factor(1, corrects=wrong)), store, match="no longer be taken back")
    store.recost(ACT, by_factor(5))
    assert amounts(store) == (6 * TENTH, 0)


def test_costs_by_name_and_of_some_releases(store: Store) -> None:
    one, two = answered(store, "a"), answered(store, "b")
    done = store.recost(ACT, Recosting(mechanism=GEOMETRIC, cost=3 * TENTH, delta=7, only=(two,)))
    assert done.added == (Added(1, 2 * TENTH, 7),)
    (account,) = store.accounts()
    assert (account.spent, account.delta_spent, account.delta_excess) == (4 * TENTH, 7, 0)
    store.recost(ACT, Recosting(mechanism=GEOMETRIC, delta=10**7, only=(one,)))
    (account,) = store.accounts()
    assert account.delta_excess == 10**7 + 7 - 10**6
    refused(
        lambda: store.recost(ACT, Recosting(mechanism="gaussian", cost=ONE, only=(one,))),
        store,
        match="no release by gaussian that was charged: 2",
    )
    refused(lambda: store.recost(ACT, by_factor(4, only=(99, one))), store, match="that was charged: 99")
    store.verify()


@pytest.mark.parametrize(
    ("recosting", "match"),
    [
        (Recosting(mechanism="laplace", factor=Fraction(2)), "no mechanism of this name"),
        (Recosting(mechanism=GEOMETRIC), "say what it costs"),
        (Recosting(mechanism=GEOMETRIC, factor=Fraction(2), cost=ONE), "not by both"),
        (by_factor("1/2"), "below 1"),
        (by_factor(10**6), "more than a ledger can count"),
        (by_factor(80_000), "account 1 cannot count as much"),
        (by_factor(1), "nothing to recost"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_recosts_that_are_refused(store: Store, recosting: Recosting, match: str) -> None:
    answered(store, "a")
    answered(store, "b")
    refused(lambda: store.recost(ACT, recosting), store, match=match)


@settings(max_examples=25, deadline=None)
@given(
    charges=st.lists(st.integers(1, 10**12), min_size=1, max_size=4),
    factors=st.lists(st.fractions(1, 50, max_denominator=999), min_size=1, max_size=4),
)
def test_totals_are_the_recorded_charges_times_the_factor_rounded_up(
    tmp_path_factory: pytest.TempPathFactory, charges: list[int], factors: list[Fraction]
) -> None:
    """Whatever came before, what is spent is what the last recost says; between them nothing adds up."""
    store = signed_store(tmp_path_factory.mktemp("x") / "x.ledger", cap=UNITS_MAX)
    for place, cost in enumerate(charges):
        answered(store, str(place), cost=cost)
    last = None
    for factor in factors:
        with suppress(RequestError):
            last = store.recost(ACT, by_factor(str(factor), corrects=last)).position
        expected = sum(-(-cost * factor.numerator // factor.denominator) for cost in charges)
        assert amounts(store) == (expected, 0)
    store.verify()
    store.close()


def test_the_list_is_two_statements_and_reads_no_entry_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is counted, not timed: as many statements for many releases as for one, and nothing decoded."""
    statements, decoded = list[str](), list[bytes]()

    def decoding(body: bytes) -> Entry:
        decoded.append(body)
        return decode(body)

    monkeypatch.setattr(corrections, "decode", decoding)

    def count(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        counts = []
        for releases in (1, 20):
            for number in range(releases):
                answered(store, f"{releases}, {number}", cost=1)
            statements.clear()
            assert len(store.affected(by_factor(4)).releases) in (1, 21)
            counts.append(len(statements))
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    assert counts[0] == counts[1] <= 5  # two lists, what was recovered, and how a transaction begins and ends
    assert decoded == []


# ---- Closing ----


def test_a_closed_account_takes_nothing_more_and_keeps_what_it_has(store: Store) -> None:
    old, running = answered(store), started(store, question="b")
    waiting = reserved(store, question="c")
    done = store.close_account(ACT)
    assert (done.queued, [one.cap for one in done.caps]) == ((waiting,), [2 * TENTH])
    for wanted in (ask(store, question="d", cost=1), ask(store, fresh=True)):
        with pytest.raises(BudgetError, match=r"0 of 0\.2 is left"):
            store.begin(wanted, serves=anything)
    store.settle(running, answer=ANSWER)
    served = store.begin(ask(store), serves=anything)
    assert isinstance(served, Stored)
    assert served.request == old
    refused(lambda: store.close_account(ACT), store, match="closed already")
    row = row_of(store, done.position)
    assert (row.state, row.actor, row.reason) == ("cap", "steward", "because")
    store.move_cap(opening(), reason="opened again")
    assert isinstance(store.begin(ask(store, question="d"), serves=anything), Started)
    store.verify()


def test_a_closed_account_has_no_schedule_from_which_anything_could_be_drawn_or_given_back(store: Store) -> None:
    store.sign(opening(dataset="returns", contract="of returns", name="returns"))
    store.sign_schedule(scheduling(store, "a", "b", "c"))
    running = started(store, question="a", schedule=store.schedule("weekly").position)
    waiting = reserved(store, question="b", schedule=store.schedule("weekly").position)
    done = store.close_account(ACT, dataset="purchases")
    assert (done.queued, [one.cap for one in done.caps], done.left) == ((waiting,), [TENTH], ("weekly",))
    store.settle(running, answer=ANSWER)
    refused(lambda: store.leave_schedule("weekly", actor="bo", reason="why"), store, match="left before")
    for wanted in (ask(store, question="d", cost=1), ask(store, question="c")):
        with pytest.raises(BudgetError):
            store.begin(wanted, serves=anything)
    with pytest.raises(RequestError, match="was left"):
        store.begin(ask(store, question="c", schedule=store.schedule("weekly").position), serves=anything)
    store.verify()


def test_the_data_set_is_named_where_there_are_several(store: Store) -> None:
    store.sign(opening(dataset="returns", contract="of returns", name="returns"))
    refused(lambda: store.close_account(ACT), store, match="name the data set")
    refused(lambda: store.close_account(ACT, dataset="rentals"), store, match="no data set of this name")
    store.close_account(ACT, dataset="returns")
    assert [row.cap for row in store.accounts()] == [ONE, 0]
    assert isinstance(store.begin(ask(store), serves=anything), Started)


def test_several_accounts_are_recosted_and_closed_each_by_its_own(new_address: Callable[[], Address]) -> None:
    store = signed_store(new_address(), labels=("fit", "test"))
    store.settle(started(store, charges=(Charge(1, TENTH), Charge(2, 3 * TENTH))), answer=ANSWER)
    done = store.recost(ACT, by_factor(4))
    assert done.added == (Added(1, 3 * TENTH, 0), Added(2, 9 * TENTH, 0))
    assert [row.excess for row in store.accounts()] == [0, 2 * TENTH]
    assert row_of(store, 2).corrections[0].cost == 12 * TENTH, "told by the largest"
    assert [one.account for one in store.close_account(ACT).caps] == [1], "the other is overdrawn, and so closed"
    store.verify()


# ---- All at once ----


def race(address: Address, acts: list[Callable[[Store], object]]) -> None:
    """Each act in a thread of this process and in a process of its own, as often as it takes to meet."""

    def work(act: Callable[[Store], object]) -> None:
        store = open_ledger(address)
        for _ in range(5):
            with suppress(RequestError, BudgetError):
                act(store)
        store.close()

    children = [forked(lambda act=act: work(act)) for act in acts]  # type: ignore[misc]
    with ThreadPoolExecutor(len(acts)) as pool:
        list(pool.map(work, acts))
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_corrections_race_with_releases_and_each_other(store: Store, address: Address) -> None:
    """Every recost is done once, no release is recharged twice, and nothing is admitted on what is overdrawn."""
    one, two = answered(store, "a", cost=ONE // 100), answered(store, "b", cost=ONE // 100)
    store.close()
    numbers = iter(range(10**6))

    def release(store: Store) -> None:
        question = f"{os.getpid()} {next(numbers)}"
        store.settle(started(store, question=question, cost=ONE // 100), answer=ANSWER)

    race(
        address,
        [
            release,
            lambda store: store.recost(ACT, by_factor(4)),
            lambda store: store.supersede(ACT, request=one, by=two),
            lambda store: store.flag(ACT, entry=one),
            lambda store: store.amend(ACT, entry=two, field="title", text="Purchases"),
        ],
    )
    store = open_ledger(address)
    store.verify()
    chain = row_of(store, one).corrections
    assert [one.what for one in chain].count("supersede") == 1
    assert [one.what for one in chain].count("recost") == 1
    assert [one.what for one in chain].count("flag") == 10
    assert [one.text for one in row_of(store, two).corrections if one.what == "amend"] == ["Purchases"]
    entries = [decode(body) for body in store.entries()]
    listed = [total.request for entry in entries if isinstance(entry, Recost) for total in entry.totals]
    assert len(listed) == len(set(listed))
    rows = [row for row in store.history() if row.state == "settled"]
    now = {row.seq: max([row.charges[0].cost, *(one.cost or 0 for one in row.corrections)]) for row in rows}
    assert amounts(store) == (sum(now.values()), 0)
    assert len(rows) == 2 + 2 * 5


def test_a_close_races_with_releases_and_leaves_no_room(store: Store, address: Address) -> None:
    answered(store, "a")
    store.close()
    numbers = iter(range(10**6))

    def release(store: Store) -> None:
        question = f"{os.getpid()} {next(numbers)}"
        store.settle(started(store, question=question, cost=ONE // 1000), answer=ANSWER)

    race(address, [release, release, lambda store: store.close_account(ACT)])
    store = open_ledger(address)
    (account,) = store.accounts()
    assert account.spent == account.cap < ONE
    assert account.reserved == 0
    store.verify()


# ---- What is kept ----


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE corrections SET stands = 0 WHERE tag = 'supersede'",
        "DELETE FROM corrections WHERE tag = 'flag'",
        "UPDATE recosts SET cost = cost - 1",
        "DELETE FROM recosts",
        "UPDATE accounts SET spent = spent - 1",
    ],
)
def test_a_changed_table_is_found(store: Store, address: Address, statement: str) -> None:
    from parco.audit.verify import verify
    from parco.errors import VerificationError

    one, two = answered(store, "a", cost=TENTH, scale=10), answered(store, "b", cost=TENTH, scale=10)
    store.supersede(ACT, request=one, by=two)
    store.flag(ACT, entry=one)
    store.recost(ACT, by_factor(2))
    verify(store)
    store.close()
    harm(address, statement)
    for check in (store.verify, lambda: verify(store)):
        with pytest.raises(VerificationError, match="differ from what its entries add up to"):
            check()


def test_what_the_tables_show_is_what_the_entries_replay_to(store: Store) -> None:
    numbers = [answered(store, question) for question in "abc"]
    store.supersede(ACT, request=numbers[0], by=numbers[1])
    store.recost(ACT, by_factor(2))
    store.amend(ACT, entry=numbers[0], field="question", text=None)
    state = replay(store.entries())
    assert store.verify() == state
    assert state.replaced == {numbers[0]: numbers[1]}
    assert {number for number, _ in state.totals} == set(numbers)
