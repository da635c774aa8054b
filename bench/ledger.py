"""What the ledger costs beside the bare database that keeps it, in one run: `make bench`.

With `--write` the table goes to `docs/bench.md`, under "Ledger".

Each figure is a ratio of medians, measured turn by turn so that a busy machine slows both sides alike:

    release      begin and settle, without the data, over two bare durable commits of the same rows
    repeat       a stored answer found again and counted, over one bare durable commit
    refused      a request beyond the budget, over one bare durable commit
    recovery     opening a ledger full of requests whose owners are gone, over reading its entries
    verify       all named checks of a ledger of releases, over parsing and hashing the same lines
    recost list  what a recost would charge each release of a ledger of 100,000 entries, over parsing those entries

A bare commit writes the rows of a release into the tables of another ledger, with the same settings, by the driver
alone: what has to be written in any case. PostgreSQL is measured where this machine has a server to start. What an
inclusion proof weighs at a million entries is computed, not measured.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console
from sqlalchemy import Connection, insert, update

from accounting_report import write_section
from machine import duration, machine
from parco.audit.verify import verify
from parco.errors import BudgetError
from parco.ledger.entries import Charge, MechanismFacts, Reserve, SensitivityFacts, Start, decode
from parco.ledger.merkle import inclusion_path
from parco.measure import Measure
from parco.stores import connection, tables
from parco.stores.address import create_or_open_ledger, is_url, open_ledger
from parco.stores.append import append_all
from parco.stores.owner import current_owner
from parco.stores.records import Opening, Recosting, Request, Started
from parco.stores.store import Store

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgres import Server, programs

TURNS, OPEN = 40, 100_000
VERIFIED, VERIFYING_TURNS = 1_500, 5
RECOSTED, RECOSTING_TURNS = 33_333, 5
PROVEN = 1_000_000
ANSWER = b'{"cells":[1,2,3,4,5,6,7,8,9,10,11,12],"parco":"0.1.0"}'

# What is wanted of each figure at most, where something is.
WANTED = {"release": "1.5", "repeat": "0.5", "recovery": "2", "verify": "6"}
STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}

Job = Callable[[], object]
Row = tuple[str, str, float, float]


def main() -> None:
    """Measures, prints the table, and writes it where that is asked for."""
    chosen = _arguments()
    console, rows = Console(), list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        names = count()
        rows += _measured("sqlite", lambda: Path(folder) / f"{next(names)}.ledger")
    binaries = programs()
    if binaries is None:
        console.print("PostgreSQL is left out: there is no server on this machine")
    else:
        server = Server(binaries)
        try:
            rows += _measured("postgres", lambda: server.url(server.ledger()))
        finally:
            server.remove()
    text = _markdown(rows, machine("parco", "sqlalchemy", "psycopg"))
    print(text)
    if chosen.write:
        write_section(Path(__file__).parents[1] / "docs" / "bench.md", "Ledger", text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help='write the table to docs/bench.md, under "Ledger"')
    return parser.parse_args()


def _measured(kind: str, new_place: Callable[[], str | Path]) -> Iterator[Row]:
    for what, ours, beside in _figures(new_place):
        yield kind, what, ours, beside


def _markdown(rows: Sequence[Row], told: str) -> str:
    """The table, with what it was measured on, and the weight of a proof."""
    head = (
        f"{told}. By `bench/ledger.py`, which says what stands beside what; medians of {TURNS} turns, recovery of"
        f" {OPEN:,} requests once, {VERIFIED:,} releases verified."
    )
    lines = ["| store | what | parco | beside it | ratio | wanted |", "|---|---|--:|--:|--:|--:|"]
    for kind, what, ours, beside in rows:
        figures = f"{duration(ours)} | {duration(beside)} | {ours / beside:.2f} | {WANTED.get(what, '')}"
        lines.append(f"| {STORES[kind]} | {what} | {figures} |")
    proof = f"The path of an inclusion proof at {PROVEN:,} entries is at most {_path_bytes()} bytes."
    over = [
        f"{what} on {STORES[kind]}"
        for kind, what, ours, beside in rows
        if ours / beside > float(WANTED.get(what, "inf"))
    ]
    missed = f" Not reached: {', '.join(over)}." if over else ""
    return "\n\n".join((head, "\n".join(lines), proof + missed)) + "\n"


def _figures(new_place: Callable[[], str | Path]) -> Iterator[tuple[str, float, float]]:
    store = _signed(new_place())
    template = _template(store)
    requests = iter([replace(template, question=f"question {number}") for number in range(TURNS + 1)])

    def release() -> None:
        outcome = store.begin(next(requests), serves=_any)
        store.settle(_started(outcome), answer=ANSWER)

    def repeat() -> None:
        store.repeated(store.answers("question 0")[0].request)

    def refused() -> None:
        try:
            store.begin(replace(template, question="too much", charges=(Charge(1, 10**18),)), serves=_any)
        except BudgetError:
            return
        raise TypeError("it should have been refused")

    release()
    place = new_place()
    _signed(place).close()
    bare = _Bare(place, list(store.entries())[1:])
    yield "release", *_medians(release, bare.release)
    yield "repeat", *_medians(repeat, bare.begin)
    yield "refused", *_medians(refused, bare.begin)
    yield "recovery", *_recovery(new_place())
    yield "verify", *_verifying(new_place())
    yield "recost list", *_recosting(new_place())


def _signed(place: str | Path) -> Store:
    store = create_or_open_ledger(place)
    store.sign(
        Opening(
            actor="ana",
            name="bench",
            dataset="bench",
            contract="the contract",
            terms="the terms",
            measure=Measure.PURE,
            cap=10**17,
            delta_cap=0,
        )
    )
    return store


def _template(store: Store) -> Request:
    return Request(
        actor="ana",
        question="",
        contract=store.signed("bench", "bench").contract,
        mechanism=MechanismFacts("two-sided-geometric", Fraction(10), Fraction(1)),
        sensitivity=SensitivityFacts(Fraction(1), Fraction(1)),
        cells=12,
        charges=(Charge(1, 1),),
    )


def _any(_: object) -> bool:
    return True


def _started(outcome: object) -> int:
    if not isinstance(outcome, Started):
        raise TypeError(outcome)
    return outcome.request


class _Bare:
    """The rows of a release in two durable transactions, by the driver alone; `bodies` are its three entries."""

    def __init__(self, place: str | Path, bodies: Sequence[bytes]) -> None:
        self._execute, self._mark = _driver(place)
        self._bodies = bodies
        self._last = 1
        ((self._key,),) = self._execute("SELECT key FROM keys", ())

    def release(self) -> None:
        """Both transactions."""
        self.begin()
        self.settle()

    def begin(self) -> None:
        """A charge, two texts, two entries with their nodes, a request and its owner, a head."""
        digests = [secrets.token_hex(32) for _ in range(4)]
        self._execute("BEGIN", ())
        self._execute("UPDATE accounts SET reserved = reserved + 1 WHERE account = 1", ())
        for digest, lookup in (digests[:2], digests[2:]):
            self._insert("texts", digest, b"salt" * 4, "question 12345", lookup)
        for body in self._bodies[:2]:
            self._entry(body)
        self._request = self._last - 1
        self._insert("requests", self._request, digests[0], digests[2], "started", 1, None)
        self._insert("owners", self._request, *vars(current_owner()).values())
        self._head()
        self._execute("COMMIT", ())

    def settle(self) -> None:
        """A charge, an entry with its nodes, a request's state, an answer and a head."""
        self._execute("BEGIN", ())
        self._execute("UPDATE accounts SET reserved = reserved - 1, spent = spent + 1 WHERE account = 1", ())
        self._entry(self._bodies[2])
        change = f"UPDATE requests SET state = 'settled', settled = {self._mark} WHERE request = {self._mark}"  # noqa: S608
        self._execute(change, (self._last, self._request))
        self._insert("answers", self._request, b"salt" * 4, ANSWER)
        self._head()
        self._execute("COMMIT", ())

    def _entry(self, body: bytes) -> None:
        self._last += 1
        self._insert("entries", self._last, body)
        self._insert("tree", self._last, b"node" * 16)

    def _head(self) -> None:
        digests = [secrets.token_hex(32) for _ in range(3)]
        self._insert("heads", self._last, *digests, self._key, secrets.token_hex(64))

    def _insert(self, table: str, *values: object) -> None:
        self._execute(f"INSERT INTO {table} VALUES ({', '.join([self._mark] * len(values))})", values)  # noqa: S608


