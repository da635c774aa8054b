"""Statements that every release runs: made once, compiled once a dialect, and given to the driver itself.

SQLAlchemy writes the statement, so that it is the same for every database; its way to run one takes longer than the
database does. Values go in as the driver takes them (text, bytes, integers, None) and rows come out as its tuples. Who
listens for SQLAlchemy's event `before_cursor_execute` is told of these statements as well: so are faults put before
each of them. What stands in a `together` is one statement for a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import (
    ClauseElement,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
    Table,
    bindparam,
    insert,
    literal_column,
)

from parco.errors import InternalError

__all__ = ["FEW", "ONE", "Ahead", "Change", "Insertion", "Prepared", "foresee", "foreseen", "together"]

ONE: ColumnElement[int] = literal_column("1")
"""Written out: a server makes a new plan whenever a LIMIT is a parameter."""

_LINE = "parco: line to the driver"

FEW = 4
"""Rows that one statement adds at most: as many as a release adds to a table."""

Values = Mapping[str, object]


@contextmanager
def together(connection: Connection) -> Iterator[None]:
    """Statements inside, none of whose rows is looked at, reach a server as one; a file is given each as it comes.

    They see the database as it was before all of them, and their constraints are checked behind all of them.
    """
    if connection.dialect.name != "postgresql":
        yield
        return
    line = _line(connection)
    line.waiting = waiting = list[_Waiting]()
    try:
        yield
    finally:
        line.waiting = None
    if waiting:
        _send(connection, line, waiting)


def foresee(connection: Connection, ahead: Sequence[Ahead]) -> None:
    """What the next transaction will ask first: a server is asked together with its beginning."""
    line = _line(connection)
    line.foreseen = [(one._for(line).text, one._for(line).named(values)) for one, values in ahead]


def foreseen(connection: Connection) -> Sequence[tuple[str, Values]]:
    """The same as the driver takes it, for the transaction that begins now."""
    line = _line(connection)
    ahead, line.foreseen = line.foreseen, ()
    return ahead


class Prepared:
    """One statement, with the values that it has in itself."""

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, values: Values = {}) -> list[tuple[Any, ...]]:  # noqa: B006 - never changed
        """All its rows."""
        found: list[tuple[Any, ...]] = self._looked_at(connection, values).fetchall()
        return found

    def count(self, connection: Connection, values: Values = {}) -> int:  # noqa: B006 - never changed
        """How many rows it changed; for one that stands in no `together`."""
        return int(self._looked_at(connection, values).rowcount)

    def put(self, connection: Connection, values: Values) -> None:
        """Runs it; nothing is looked at but a fault."""
        line = _line(connection)
        if line.waiting is None:
            self._run(connection, line, values)
        else:
            line.waiting.append(_Waiting(self._for(line), values))

    def put_one(self, connection: Connection, values: Values, *, otherwise: Exception) -> None:
        """Runs it, and raises `otherwise` unless it changes one row: by the next statement that is looked at, or the
        commit. One of them at most stands in a `together`.
        """
        line, check = _line(connection), _exactly_one(otherwise)
        if line.waiting is None:
            check(self.count(connection, values))
        else:
            line.waiting.append(_Waiting(self._for(line), values, check))

    def text(self, connection: Connection) -> str:
        """The statement as the driver takes it."""
        return self._for(_line(connection)).text

    def count_each(self, connection: Connection, values: Iterable[Values]) -> int:
        """Runs it once for each, and counts the rows it changed in all; a server would be asked as often.

        Not by `executemany`: in a cursor that is kept, one during which the disk fails makes CPython's sqlite3 crash
        later (seen with 3.11).
        """
        line, changed = _line(connection), 0
        compiled = self._for(line)
        line.tell(connection, compiled.text)
        for one in values:
            line.cursor.execute(compiled.text, compiled.given(one))
            changed += line.cursor.rowcount
        return changed

    def _looked_at(self, connection: Connection, values: Values) -> Any:  # noqa: ANN401 - a driver's cursor
        line = _line(connection)
        if line.waiting is not None:
            raise InternalError("a statement whose rows are looked at stands among those that are sent together")
        self._run(connection, line, values)
        return line.cursor

    def _run(self, connection: Connection, line: _Line, values: Values) -> None:
        compiled = self._for(line)
        line.tell(connection, compiled.text)
        line.cursor.execute(compiled.text, compiled.given(values))

    def _for(self, line: _Line) -> _Compiled:
        dialect = line.engine.dialect
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _Compiled(self._clause, dialect)
        return compiled


class Change:
    """An UPDATE of rows by their `number`, however many: a file runs `each`, a server `listed`, by all `numbers`."""

    def __init__(self, *, each: ClauseElement, listed: ClauseElement) -> None:
        self._each, self._listed = Prepared(each), Prepared(listed)

    def count(self, connection: Connection, numbers: Sequence[int], values: Values) -> int:
        """How many rows it changed; `values` are the same for all."""
        if not numbers:
            return 0
        if connection.dialect.name == "postgresql":
            return self._listed.count(connection, {"numbers": numbers, **values})
        return self._each.count_each(connection, ({"number": number, **values} for number in numbers))


class Insertion:
    """An INSERT of whole rows into a table: a few in one statement, many as the database takes them fastest."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._each = Prepared(insert(table))
        self._names = [column.name for column in table.columns]
        self._few: dict[int, Prepared] = {}

    def put(self, connection: Connection, *rows: Values) -> None:
        """Adds the rows, each with a value for every column; more than FEW in no `together`."""
        if len(rows) == 1:
            self._each.put(connection, rows[0])
        elif len(rows) <= FEW:
            values = {f"{name}_{place}": value for place, row in enumerate(rows) for name, value in row.items()}
            self._of(len(rows)).put(connection, values)
        else:
            names = self._names
            self.stream(connection, (tuple([row[name] for name in names]) for row in rows))

    def stream(self, connection: Connection, rows: Iterable[Sequence[object]]) -> None:
        """Adds rows, the values of each in the order of the columns, in no `together`.

        Each is taken when its turn comes, so that a server adds some while the next are made.
        """
        names, line = self._names, _line(connection)
        if connection.dialect.name != "postgresql":
            text = self._each.text(connection)
            line.tell(connection, text)
            execute = line.cursor.execute
            for row in rows:
                # As in `count_each`.
                execute(text, row)
            return
        text = f"COPY {self._table.name} ({', '.join(names)}) FROM STDIN"
        line.tell(connection, text)
        with line.cursor.copy(text) as copy:
            for row in rows:
                copy.write_row(row)

    def _of(self, count: int) -> Prepared:
        if count not in self._few:
            columns = self._table.columns
            rows = [
                {column: bindparam(f"{column.name}_{place}", type_=column.type) for column in columns}
                for place in range(count)
            ]
            self._few[count] = Prepared(insert(self._table).values(rows))
        return self._few[count]


