"""Certified composition of schedules fixed in advance: an interval in which epsilon lies, proven from both sides.

Start with `composition.py` (the door), then `contour.py` (the profile as a sum over nodes, with all it may be off by),
`families.py`, `sampled.py`, `sampled_interval.py`, `finite.py` (what each kind of release contributes), `lattice.py`
and `smoothing.py` (losses without a density), `solve.py` (roots and ends), `aside.py` (where outliers decide). Not
here: what mechanisms are (`facts.py`), accounts, and anything chosen along the way.
"""

from parco.privacy.composition.composition import Composition, Interval, compose

__all__ = ["Composition", "Interval", "compose"]
