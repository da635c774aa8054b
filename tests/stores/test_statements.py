"""Statements given to the driver itself: the same rows in every database, however many, and none that goes unheard."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from sqlalchemy import Engine, bindparam, event, func, select, update

from parco.stores import tables
from parco.stores.statements import FEW, Insertion, Prepared

from .build import Address, signed_store

NASTY = ("", "tab\tand\nline", "back\\slash \\N \\. end", "'quoted\" $1 %s :x", "Ünïcödé \U0001f512", "x" * 5000)
_TEXTS = Insertion(tables.texts)
_READ = Prepared(
    select(tables.texts.c.digest, tables.texts.c.salt, tables.texts.c.text, tables.texts.c.lookup)
    .where(tables.texts.c.digest >= bindparam("least"))
    .order_by(tables.texts.c.digest)
)
_COUNT = Prepared(select(func.count()).select_from(tables.texts))
_ERASE = Prepared(
    update(tables.texts).where(tables.texts.c.digest == bindparam("named")).values(salt=None, text=None, lookup=None)
)


def rows(count: int) -> list[dict[str, Any]]:
    made = []
    for number in range(count):
        digest = hashlib.sha256(bytes([number])).hexdigest()
        text = NASTY[number % len(NASTY)]
        erased = {"salt": None, "text": None, "lookup": None}
        kept = {"salt": bytes([0, 92, number, 255]), "text": text, "lookup": digest[::-1]}
        made.append({"digest": digest, **(erased if number % 7 == 6 else kept)})
    return made


@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1, 60])
def test_rows_come_back_as_they_went_in(address: Address, count: int) -> None:
    store, made = signed_store(address), rows(count)
    with store._writing() as connection:
        before = _COUNT.rows(connection)[0][0]
        _TEXTS.put(connection, *made)
        found = {row[0]: row for row in _READ.rows(connection, {"least": ""})}
        assert _COUNT.rows(connection) == [(before + count,)]
        assert all(found[one["digest"]] == tuple(one.values()) for one in made)
        assert _ERASE.count(connection, {"named": made[0]["digest"]}) == 1
        assert _ERASE.count(connection, {"named": "nobody"}) == 0


def test_whoever_listens_to_sqlalchemy_hears_of_each(address: Address) -> None:
    """So the faults of `test_fault_points` come before these statements as well."""
    heard: list[str] = []

    def listen(*told: Any) -> None:
        heard.append(told[2])

    store = signed_store(address)
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        with store._writing() as connection:
            for count in (1, FEW, 9):
                _TEXTS.put(
                    connection,
                    *({**one, "digest": f"{count}{one['digest'][1:]}"} | _own(count, one) for one in rows(count)),
                )
            _COUNT.rows(connection)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    assert sum("texts" in statement for statement in heard) == 4


def _own(count: int, row: dict[str, Any]) -> dict[str, Any]:
    return {} if row["lookup"] is None else {"lookup": f"{count}{row['lookup'][1:]}"}
