"""Plans made into SQL and run where the data lies.

Start with `sql.py`: one sqlglot tree bounds each unit, puts values on the lattice and sums integers; `values.py`,
`places.py` and `filters.py` say what a stored value is by the contract's rules and bins, and which rows count.
`data.py` finds out what the data is, `source.py` and `frames.py` read names and types, nothing else. `duckdb.py` is the
driver. Not here: noise, costs, the ledger.
"""
