"""The only door to privacy noise: exact integer noise from uniform bits.

Laws, the certified draw from them, their exact quantiles, and the kernel's bits. Not here: scales in a statistic's
units and what they cost (`mechanisms/`, `privacy/`), and any source of bits but the kernel (a tape for tests is in
`parco.testing`). Start with `laws.py`, then `draw.py`: no floating-point number decides an outcome.
"""
