"""One contestant of `noise.py`, in a process of its own: reads "scale size" lines, answers with draws and seconds.

Run by the contestant's own Python: `python noise_peers.py NAME`. Only that contestant's packages are imported. Seconds
are processor time of this process, which a busy machine disturbs least; none of the contestants uses threads here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

SECONDS_MIN = 0.05

Draws = Callable[[int], object]
"""Draws so many integers (or doubles), all the way from random bits to Python's or numpy's numbers."""


def parco(scale: int) -> Draws:
    """A release of rounded Gaussian noise: a source of its own, then 64-bit integers."""
    from fractions import Fraction

    from parco.noise.bits import CipherBits
    from parco.noise.laws import RoundedGaussian
    from parco.noise.vector import draw_array

    law = RoundedGaussian(Fraction(scale))
    return lambda size: draw_array(law, size, CipherBits())


def numpy(scale: int) -> Draws:
    """A limit: neither secure nor exact."""
    import numpy as np

    generator = np.random.default_rng()
    return lambda size: generator.normal(0.0, scale, size)


def cipher(_: int) -> Draws:
    """A limit: 64 bits of the cipher for each draw, and nothing done with them."""
    from parco.noise.bits import CipherBits

    block = 1 << 14

    def draws(size: int) -> object:
        bits = CipherBits()
        return [len(bits.words(min(block, size - start))) for start in range(0, size, block)]

    return draws


def opendp(scale: int) -> Draws:
    """Integers in, integers out: the discrete Gaussian, exact."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=float(scale)
    )
    return lambda size: measurement([0] * size)


def python_dp(scale: int) -> Draws:
    """Google's library: an integer on a power-of-two grid, close to a Gaussian."""
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism

    mechanism = GaussianMechanism.create_from_standard_deviation(float(scale))
    return lambda size: [mechanism.add_noise(0) for _ in range(size)]


def diffprivlib(scale: int) -> Draws:
    """Its Gaussian mechanism in doubles; the sensitivity is chosen so that the scale is right."""
    from diffprivlib.mechanisms import Gaussian

    unit = Gaussian(epsilon=0.5, delta=1e-5, sensitivity=1)._scale
    mechanism = Gaussian(epsilon=0.5, delta=1e-5, sensitivity=scale / unit)
    return lambda size: [mechanism.randomise(0.0) for _ in range(size)]


def diffprivlib_integers(scale: int) -> Draws:
    """Its discrete Gaussian, whose loop is as long as the scale; the scale is set directly."""
    from diffprivlib.mechanisms import GaussianDiscrete

    mechanism = GaussianDiscrete(epsilon=0.5, delta=1e-5, sensitivity=1)
    mechanism._scale = float(scale)
    return lambda size: [mechanism.randomise(0) for _ in range(size)]


def tmlt_core(scale: int) -> Draws:
    """The discrete Gaussian, exact, one by one."""
    from tmlt.core.random.discrete_gaussian import sample_dgauss

    return lambda size: [sample_dgauss(scale * scale) for _ in range(size)]


CONTESTANTS: dict[str, tuple[Callable[[int], Draws], tuple[str, ...]]] = {
    "parco": (parco, ("parco", "numpy", "cryptography", "python-flint")),
    "numpy normal": (numpy, ("numpy",)),
    "raw cipher": (cipher, ("cryptography",)),
    "opendp": (opendp, ("opendp",)),
    "python-dp": (python_dp, ("python-dp",)),
    "diffprivlib, doubles": (diffprivlib, ("diffprivlib",)),
    "diffprivlib, integers": (diffprivlib_integers, ("diffprivlib",)),
    "tmlt-core": (tmlt_core, ("tmlt.core",)),
}


def main(name: str) -> None:
    """Answers each line of standard input until it ends."""
    make, packages = CONTESTANTS[name]
    _say({package: version(package) for package in packages})
    made: dict[int, Draws] = {}
    for line in sys.stdin:
        scale, size = map(int, line.split())
        if scale not in made:
            made[scale] = make(scale)
            made[scale](1)
        _say(_measured(made[scale], size))


def _measured(draws: Draws, size: int) -> dict[str, float]:
    """One measurement of fifty milliseconds or more, after a warm-up: all that came before went through the caches."""
    repeat, taken, drawn = 1, 0.0, 0
    draws(size)
    while taken < SECONDS_MIN:
        start = time.process_time()
        for _ in range(repeat):
            draws(size)
        taken, drawn = time.process_time() - start, size * repeat
        repeat *= 4
    return {"draws": drawn, "seconds": taken}


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
