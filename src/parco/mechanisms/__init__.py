"""Noise in a statistic's own units: scale, lattice, interval, cost, and the draw.

A mechanism joins a law of `noise/` with the facts of the same name in `privacy/`. Not here: what a statistic is and how
far a unit moves it (`queries/`), accounts (`ledger/`). Start with `mechanism.py`; `design.py` chooses the mechanism
that a cost or an error asks for, `selection.py` the threshold from which keys are published. `noisy_max.py`,
`sparse_vector.py` and `refinement.py` are for programs: no question asks for them.
"""
