"""Makes ledger_v1.gz: a ledger with version 1 of the tables, before they held a tree and heads.

Run once, with the last parco that wrote such tables (this one writes newer ones): python tests/data/make_ledger_v1.py.
Twelve entries: signed, answered, answered again, forfeited, its cap raised and its contract revised.
"""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from tests.stores.build import ONE, anything, ask, opening, signed_store, started

HERE = Path(__file__).parent


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger"
        store = signed_store(path)
        store.settle(started(store), answer=b'{"cells":[7],"parco":"0.1.0"}')
        again = store.begin(ask(store, fresh=True, scale=20, cost=ONE // 20), serves=anything)
        store.settle(again.request, answer=b'{"cells":[9],"parco":"0.1.0"}')
        store.forfeit(started(store, question="sum of prices"))
        store.move_cap(opening(contract="the contract, raised", cap=2 * ONE), reason="the board said so")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("VACUUM")
        (HERE / "ledger_v1.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
