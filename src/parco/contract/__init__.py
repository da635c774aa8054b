"""What is promised, before any data is read.

Start with `contract.py` (`Contract`: read, checked as a whole, its canonical text and digest). `budget.py` turns a
budget into caps, `columns.py` says what columns are and `rules.py` what becomes of odd values in them, `bins.py` makes
groups of them, `dialect.py` says how a CSV file is written, `document.py` reads TOML and words faults, `fields.py`
holds the kinds of value. Not here: questions, sensitivities, files.
"""
