"""How a ledger is corrected, and how its corrections are read: the same for every store."""

from __future__ import annotations

from parco.stores import chains, corrections, reading
from parco.stores.durable import durable
from parco.stores.records import Act, Closed, Correction, HistoryRow, Recosted, Recosting
from parco.stores.witnessed import Witnessed

__all__ = ["Corrected"]


class Corrected(Witnessed):
    """A store's corrections. Each is one transaction; what was corrected stays as it is, and can be read and proven.

    A ledger that lost some of its past takes none: their numbers could mean other entries.
    """

    @durable
    def amend(self, act: Act, *, entry: int, field: str, text: str | None) -> int:
        """Says how a text of an entry is to be read, or with None erases it for good; returns the entry that says so.

        field: one of `entries.FIELDS`. RequestError where there is no such text, or it reads so already.
        """
        return self._write(
            lambda connection: corrections.amend(connection, act, entry=entry, field=field, text=text), spends=True
        )

    @durable
    def supersede(self, act: Act, *, request: int, by: int | None) -> int:
        """Replaces an answer by another, withdraws it (None), or lets it stand again (by itself); returns the entry."""
        return self._write(
            lambda connection: corrections.supersede(connection, act, request=request, by=by), spends=True
        )

    @durable
    def recost(self, act: Act, recosting: Recosting) -> Recosted:
        """Charges every affected release what it is now known to cost; accounts may be overdrawn by it."""
        return self._write(lambda connection: corrections.recost(connection, act, recosting), spends=True)

    @durable
    def flag(self, act: Act, *, entry: int) -> int:
        """Puts a remark, its reason, on an entry; returns the entry that says so."""
        return self._write(lambda connection: corrections.flag(connection, act, entry=entry), spends=True)

    @durable
    def close_account(self, act: Act, *, dataset: str | None = None) -> Closed:
        """Lowers the caps of a data set to what is spent or reserved; nothing more is released from it."""
        return self._write(lambda connection: corrections.close(connection, act, dataset=dataset), spends=True)

    def affected(self, recosting: Recosting) -> Recosted:
        """What `recost` would do; nothing is changed."""
        with self._reading() as connection:
            return corrections.affected(connection, recosting)

    def corrections(self, about: int, *, until: int | None = None) -> tuple[Correction, ...]:
        """What corrects an entry or release, oldest first, up to entry `until`."""
        with self._reading() as connection:
            return chains.chain_of(connection, about, until=until)

    def added_since(self, *, after: int, until: int | None = None) -> dict[int, tuple[int, int]]:
        """What recosts behind entry `after`, up to `until`, added to accounts, by their number: cost and delta."""
        with self._reading() as connection:
            return chains.added_since(connection, after=after, until=until)

    def row(self, seq: int) -> HistoryRow:
        """The history's row of one entry or release; RequestError if there is none."""
        with self._reading() as connection:
            return reading.history_row(connection, seq)
