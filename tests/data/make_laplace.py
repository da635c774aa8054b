"""Makes laplace.json: the privacy profile of one Laplace mechanism, and of two together, with mpmath at 50 digits.

From the densities themselves: delta(eps) is the integral of the positive part of p - e^eps q, split where p/q bends and
where it meets e^eps; of two mechanisms, that of the loss of the first, an atom at each end and a density between.
Nothing of parco is imported: the table is an oracle. Run `python tests/data/make_laplace.py`; about ten seconds.
Sources: the definitions; Dwork, McSherry, Nissim & Smith 2006 for the mechanism.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from mpmath import exp, mp, mpf, nstr, quad

DIGITS = 50
PRINTED = 30
ONES = ["0.1", "1", "5"]
EPSILONS = ["0", "0.05", "0.5", "0.9", "3"]
TWOS = [("0.1", "0.1"), ("1", "1"), ("1", "0.3"), ("2", "0.5")]
EPSILONS_OF_TWO = ["0", "0.1", "0.5", "1", "1.2", "1.9", "2.4"]
FAR = 200  # beyond this many scales a Laplace density is below 1e-80


def profile(e0: Any, epsilon: Any) -> Any:
    """The integral of (p - e^eps q)+ for scale 1, p around 0 and q around e0; the loss at x is |x - e0| - |x|."""
    ends = [mpf(-FAR), mpf(0), e0, e0 + FAR]
    meets = (e0 - epsilon) / 2  # where the loss e0 - 2 x is epsilon
    if abs(epsilon) < e0:
        ends.append(meets)
    elif epsilon >= e0:
        return mpf(0)
    ends = sorted(end for end in ends if epsilon < -e0 or end <= meets)
    return quad(lambda x: (exp(-abs(x)) - exp(epsilon - abs(x - e0))) / 2, ends)


def profile_of_two(e0: Any, e1: Any, epsilon: Any) -> Any:
    """The mean, over the loss of the first, of the second's profile at what is left of epsilon."""
    atoms = (profile(e1, epsilon - e0) + exp(-e0) * profile(e1, epsilon + e0)) / 2
    # The second's profile bends at -e1 and at e1.
    inner = [end for end in (epsilon - e1, epsilon + e1) if -e0 < end < e0]

    def integrand(loss: Any) -> Any:
        return exp((loss - e0) / 2) / 4 * profile_closed(e1, epsilon - loss)

    return atoms + quad(integrand, sorted([-e0, *inner, e0]))


def profile_closed(e0: Any, epsilon: Any) -> Any:
    """The profile without its integral, at any sign of epsilon: it is checked against `profile` in the tests."""
    return max(mpf(0), 1 - exp((epsilon - e0) / 2), 1 - exp(epsilon))


def text(value: Any) -> str:
    """Thirty significant digits."""
    return str(nstr(value, PRINTED))


def table() -> dict[str, object]:
    """The whole table."""
    with mp.workdps(DIGITS):
        return {
            "what": "Laplace mechanisms, e_i = sensitivity/scale: delta(eps) of one, and of two together; made by"
            " make_laplace.py",
            "one": [
                {"e0": e0, "eps": eps, "delta": text(profile(mpf(e0), mpf(eps)))}
                for e0, eps in itertools.product(ONES, EPSILONS)
            ],
            "two": [
                {"e0": e0, "e1": e1, "eps": eps, "delta": text(profile_of_two(mpf(e0), mpf(e1), mpf(eps)))}
                for (e0, e1), eps in itertools.product(TWOS, EPSILONS_OF_TWO)
            ],
        }


if __name__ == "__main__":
    Path(__file__).with_name("laplace.json").write_text(json.dumps(table(), indent=1) + "\n")
