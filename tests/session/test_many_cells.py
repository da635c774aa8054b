"""A release of a million cells: the memory it takes grows with the cells alone, some hundred bytes for each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CELLS, BYTES_PER_CELL, ENGINE_BYTES = 1_000_000, 500, 200 * 2**20

CHILD = """
import resource, sys
from pathlib import Path
import duckdb
import parco

folder, cells = Path(sys.argv[1]), int(sys.argv[2])
text = f'''
format = 1
name = "many"
purpose = "measuring"
unprotected = "none"
data = {{ name = "many" }}
unit = {{ column = "unit", neighbours = "add-or-remove", groups = 6, rows = 2 }}
budget = {{ measure = "gdp", total = "10", delta = "1e-6" }}

[columns.value]
type = "integer"
lower = 0
upper = {cells - 1}

[bins.place]
column = "value"
width = 1
first = 0
last = {cells - 1}
'''
duckdb.execute(
    f"COPY (SELECT (hash(i) % 50000)::BIGINT AS unit, (hash(i + 1) % {cells})::BIGINT AS value "
    f"FROM range(100000) r(i)) TO '{folder / 'rows.parquet'}' (FORMAT parquet)"
)
contract = parco.Contract.parse(text)
parco.sign(contract, ledger=folder / "many.ledger")
with parco.Session(contract, data=folder / "rows.parquet", ledger=folder / "many.ledger") as session:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    values = session.count(by="place", cost="1").value.values
    print(len(values), len(set(values)), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.long
def test_a_million_cells_take_bounded_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), str(CELLS)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    cells, different, grown = map(int, done.stdout.splitlines()[-1].split())
    assert cells == CELLS
    assert different > 10
    assert grown < ENGINE_BYTES + BYTES_PER_CELL * CELLS
