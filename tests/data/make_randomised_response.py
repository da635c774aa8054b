"""Makes randomised_response.json: k-fold randomised response, from the sum over the number of lies, in balls.

Nothing of parco is imported: the table is an oracle. Run `python tests/data/make_randomised_response.py`; a few
seconds. With p = e^e0/(1 + e^e0), q = 1 - p, the i-th term has i lies and the loss (k - 2i) e0, and

    delta(eps) = sum over i of C(k,i) max(0, p^(k-i) q^i - e^eps p^i q^(k-i)) = A_j - e^eps B_j,

where A_j and B_j are the sums over the j terms whose loss is above eps. So epsilon = log((A_j - delta)/B_j) for the one
j at which that lies between two neighbouring losses. Only p and q are not rational (where e0 is a number; in `odds`
they are): balls of 2048 bits hold them, every comparison is decided by a ball, and the sums themselves are exact in
form.
"""

from __future__ import annotations

import json
from fractions import Fraction
from math import comb
from pathlib import Path

from flint import arb, ctx, fmpq

BITS = 2048
PRINTED = 30
E0S = ["0.01", "0.1", "0.5", "1", "4"]
FOLDS = [1, 2, 10, 100, 1000]
DELTAS = ["0.3", "1e-6", "1e-12", "1e-30"]
# Odds p/q and e^eps for profiles that are rational, exactly.
ODDS = ["11/9", "3", "20"]
RATIOS = ["1", "3/2", "10", "1000000"]


def epsilon(e0: arb, k: int, delta: arb) -> arb:
    """The least epsilon >= 0 whose profile is at most delta."""
    x = (-e0).exp()
    powers = [x**i for i in range(k + 1)]
    whole, head, tail = (1 + x) ** k, arb(0), arb(0)
    for i in range(k + 1):
        # Terms 0 to i - 1 count while eps lies between the losses of terms i and i - 1.
        loss = (k - 2 * i) * e0
        if loss < 0:
            break
        if head - loss.exp() * tail > delta * whole:
            break
        head += comb(k, i) * powers[i]
        tail += comb(k, i) * powers[k - i]
    solved = ((head - delta * whole) / tail).log() if head > delta * whole else arb(0)
    return solved if solved > 0 else arb(0)


def profile(odds: Fraction, k: int, ratio: Fraction) -> Fraction:
    """delta at e^eps = ratio for p/q = odds: exactly."""
    p = odds / (1 + odds)
    q = 1 - p
    return sum(
        (comb(k, i) * max(Fraction(0), p ** (k - i) * q**i - ratio * p**i * q ** (k - i)) for i in range(k + 1)),
        Fraction(0),
    )


def text(value: arb) -> str:
    """Thirty correct digits."""
    return str(value.str(PRINTED, radius=False))


def table() -> dict[str, object]:
    """The whole table."""
    before, ctx.prec = ctx.prec, BITS
    try:
        rows = [
            {"epsilon0": e0, "k": k, "delta": delta, "epsilon": text(epsilon(arb(e0), k, arb(delta)))}
            for e0 in E0S
            for k in FOLDS
            for delta in DELTAS
        ]
        exact = [
            {"odds": odds, "k": k, "ratio": ratio, "delta": text(arb(fmpq(value.numerator, value.denominator)))}
            for odds in ODDS
            for k in (1, 2, 7, 60)
            for ratio in RATIOS
            for value in [profile(Fraction(odds), k, Fraction(ratio))]
        ]
    finally:
        ctx.prec = before
    what = "k-fold composition of randomised response; made by make_randomised_response.py"
    return {"what": what, "epsilon": rows, "profile": exact}


if __name__ == "__main__":
    Path(__file__).with_name("randomised_response.json").write_text(
        json.dumps(table(), indent=1) + "\n", encoding="utf-8"
    )
