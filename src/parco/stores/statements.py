"""Statements that every release runs: made once, compiled once a dialect, and given to the driver itself.

SQLAlchemy writes the statement, so that it is the same for every database; its way to run one takes longer than the
database does. Values go in as the driver takes them (text, bytes, integers, None) and rows come out as its tuples. Who
listens for SQLAlchemy's event `before_cursor_execute` is told of these statements as well: so are faults put before
each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ClauseElement, ColumnElement, Connection, Dialect, Table, bindparam, insert, literal_column

__all__ = ["FEW", "ONE", "Insertion", "Prepared"]

ONE: ColumnElement[int] = literal_column("1")
"""Written out: a server makes a new plan whenever a LIMIT is a parameter."""

_CURSOR = "parco: cursor"

FEW = 4
"""Rows that one statement adds at most: as many as a release adds to a table."""

Values = Mapping[str, object]


class Prepared:
    """One statement, with the values that it has in itself."""

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, values: Values = {}) -> list[tuple[Any, ...]]:  # noqa: B006 - never changed
        """All its rows."""
        found: list[tuple[Any, ...]] = self._run(connection, values).fetchall()
        return found

    def count(self, connection: Connection, values: Values = {}) -> int:  # noqa: B006 - never changed
        """How many rows it changed; for one that stands in no `together`."""
        return int(self._run(connection, values).rowcount)

    def put(self, connection: Connection, values: Values) -> None:
        """Runs it; nothing is looked at but a fault."""
        self._run(connection, values)

    def counting(self, connection: Connection, values: Values) -> Callable[[], int]:
        """Runs it, and gives what tells how many rows it changed, behind the `together` that this stands in."""
        compiled = self._for(connection)
        cursor = _cursor(connection, compiled.text, own=True)
        cursor.execute(compiled.text, compiled.given(values))
        return lambda: int(cursor.rowcount)

    def put_all(self, connection: Connection, values: Sequence[Values]) -> None:
        """Runs it once for each; the values have the same names. For a file: a server would be asked as often."""
        compiled = self._for(connection)
        _cursor(connection, compiled.text).executemany(compiled.text, [compiled.given(one) for one in values])

    def _run(self, connection: Connection, values: Values) -> Any:  # noqa: ANN401 - a driver's cursor
        compiled = self._for(connection)
        cursor = _cursor(connection, compiled.text)
        cursor.execute(compiled.text, compiled.given(values))
        return cursor

    def _for(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        compiled = self._compiled.get(name)
        if compiled is None:
            compiled = self._compiled[name] = _Compiled(self._clause, connection.dialect)
        return compiled


class Insertion:
    """An INSERT of whole rows into a table: a few in one statement, many as the database takes them fastest."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._each = Prepared(insert(table))
        self._few: dict[int, Prepared] = {}

    def put(self, connection: Connection, *rows: Values) -> None:
        """Adds the rows, each with a value for every column; more than FEW in no `together`."""
        if len(rows) == 1:
            self._each.put(connection, rows[0])
        elif len(rows) <= FEW:
            values = {f"{name}_{place}": value for place, row in enumerate(rows) for name, value in row.items()}
            self._of(len(rows)).put(connection, values)
        elif connection.dialect.name == "postgresql":
            self._copy(connection, rows)
        else:
            self._each.put_all(connection, rows)

    def _copy(self, connection: Connection, rows: Sequence[Values]) -> None:
        names = [column.name for column in self._table.columns]
        text = f"COPY {self._table.name} ({', '.join(names)}) FROM STDIN"
        with _cursor(connection, text).copy(text) as copy:
            for row in rows:
                copy.write_row([row[name] for name in names])

    def _of(self, count: int) -> Prepared:
        if count not in self._few:
            columns = self._table.columns
            rows = [
                {column: bindparam(f"{column.name}_{place}", type_=column.type) for column in columns}
                for place in range(count)
            ]
            self._few[count] = Prepared(insert(self._table).values(rows))
        return self._few[count]


class _Compiled:
    """A statement as one driver takes it: SQLite's by place, psycopg's by name."""

    def __init__(self, clause: ClauseElement, dialect: Dialect) -> None:
        made: Any = clause.compile(dialect=dialect)
        self.text = str(made)
        self._names: Sequence[str] | None = made.positiontup
        self._own = {name: bind.effective_value for name, bind in made.binds.items() if not bind.required}

    def given(self, values: Values) -> Values | Sequence[object]:
        """The values in the driver's form."""
        all_values = {**self._own, **values} if self._own else values
        return all_values if self._names is None else [all_values[name] for name in self._names]


def _cursor(connection: Connection, text: str, *, own: bool = False) -> Any:  # noqa: ANN401 - a driver's cursor
    """The one cursor of a connection, since making one takes psycopg as long as a short statement; or another."""
    told = connection.engine.dispatch.before_cursor_execute
    if told:
        told(connection, None, text, None, None, False)
    kept = connection.info
    if own or _CURSOR not in kept:
        driver: Any = connection.connection.driver_connection
        cursor = driver.cursor()
        return cursor if own else kept.setdefault(_CURSOR, cursor)
    return kept[_CURSOR]