def _driver(place: str | Path) -> tuple[Callable[[str, Sequence[object]], list[Any]], str]:
    """A function that runs a statement in the driver, on a connection with the store's settings, and its parameter."""
    if is_url(place):
        import psycopg

        server = psycopg.connect(str(place), autocommit=True, options="-c search_path=parco")

        def execute(statement: str, values: Sequence[object]) -> list[Any]:
            cursor = server.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

        return execute, "%s"
    file: sqlite3.Connection = connection.connect(Path(place), busy_seconds=1)
    return lambda statement, values: file.execute(statement, values).fetchall(), "?"


def _recovery(place: str | Path) -> tuple[float, float]:
    """Seconds to open a ledger with OPEN requests of a process that is gone, and to read its entries before that."""
    store = _signed(place)
    _fill(store)
    start = time.perf_counter()
    for body in store.entries():
        decode(body)
    read = time.perf_counter() - start
    start = time.perf_counter()
    open_ledger(place)
    recovered = time.perf_counter() - start
    if {row.state for row in store.history()} != {"open", "forfeited"}:
        raise TypeError("the requests should have been forfeited")
    return recovered, read


def _fill(store: Store, count: int = OPEN) -> None:
    """So many open requests of a process that is gone, in large transactions: the rows that as many begins write."""
    first = _started(store.begin(replace(_template(store), question="the first"), serves=_any))
    reserve, start = (decode(body) for body in list(store.entries())[1:])
    if not isinstance(reserve, Reserve) or not isinstance(start, Start):
        raise TypeError(reserve)
    store.forfeit(first)
    gone = vars(current_owner()) | {"started": 1}

    def work(opened: Connection) -> None:
        numbers = range(5, 2 * count + 5, 2)
        # As texts that were erased: their digests stand for themselves.
        texts = [{"digest": f"{number:064x}", "salt": None, "text": None, "lookup": None} for number in numbers]
        opened.execute(insert(tables.texts), texts)
        makes = [
            make
            for number in numbers
            for make in (
                lambda seq, number=number: replace(reserve, seq=seq, key=f"{number:064x}"),
                lambda seq, number=number: replace(start, seq=seq, request=number),
            )
        ]
        append_all(opened, makes, last=4)
        requests = [
            {
                "request": number,
                "key": f"{number:064x}",
                "question": reserve.question,
                "state": "started",
                "private": 1,
                "settled": None,
            }
            for number in numbers
        ]
        opened.execute(insert(tables.requests), requests)
        opened.execute(insert(tables.owners), [{"request": number, **gone} for number in numbers])
        opened.execute(update(tables.accounts).values(reserved=count))

    store._write(work)
    store.verify()