Ahead: TypeAlias = tuple[Prepared, Values]
"""A statement that will be run with these values."""


class _Compiled:
    """A statement as one driver takes it: SQLite's by place, psycopg's by name."""

    def __init__(self, clause: ClauseElement, dialect: Dialect) -> None:
        made: Any = clause.compile(dialect=dialect)
        self.text = str(made)
        self._names: Sequence[str] | None = made.positiontup
        self._own = {name: bind.effective_value for name, bind in made.binds.items() if not bind.required}

    def given(self, values: Values) -> Values | Sequence[object]:
        """The values in the driver's form."""
        all_values = self.named(values)
        return all_values if self._names is None else [all_values[name] for name in self._names]

    def named(self, values: Values) -> Values:
        """The values by their names, and its own."""
        return {**self._own, **values} if self._own else values


@dataclass
class _Waiting:
    """A statement that waits for those that it is sent with; `check` is told how many rows it changed."""

    compiled: _Compiled
    values: Values
    check: Callable[[int], None] | None = None


@dataclass
class _Line:
    """The one cursor of a connection, which its option `cursor` makes if it has one; and what waits to be sent."""

    engine: Engine
    cursor: Any
    waiting: list[_Waiting] | None = None
    foreseen: Sequence[tuple[str, Values]] = ()

    def tell(self, connection: Connection, text: str) -> None:
        """To be called before each statement, for those who listen."""
        told = self.engine.dispatch.before_cursor_execute
        if told:
            told(connection, None, text, None, None, False)


def _line(connection: Connection) -> _Line:
    kept = connection.info
    line: _Line | None = kept.get(_LINE)
    if line is None:
        driver: Any = connection.connection.driver_connection
        own = connection.get_execution_options().get("cursor")
        line = kept[_LINE] = _Line(connection.engine, driver.cursor() if own is None else own(driver))
    return line


def _send(connection: Connection, line: _Line, waiting: Sequence[_Waiting]) -> None:
    # What is checked comes last: of a statement in WITH, nobody is told how many rows it changed.
    order = sorted(waiting, key=lambda one: one.check is not None)
    if sum(one.check is not None for one in order) > 1:
        raise InternalError("of statements that are sent together, one at most is checked")
    text = _joined(tuple(one.compiled.text for one in order))
    values = {
        f"{name}_{place}": value
        for place, one in enumerate(order)
        for name, value in one.compiled.named(one.values).items()
    }
    line.tell(connection, text)
    line.cursor.put(text, values, check=order[-1].check)


def _exactly_one(otherwise: Exception) -> Callable[[int], None]:
    def check(changed: int) -> None:
        if changed != 1:
            raise otherwise

    return check


@lru_cache(maxsize=64)
def _joined(texts: tuple[str, ...]) -> str:
    """Statements as one, the last one behind the others; the names of their values have their place behind them."""
    *before, last = (_NAMED.sub(rf"%(\g<1>_{place})s", text) for place, text in enumerate(texts))
    named = ", ".join(f"part_{place} AS ({text})" for place, text in enumerate(before))
    return f"WITH {named} {last}" if before else last


_NAMED = re.compile(r"%\((\w+)\)s")
