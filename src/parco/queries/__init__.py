"""What can be asked, and what it will cost before anything is read.

Start with `query.py` (a question in canonical form, checked against the contract), then `sensitivity.py` (how far one
unit can move the answer, from contract and question alone) and `plan.py` (mechanism, cost and interval of one release).
`filters.py` is the part of a question that says which rows it is about; `mean.py` plans a mean's two releases.
Not here: SQL and engines (`engines/`), the ledger, and anything that has seen a row.
"""