def _verifying(place: str | Path) -> tuple[float, float]:
    """Seconds to run all checks on a ledger of VERIFIED releases, and to parse and hash its lines."""
    store = _signed(place)
    noise = MechanismFacts("two-sided-geometric", Fraction(10**6), Fraction(1))
    # What that noise costs in 10^-15, as the checks compute it anew.
    template = replace(_template(store), mechanism=noise, charges=(Charge(1, 10**9),))
    for number in range(VERIFIED):
        outcome = store.begin(replace(template, question=f"question {number}"), serves=_any)
        store.settle(_started(outcome), answer=ANSWER)
    # The bytes that are checked: entries, the head of each commit, and answers, as they are exported.
    lines = list(store.export())

    def parse_and_hash() -> None:
        for line in lines:
            json.loads(line)
            sha256(line).digest()

    return _medians(lambda: verify(open_ledger(place)), parse_and_hash, turns=VERIFYING_TURNS)


def _recosting(place: str | Path) -> tuple[float, float]:
    """Seconds to list what a recost by four charges RECOSTED releases, three entries each, and to parse the entries.

    At most a second is promised.
    """
    _fill(_signed(place), RECOSTED)
    store, wanted = open_ledger(place), Recosting(mechanism="two-sided-geometric", factor=Fraction(4))
    if len(store.affected(wanted).releases) != RECOSTED + 1:
        raise TypeError("every release should have been listed")

    def parse() -> None:
        for body in store.entries():
            json.loads(body)

    return _medians(lambda: store.affected(wanted), parse, turns=RECOSTING_TURNS)


def _path_bytes() -> int:
    places = (0, 1, PROVEN // 2, PROVEN - 2, PROVEN - 1)
    return max(sum(map(len, inclusion_path(place, PROVEN, lambda *_: bytes(32)))) for place in places)


def _medians(ours: Job, beside: Job, *, turns: int | None = None) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns or TURNS):
        for job, taken in zip((ours, beside), times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


if __name__ == "__main__":
    main()
