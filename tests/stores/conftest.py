"""Every store passes the same tests: `address` is a ledger's place in each of them in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path

import pytest

from . import build

STORES = ("sqlite", "postgres")


@pytest.fixture(params=STORES)
def new_address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], build.Address]]:
    """Gives places for ledgers, one after the other; in PostgreSQL an empty one waits there."""
    if request.param == "sqlite":
        names = chain(("x.ledger", "y.ledger", "z.ledger"), (f"{number}.ledger" for number in count()))
        yield lambda: tmp_path / next(names)
        return
    server, lent = request.getfixturevalue("postgres"), list[str]()
    build.SERVERS.append(server)

    def lend() -> build.Address:
        lent.append(server.ledger())
        return str(server.url(lent[-1]))

    yield lend
    build.SERVERS.clear()
    for name in lent:
        server.free(name)


@pytest.fixture
def address(new_address: Callable[[], build.Address]) -> build.Address:
    """Where a ledger is, or, in PostgreSQL, where an empty one waits."""
    return new_address()
