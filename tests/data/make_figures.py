"""Makes figures.json: the worked example's bounds by mpmath at 80 digits, and the published table as it was printed.

Nothing of parco is imported: the table is an oracle. Run `python -m tests.data.make_figures`; about five seconds.
Sources: as in make_gaussian.py; the published digits are those of the review "Presupuestos de privacidad bajo
composición: contabilidad de publicaciones estadísticas repetidas".
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from mpmath import log, mp, mpf

from tests.data.make_gaussian import DIGITS, closed_form, epsilon_of, text

DELTA = "1e-6"
SCALES = (2, 4, 8, 16, 32)
RELEASES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
# releases, scale, closed form, dense search over orders.
PUBLISHED = (
    (1, 4, "1.345380442439233", "1.3453804424475089"),
    (10, 8, "2.1559476703363876", "2.1559476710706402"),
    (100, 16, "3.4806386060980823", "3.480638609062736"),
    (1000, 8, "28.590726703363874", "28.5907267107064"),
)
# The orders 1 + 10^(i/25000), i = -100,000 to 100,000: of 25,000 to a decade, in exact arithmetic.
PER_DECADE, DECADES = 25_000, 4


def half(releases: int, scale: int) -> Any:
    """a = mu^2/2."""
    return mpf(releases) / (2 * scale**2)


def searched(releases: int, scale: int) -> Any:
    """The least of alpha a + log(1/delta)/(alpha - 1) over the grid, exactly there.

    Doubles find the place to within a few steps: the bound is convex in alpha - 1.
    """
    slope, slack = float(half(releases, scale)), math.log(1e6)
    steps = range(-DECADES * PER_DECADE, DECADES * PER_DECADE + 1)
    place = min(steps, key=lambda i: slope * 10 ** (i / PER_DECADE) + slack / 10 ** (i / PER_DECADE))
    excesses = (mpf(10) ** (mpf(i) / PER_DECADE) for i in range(place - 20, place + 21))
    return min(half(releases, scale) * (1 + excess) - log(mpf(DELTA)) / excess for excess in excesses)


def table() -> dict[str, object]:
    """The whole table; numbers at thirty digits."""
    with mp.workdps(DIGITS):
        return {
            "what": "Gaussian releases of sensitivity 1 at delta 1e-6; made by make_figures.py",
            "witness": [
                {
                    "releases": releases,
                    "scale": scale,
                    "printed_closed_form": closed,
                    "printed_dense_search": dense,
                    "closed_form": text(closed_form(half(releases, scale), mpf(DELTA))),
                    "dense_search": text(searched(releases, scale)),
                }
                for releases, scale, closed, dense in PUBLISHED
            ],
            "epsilon": [
                {
                    "releases": releases,
                    "scale": scale,
                    "valid": text(closed_form(half(releases, scale), mpf(DELTA))),
                    "tight": text(epsilon_of(mp.sqrt(2 * half(releases, scale)), mpf(DELTA))),
                }
                for scale in SCALES
                for releases in RELEASES
            ],
        }


if __name__ == "__main__":
    Path(__file__).with_name("figures.json").write_text(json.dumps(table(), indent=1) + "\n")
