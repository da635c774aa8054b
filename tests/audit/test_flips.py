"""One flipped bit anywhere in a ledger of forty entries: every one of them is found."""

from __future__ import annotations

import pickle
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from parco.audit import offline_life
from parco.audit.offline import CheckError
from parco.audit.verify import verify
from parco.errors import ParcoError
from parco.stores.keys import signature_holds
from parco.stores.sqlite import SqliteStore


class FastLedger(offline_life.Ledger):
    """The offline verifier with a faster library's Ed25519: a hundred thousand ledgers are checked here."""

    verify = staticmethod(signature_holds)


def is_found(state: bytes, lines: list[bytes]) -> bool:
    """Whether the rest of a ledger, after what `state` has taken, fails a check."""
    ledger = pickle.loads(state)  # noqa: S301 - our own
    try:
        for line in lines:
            ledger.feed(line)
        ledger.end()
    except CheckError:
        return True
    return False


def flipped(data: bytes) -> Iterator[bytes]:
    for place, byte in enumerate(data):
        for bit in range(8):
            yield data[:place] + bytes([byte ^ (1 << bit)]) + data[place + 1 :]


def test_every_flipped_bit_of_an_exported_ledger_is_found(lines: list[bytes]) -> None:
    """What stands before the flip is read once: no check looks back at it otherwise than through the ledger's state."""
    ledger, missed, tried = FastLedger(), [], 0
    for number, line in enumerate(lines):
        state = pickle.dumps(ledger)
        end = b"\n" if number + 1 < len(lines) else b""
        for bad in flipped(line + end):
            tried += 1
            rest = (bad + b"\n".join(lines[number + 1 :])).split(b"\n")
            if not is_found(state, rest):
                missed.append((number, bad))
        ledger.feed(line)
    ledger.end()
    assert not missed
    assert tried == 8 * (sum(map(len, lines)) + len(lines) - 1)


def test_the_offline_verifiers_own_ed25519_finds_flips_of_the_last_head(lines: list[bytes]) -> None:
    head, found = lines[-1], 0
    ledger = FastLedger()
    for line in lines[:-1]:
        ledger.feed(line)
    state = pickle.dumps(ledger)
    start = head.index(b'"signature":"') + len(b'"signature":"')
    for place in range(start, start + 128, 8):
        other = b"0" if head[place : place + 1] != b"0" else b"1"
        whole = pickle.loads(state)  # noqa: S301
        whole.__class__ = offline_life.Ledger
        whole.feed(head[:place] + other + head[place + 1 :])
        with pytest.raises(CheckError):
            whole.end()
        found += 1
    assert found == 16


# Whose values no entry and no head knows: who is answering a request, and the clock of that machine.
UNKNOWN = {"owners"}


def values(connection: sqlite3.Connection) -> Iterator[tuple[str, str, int, object]]:
    """Every value of every table: its table, column, row and itself."""
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    for (table,) in connection.execute(names).fetchall():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        for row in connection.execute(f"SELECT rowid, * FROM {table}").fetchall():
            for column, value in zip(columns, row[1:], strict=True):
                yield table, column, row[0], value


def harmed(value: object, chance: random.Random) -> object:
    """The same value with one bit flipped, or None where it cannot be, as in a text that would not be one."""
    if isinstance(value, int):
        return value ^ (1 << chance.randrange(40))
    if isinstance(value, bytes) and value:
        place = chance.randrange(len(value))
        return value[:place] + bytes([value[place] ^ (1 << chance.randrange(8))]) + value[place + 1 :]
    if isinstance(value, str) and value:
        place = chance.randrange(len(value))
        return value[:place] + chr(ord(value[place]) ^ (1 << chance.randrange(7))) + value[place + 1 :]
    return None


def _is_found(store: SqliteStore) -> bool:
    try:
        verify(store)
        store.check_sound()
    except ParcoError:
        return True
    return False


def harm(store: SqliteStore, *, table: str, column: str, row: int, value: object) -> bool:
    """Puts a value into a row past triggers and checks, as a disk would; False where an index already holds it."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        try:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        except sqlite3.IntegrityError:
            return False
    return True


@pytest.mark.parametrize("rows", [2, pytest.param(10**6, marks=pytest.mark.long)])
def test_a_flipped_bit_in_any_column_of_the_store_is_found(store: SqliteStore, rows: int) -> None:
    """One bit of some values, or of all of them, of each column of each table."""
    chance = random.Random(rows)
    with closing(sqlite3.connect(store.path)) as connection:
        every = [one for one in values(connection) if one[0] not in UNKNOWN]
    chance.shuffle(every)
    whole, missed, tried = store.path.read_bytes(), [], Counter[str]()
    for table, column, row, value in every:
        bad = harmed(value, chance)
        if bad is None or tried[f"{table}.{column}"] == rows:
            continue
        store.path.write_bytes(whole)
        if harm(store, table=table, column=column, row=row, value=bad):
            tried[f"{table}.{column}"] += 1
            if not _is_found(store):
                missed.append((table, column, row))
    assert not missed
    assert len(tried) > 45
