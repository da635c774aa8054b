"""Whether a refined answer is what its draws make of it: worked out anew from scales and lattices in the entries.

Nothing here is shared with drawing. Of a path of Gaussian answers of scales S_1 > S_2 > …, the first is a draw, and
each next one comes of a draw of scale s, the least decimal of sixteen digits with s^2 >= 1/(1/S_k^2 - 1/S_(k-1)^2), on
a lattice that is the published one, halved until 256 steps are in s. The estimate weighs all draws by 1/s^2; published
is the nearest multiple of the lattice, halves upwards.

A ladder that was reserved whole and stopped holds all its draws in its answer: `laws` are scales, and `draws` has for
each cell pairs of a place among them and an outcome. Gaussian ones lie on the published lattice over 64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from parco.audit.offline import CheckError

if TYPE_CHECKING:
    from parco.stores.records import Stored
    from parco.stores.store import Store

__all__ = ["check_estimates", "check_stops"]

_DIGITS, _STEPS, _FINER = 16, 256, 64
_ROUNDED = 1 + Fraction(1, 10**14)


def check_estimates(store: Store, refined: Sequence[int]) -> None:
    """CheckError for the first of these settled requests, each a refinement, whose cells are not those of its draws."""
    for number in refined:
        leaf = store.stored(number)
        if leaf.reserve.mechanism.kind != "gaussian":
            continue  # a geometric answer holds all that was drawn
        try:
            same = _cells([*(store.stored(one) for one in leaf.before), leaf]) == json.loads(leaf.answer)["cells"]
        except (KeyError, TypeError, ValueError):
            same = False
        if not same:
            raise CheckError("estimated", leaf.position, "its cells are not what the draws on its path make of them")


def check_stops(store: Store, stopped: Sequence[int]) -> None:
    """CheckError for the first of these ladders whose cells, or whose scales, are not those of its draws."""
    for number in stopped:
        one = store.stored(number)
        try:
            body = json.loads(one.answer)
            laws = [Fraction(*law) for law in body["laws"]]
            paths = [[(laws[place], steps) for place, steps in path] for path in body["draws"]]
            whole = len(paths) == len(body["cells"]) == one.reserve.cells
            scales = (one.stopped.scales if one.stopped else ()) or (one.mechanism.scale,) * len(paths)
            cells = zip(paths, scales, body["cells"], strict=True)
            same = whole and all(_stands(one, path, scale, cell) for path, scale, cell in cells)
        except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
            same = False
        if not same:
            raise CheckError("estimated", one.position, "its cells or scales are not what its draws make of them")


def _stands(stored: Stored, path: Sequence[tuple[Fraction, int]], scale: Fraction, cell: int) -> bool:
    """Whether a cell is what its draws make of it, at its scale."""
    if stored.mechanism.kind != "gaussian":
        falls = all(finer < coarser for (coarser, _), (finer, _) in pairwise(path))
        return falls and path[-1] == (scale, cell)
    variance = 1 / sum(1 / one**2 for one, _ in path)
    steps = variance * sum(count / one**2 for one, count in path) / _FINER
    return scale**2 <= variance <= (scale * _ROUNDED) ** 2 and cell == math.floor(steps + Fraction(1, 2))


def _cells(path: Sequence[Stored]) -> list[int]:
    bodies = [json.loads(one.answer) for one in path]
    drawn = [bodies[0]["cells"], *(body["drawn"] for body in bodies[1:])]
    draws = list(_draws(path))
    whole, lattice = sum(1 / scale**2 for scale, _ in draws), path[-1].reserve.mechanism.lattice
    cells = []
    for steps in zip(*drawn, strict=True):
        exact = sum(step * count / scale**2 for count, (scale, step) in zip(steps, draws, strict=True)) / whole
        cells.append(math.floor(exact / lattice + Fraction(1, 2)))
    return cells


def _draws(path: Sequence[Stored]) -> Iterator[tuple[Fraction, Fraction]]:
    """Scale and lattice of each draw."""
    first = path[0].reserve.mechanism
    yield first.scale, first.lattice
    for old, new in pairwise(path):
        facts = new.reserve.mechanism
        scale = _root(1 / (1 / facts.scale**2 - 1 / old.reserve.mechanism.scale**2))
        halvings = 0
        while _STEPS * facts.lattice > scale * 2**halvings:
            halvings += 1
        yield scale, facts.lattice / 2**halvings


def _root(square: Fraction) -> Fraction:
    """The least decimal of so many significant digits whose square is no smaller."""
    unit = Fraction(1)
    while unit**2 * 10 ** (2 * _DIGITS) <= square:
        unit *= 10
    while unit**2 * 10 ** (2 * _DIGITS - 2) > square:
        unit /= 10
    steps = math.isqrt(math.floor(square / unit**2))
    return unit * (steps if steps**2 * unit**2 == square else steps + 1)
