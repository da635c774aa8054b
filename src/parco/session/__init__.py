"""Where everything meets: one release from question to receipt.

Start with `session.py` (`Session`: plan, charge, run, draw, settle) and `questions.py` (what can be asked), then
`release.py` (the answer, with the bound as part of it), `keys.py` and `top.py` (answers that are keys), `mean.py`,
`variance.py`, `quantile.py` and `bounds.py` (several releases made into one answer) and `receipt.py` (what an answer
cost and what may be claimed). `ask.py` is a question as a record, `signing.py` puts a contract on a ledger. Not here:
mathematics, SQL, storage; this room only calls them, in the order that keeps the promise.
"""
