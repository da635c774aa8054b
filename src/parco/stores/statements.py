"""Statements that every release runs: made once, compiled once a dialect, and given to the driver itself.

SQLAlchemy writes the statement, so that it is the same for every database; its way to run one takes longer than the
database does. Values go in as the driver takes them (text, bytes, integers, None) and rows come out as its tuples. Who
listens for SQLAlchemy's event `before_cursor_execute` is told of these statements as well: so are faults put before
each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ClauseElement, Connection, Dialect

__all__ = ["Prepared"]

Values = Mapping[str, object]


class Prepared:
    """One statement, with the values that it has in itself."""

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, values: Values = {}) -> Any:  # noqa: ANN401, B006 - a driver's cursor; never changed
        """The cursor, whose rows and `rowcount` are there at once, or behind the `together` that this stands in."""
        compiled = self._for(connection)
        return _driver(connection, compiled.text).execute(compiled.text, compiled.given(values))

    def rows(self, connection: Connection, values: Values = {}) -> list[tuple[Any, ...]]:  # noqa: B006 - never changed
        """All rows at once."""
        found: list[tuple[Any, ...]] = self.run(connection, values).fetchall()
        return found

    def run_all(self, connection: Connection, values: Sequence[Values]) -> None:
        """Runs it once for each; the values have the same names."""
        if len(values) == 1:
            self.run(connection, values[0])
            return
        compiled = self._for(connection)
        cursor = _driver(connection, compiled.text).cursor()
        cursor.executemany(compiled.text, [compiled.given(one) for one in values])

    def _for(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        compiled = self._compiled.get(name)
        if compiled is None:
            compiled = self._compiled[name] = _Compiled(self._clause, connection.dialect)
        return compiled


class _Compiled:
    """A statement as one driver takes it: SQLite's by place, psycopg's by name."""

    def __init__(self, clause: ClauseElement, dialect: Dialect) -> None:
        made: Any = clause.compile(dialect=dialect)
        self.text = str(made)
        self._names: Sequence[str] | None = made.positiontup
        self._own = {name: value for name, value in made.params.items() if value is not None}

    def given(self, values: Values) -> Values | Sequence[object]:
        """The values in the driver's form."""
        all_values = {**self._own, **values} if self._own else values
        return all_values if self._names is None else [all_values[name] for name in self._names]


def _driver(connection: Connection, text: str) -> Any:  # noqa: ANN401 - a driver's connection
    told = connection.engine.dispatch.before_cursor_execute
    if told:
        told(connection, None, text, None, None, False)
    return connection.connection.driver_connection
