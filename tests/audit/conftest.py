"""One ledger of forty entries for all tests of this room; each takes a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from parco.stores.sqlite import SqliteStore

from .build import forty


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    """Made once; nobody writes to it."""
    return forty(tmp_path_factory.mktemp("forty") / "x.ledger")


@pytest.fixture
def store(original: SqliteStore, tmp_path: Path) -> SqliteStore:
    """A copy to be harmed, with its file of heads."""
    for file in original.path.parent.glob("x.ledger*"):
        shutil.copy(file, tmp_path / file.name)
    return SqliteStore(tmp_path / "x.ledger")


@pytest.fixture(scope="session")
def lines(original: SqliteStore) -> list[bytes]:
    """The same as it is exported."""
    return list(original.export())
