"""Fixtures of several rooms: a PostgreSQL server, where this machine has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.postgres import Server


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a host keeps of ledgers in databases is kept in a folder of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server of the tests' own; what needs it is left out, and says so, where there is none to start."""
    pytest.importorskip("psycopg", reason="the PostgreSQL store is left out: install psycopg to test it")
    leave_out = pytest.fail if os.environ.get("PARCO_LEAVE_NOTHING_OUT") else pytest.skip
    from tests.postgres import Server, programs

    binaries = programs()
    if binaries is None:
        leave_out("the PostgreSQL store is left out: install a PostgreSQL server (initdb, postgres) to test it")
    server = Server(binaries)
    yield server
    server.remove()
