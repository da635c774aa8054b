"""Correcting what a ledger says: by a session, with its actor, or by whoever keeps the ledger, without any data.

Nothing is changed by it: a correction is an entry of its own, with actor and reason, and what it corrects can be read
and proven as before. Releases are named by their entry, as receipts and `parco history` show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from parco.contract.fields import label, plain
from parco.errors import RequestError
from parco.ledger import points
from parco.measure import Exactable, delta_units_ceil, exact, units_ceil
from parco.session.actor import default_actor

if TYPE_CHECKING:
    from types import TracebackType

    from parco.stores.records import AccountRow, Act, Closed, Correction, HistoryRow, Recosted, Stored
    from parco.stores.store import Store

__all__ = ["Correcting", "Ledger", "Standing"]

T = TypeVar("T")

_TEXT_LENGTH_MAX = 2000


@dataclass(frozen=True)
class Standing:
    """A release or an act of a ledger: its row of the history, corrections among it, and what was answered, if it was.

    The answer is checked against the digest in its entry: these are the very bytes that were stored.
    """

    row: HistoryRow
    answer: Stored | None


class Correcting:
    """What a session and a `Ledger` can correct. Each method returns when it is durable; RequestError if it is refused.

    A text is 1 to 2,000 characters; every correction has a reason.
    """

    _store: Store
    actor: str

    def amend(self, entry: int, field: str, text: str | None = None, *, reason: str, erase: bool = False) -> int:
        """For every text of an entry, says how it is to be read, or erases it for good; returns the entry that says so.

        field: `actor`, `key`, `question` or `reason`, where the entry has one; or `title` or `note`, which it gets so.
        Digests and proofs stand. An erased text is gone wherever equal text was given, with all that it was amended
        to; answers to an erased question can still be shown, and are no longer found.
        """
        if (text is None) != erase:
            raise RequestError("say how the text is to be read, or that it is to be erased: one of them")
        act, number = self._act(reason), _number(entry, "entry")
        new = None if text is None else _text(text, "text")
        return _marked(lambda: self._store.amend(act, entry=number, field=field, text=new))

    def supersede(self, release: int, by: int | None = None, *, reason: str, withdraw: bool = False) -> int:
        """For every answered release, puts another in its place, or with `withdraw` none; returns the entry.

        By itself, it stands again. What was superseded is shown as before, and no longer served for its question.
        """
        if (by is None) != withdraw:
            raise RequestError("name the release that stands instead, or say that it is withdrawn: one of them")
        act, number = self._act(reason), _number(release, "release")
        other = None if by is None else _number(by, "by")
        return _marked(lambda: self._store.supersede(act, request=number, by=other))

    def recost(
        self,
        mechanism: str,
        *,
        reason: str = "",
        factor: Exactable | None = None,
        cost: Exactable | None = None,
        delta: Exactable | None = None,
        only: Sequence[int] | None = None,
        corrects: int | None = None,
        dry_run: bool = False,
    ) -> Recosted:
        """For every release by an under-charged mechanism, charges what it costs in all; returns which, and what.

        factor: so many times the recorded cost, at least 1, rounded up; or `cost`, and `delta`, of each release in its
        account's measure. only: these releases. corrects: an earlier recost that stated too much; totals may then fall
        again, never below what was charged. Accounts may be overdrawn by it, and then take no more spending; requests
        that wait for their start are given back. dry_run: only says what it would do, and takes no reason.
        """
        from parco.stores.records import Recosting

        wanted = Recosting(
            mechanism=mechanism,
            factor=None if factor is None else exact(factor, "factor"),
            cost=None if cost is None else units_ceil(exact(cost, "cost")),
            delta=None if delta is None else delta_units_ceil(exact(delta, "delta")),
            only=None if only is None else tuple(_number(one, "only") for one in only),
            corrects=None if corrects is None else _number(corrects, "corrects"),
        )
        if dry_run:
            return self._store.affected(wanted)
        act = self._act(reason)
        return _marked(lambda: self._store.recost(act, wanted))

    def flag(self, entry: int, *, reason: str) -> int:
        """For every release, act or correction, puts a remark on it, the reason; returns the entry that says so."""
        act, number = self._act(reason), _number(entry, "entry")
        return _marked(lambda: self._store.flag(act, entry=number))

    def close_account(self, dataset: str | None = None, *, reason: str) -> Closed:
        """For every data set, lowers the caps of its accounts to what is spent or reserved: nothing more is released.

        Its schedules are left. Entries, answers and receipts stay. dataset: its name; None where the ledger has one.
        """
        act = self._act(reason)
        return _marked(lambda: self._store.close_account(act, dataset=dataset))

    def show(self, entry: int) -> Standing:
        """A release or act with its corrections, oldest first, and with the very answer that was stored."""
        row = self._store.row(_number(entry, "entry"))
        return Standing(row, self._store.stored(row.seq) if row.state == "settled" else None)

    def corrections(self, entry: int) -> tuple[Correction, ...]:
        """What corrects a release, act or correction, oldest first, each with what corrects it in turn."""
        return self._store.corrections(_number(entry, "entry"))

    def _act(self, reason: str) -> Act:
        from parco.stores.records import Act

        return Act(actor=self.actor, reason=_text(reason, "reason"))


class Ledger(Correcting):
    """A ledger in the hands of whoever keeps it: no contract, no data, no releases. A context manager.

    address: the ledger's file, or the postgresql:// URL of a database. actor: who acts, by default the login name.
    Raises NotSignedError if there is none, StorageError.
    """

    def __init__(self, address: str | Path, *, actor: str | None = None) -> None:
        from parco.stores.address import open_ledger

        self.actor = label(default_actor() if actor is None else actor, "actor")
        self._store = open_ledger(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes this thread's connection; a ledger that is used again opens another."""
        self._store.close()

    def accounts(self) -> list[AccountRow]:
        """All accounts as they stand."""
        return self._store.accounts()

    def history(self) -> list[HistoryRow]:
        """All acts and releases with their corrections, in the order of the ledger."""
        return self._store.history()


def _marked(act: Callable[[], T]) -> T:
    points.reach("before-correction")
    done = act()
    points.reach("after-correction")
    return done


def _text(text: str, what: str) -> str:
    if not isinstance(text, str) or not 0 < len(text) <= _TEXT_LENGTH_MAX:
        raise RequestError(f"{what}: give a text of 1 to {_TEXT_LENGTH_MAX} characters")
    try:
        return plain(text)
    except ValueError:
        raise RequestError(f"{what}: control characters and line breaks are refused") from None


def _number(number: int, what: str) -> int:
    if type(number) is not int or number < 1:
        raise RequestError(f"{what}: name it by its entry, a number from 1 on, as `parco history` shows it")
    return number
