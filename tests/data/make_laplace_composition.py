"""Makes laplace_composition.json: compositions of Laplace mechanisms, from the piecewise formula, in balls of 1024
bits.

Nothing of parco is imported: the table is an oracle. Run `python -m tests.data.make_laplace_composition`; two minutes.
The loss of Laplace noise of scale 1/e0 on sensitivity 1 has an atom 1/2 at e0, an atom e^-e0/2 at -e0, and between them
the density e^((l-e0)/2)/4. A composition is a mixture over which losses are at their ends: `shift` is the sum of those.
The m others have together the density e^(s/2) e^(-sum of their e0 / 2) 4^-m g(s), g the convolution of m boxes on (-e0,
e0),

    g(s) = sum over sets of boxes of (-1)^(size) (s - u)_+^(m-1) / (m-1)!,  u = 2 (sum of e0 in the set) - (sum of all
    e0)

and delta(eps) is the expectation of (1 - e^(eps-L))_+, where e^(s/2) and e^(-s/2) times powers of s - u are integrated
in closed form. The sums cancel, which is what the 1024 bits are for: the balls say how much is left.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import partial
from math import comb, factorial
from pathlib import Path
from typing import Any

from flint import arb, ctx

from tests.data.roots import root, text

BITS = 1024
# Each schedule is a list of [e0, times].
SCHEDULES: list[Any] = [
    *([[e0, k]] for e0 in ("0.1", "0.5", "1", "3") for k in (1, 2, 3, 5, 10, 20)),
    *([["1", 1], [e0, 1]] for e0 in ("0.01", "0.3", "0.999999", "2.5")),
    [["0.5", 2], ["1", 1]],
    [["0.2", 3], ["0.7", 2], ["1.1", 1]],
]
SHARES = ["0", "0.05", "0.3", "0.7", "0.95", "0.999"]
DELTAS = ["0.3", "1e-3", "1e-6", "1e-12", "1e-30"]

Schedule = tuple[tuple[str, int], ...]


def profile(schedule: Schedule, epsilon: arb) -> arb:
    """delta at epsilon."""
    total = arb(0)
    for weight, shift, inner in _ends(schedule):
        gap = epsilon - shift
        if inner:
            total += weight * _spread(inner, gap)
        elif gap < 0:
            total += weight * (1 - gap.exp())
    return total


def _ends(schedule: Schedule) -> Iterator[tuple[arb, arb, Schedule]]:
    """Every choice of how many losses are at which end: its weight, their sum, and which are in between."""
    choices = [[(a, b) for a in range(k + 1) for b in range(k + 1 - a)] for _, k in schedule]
    for ends in itertools.product(*choices):
        weight, shift, inner = arb(1), arb(0), []
        for (e0, k), (a, b) in zip(schedule, ends, strict=True):
            ways = factorial(k) // (factorial(a) * factorial(b) * factorial(k - a - b))
            weight *= ways * arb(2) ** -(a + b) * (-b * arb(e0)).exp()
            shift += (a - b) * arb(e0)
            inner += [(e0, k - a - b)] if k > a + b else []
        yield weight, shift, tuple(inner)


def _spread(inner: Schedule, gap: arb) -> arb:
    """The integral of e^((s - width)/2) 4^-m g(s) (1 - e^(gap - s)) over s > gap."""
    m, width = sum(k for _, k in inner), sum((k * arb(e0) for e0, k in inner), arb(0))
    total = arb(0)
    for chosen in itertools.product(*(range(k + 1) for _, k in inner)):
        u = 2 * sum((i * arb(e0) for (e0, _), i in zip(inner, chosen, strict=True)), arb(0)) - width
        start = gap if gap > u else u
        if start > width:
            continue
        ways = (-1) ** sum(chosen)
        for (_, k), i in zip(inner, chosen, strict=True):
            ways *= comb(k, i)
        total += ways * (_piece(1, m, u, start, width) - gap.exp() * _piece(-1, m, u, start, width))
    return total * (-width / 2).exp() * arb(4) ** -m


def _piece(sign: int, m: int, u: arb, start: arb, end: arb) -> arb:
    """The integral of e^(sign s/2) (s - u)^(m-1)/(m-1)! from start to end."""
    return _antiderivative(sign, m, u, end) - _antiderivative(sign, m, u, start)


def _antiderivative(sign: int, m: int, u: arb, s: arb) -> arb:
    y, total, power = s - u, arb(0), arb(1)
    for r in reversed(range(m)):
        total += power * (-1) ** r * (2 * sign) ** (r + 1) / factorial(m - 1 - r)
        power *= y
    return total * (sign * s / 2).exp()


def table() -> dict[str, object]:
    """The whole table; shares of the largest possible loss, where profiles are not zero."""
    before, ctx.prec = ctx.prec, BITS
    try:
        profiles, epsilons = [], []
        for releases in SCHEDULES:
            schedule = tuple((e0, k) for e0, k in releases)
            top = sum((k * arb(e0) for e0, k in schedule), arb(0))
            for share in SHARES:
                at = text(arb(share) * top)
                profiles.append({"releases": releases, "epsilon": at, "delta": text(profile(schedule, arb(at)))})
            for delta in DELTAS:
                solved = root(partial(profile, schedule), arb(delta), top)
                epsilons.append({"releases": releases, "delta": delta, "epsilon": text(solved)})
    finally:
        ctx.prec = before
    what = "compositions of Laplace mechanisms, releases as [e0, times]; made by make_laplace_composition.py"
    return {"what": what, "profile": profiles, "epsilon": epsilons}


if __name__ == "__main__":
    Path(__file__).with_name("laplace_composition.json").write_text(
        json.dumps(table(), indent=1) + "\n", encoding="utf-8"
    )
