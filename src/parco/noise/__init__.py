"""The only door to privacy noise: exact integer noise from uniform bits.

Laws, draws from them by the block (`vector.py`) and one by one in balls (`draw.py`), exact coins, choices and
refinements, exact quantiles, and the cipher's bits. Not here: scales in a statistic's units and what they cost
(`mechanisms/`, `privacy/`), and any other source of bits (a tape for tests is in `parco.testing`). Start with
`laws.py`, then `draw.py`, then `vector.py`: a double decides an outcome only within a proven error.
"""
