"""When a ledger may not be spent from: it signed a head that it does not extend, so some of its past is lost.

Nothing that was released can be called back, but what it cost is no longer counted. So nothing is begun until
`parco ledger recover` has charged it again. What was begun may end, and what is stored may be read.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from parco.errors import HaltedError, VerificationError
from parco.ledger.heads import Head
from parco.stores import heads, keys, tables
from parco.stores.append import note_trust

__all__ = ["answered", "check", "is_stray", "note", "own", "trusted"]

_STRAYS = tables.strays.c
_RECOVER = "nothing is released until `parco ledger recover` has charged what the receipts of the lost releases show"


def check(size: int | None) -> None:
    """Raises HaltedError while a head is known that this ledger signed, does not extend, and has not answered for.

    `size` is that of such a head (`heads.Standing.halting`).
    """
    if size is not None:
        raise HaltedError(
            f"this ledger does not extend its own head of {size} entries, which was seen outside: it is an old copy, or"
            f" its past was changed; {_RECOVER}",
            size=size,
        )


def trusted(connection: Connection, head: Head | None, mark: Head | None) -> HaltedError | None:
    """What is wrong with a ledger at `head` whose mark says `mark`; None where the mark says nothing against it.

    A mark that cannot be read or is not signed says nothing.
    """
    if mark is None or mark == head or not keys.verified(mark):
        return None
    if not keys.known(connection, mark.key):
        return HaltedError(
            "another ledger stood in this place, as the file of heads that this host keeps of it shows: put that ledger"
            " back; or, if this is meant to be a new ledger, with a budget of its own, give it another name",
            size=mark.size,
        )
    if not is_stray(connection, mark):
        return None
    return HaltedError(
        f"this ledger does not extend its own head of {mark.size} entries, which is in the file of heads that this host"
        f" keeps of it: it is an old copy, or its past was changed; {_RECOVER}",
        size=mark.size,
    )


def is_stray(connection: Connection, head: Head) -> bool:
    """Whether a head that this ledger signed is neither extended by it nor answered for."""
    return not heads.extends(connection, head) and not answered(connection, head)


def answered(connection: Connection, head: Head) -> bool:
    """Whether a `recover` entry has answered for a head that the ledger does not extend."""
    found = select(_STRAYS.root).where(_STRAYS.root == head.root, _STRAYS.recovered.is_not(None))
    return connection.scalar(found) is not None


def own(connection: Connection, head: Head) -> Head:
    """The same head, or VerificationError if it is not signed, or by a key that this ledger never had."""
    if not keys.verified(head):
        raise VerificationError(f"the head of {head.size} entries is not signed by its key: it is no ledger's")
    if not keys.known(connection, head.key):
        raise VerificationError(
            f"the head of {head.size} entries is signed by a key that this ledger never had: it is another ledger's, or"
            " this ledger was replaced by another",
            size=head.size,
        )
    return head


def note(connection: Connection, head: Head) -> bool:
    """Halts the ledger if it signed the head, does not extend it and has not answered for it; False if so.

    VerificationError for a head that is not this ledger's.
    """
    if not is_stray(connection, own(connection, head)):
        return True
    note_trust(connection)
    if connection.scalar(select(_STRAYS.root).where(_STRAYS.root == head.root)) is None:
        connection.execute(insert(tables.strays).values(root=head.root, size=head.size))
    return False
