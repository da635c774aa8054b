"""Plans made into SQL and run where the data lies.

Start with `sql.py`: one sqlglot tree bounds each unit, puts values on the lattice and sums integers. `source.py` reads
names and types, nothing else, and says how each declared column is got out of what is there. `duckdb.py` is the driver
for CSV and Parquet files. `filters.py` makes the rows' condition into SQL. Not here: noise, costs, the ledger.
"""
