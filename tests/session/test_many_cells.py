"""A release of many cells, every one with rows: its memory grows with the cells alone, some hundred bytes for each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).parents[2]
STATUS = Path("/proc/self/status")
BYTES_PER_CELL, FIXED_BYTES = 450, 200 * 2**20
"""The engine's own memory is in both."""

# The peak is read from Linux: the one that `resource` knows is inherited from the parent.
CHILD = """
import re, sys
from pathlib import Path
import parco

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

folder, cells = Path(sys.argv[1]), int(sys.argv[2])
contract = parco.Contract.parse(f'''
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
''')
parco.sign(contract, ledger=folder / "many.ledger")
with parco.Session(contract, data=folder / "rows.parquet", ledger=folder / "many.ledger") as session:
    before = peak()
    values = session.count(by="place", cost="1").value.values
    print(len(values), len(set(values)), peak() - before)
"""


@pytest.mark.skipif(not STATUS.exists(), reason="no such file on this system: the peak cannot be read")
@pytest.mark.parametrize("wanted", [50_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_many_cells_take_bounded_memory(tmp_path: Path, wanted: int) -> None:
    rows = f"SELECT i AS unit, i % {wanted} AS value FROM range({2 * wanted}) r(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'rows.parquet'}' (FORMAT parquet)")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), str(wanted)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    cells, different, grown = map(int, done.stdout.split())
    assert cells == wanted
    assert different > 10
    assert grown < FIXED_BYTES + BYTES_PER_CELL * wanted
