"""The mathematics of privacy: what a mechanism costs, and what a cost means.

Pure functions of exact rationals and frozen records; every bound is computed in ball arithmetic and rounded to the
side its name says. Not here: noise and bits (`noise/`), mechanisms that draw (`mechanisms/`), anything that knows of
data, queries or ledgers. Start with `sensitivity.py` and `gaussian.py` (facts of one mechanism; `laplace.py`,
`pure.py`, `exponential.py` and others beside it), then `conversion.py` (amounts into epsilon and delta), `filters.py`
(steps chosen along the way), `expost.py` (bounds that come with an output) and `claim.py` (what may be said of an
account). Each theorem used is in docs/mathematics.md under the same name.
"""
