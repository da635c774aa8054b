"""Makes gaussian.json: the Gaussian profile and its inverses, from the formulas, with mpmath at 80 digits.

Nothing of parco is imported: the table is an oracle. Run `python tests/data/make_gaussian.py`; about half a minute.
Sources: Balle & Wang 2018, theorem 8 (profile); Mironov 2017, proposition 3 (closed form); Canonne, Kamath & Steinke
2020, proposition 12 (improved conversion).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpmath import erf, erfc, exp, log, log1p, mp, mpf, nstr, sqrt

DIGITS = 80
PRINTED = 30
MUS = ["1e-9", "1e-6", "1e-3", "0.01", "0.1", "0.5", "1", "2", "5", "10", "20", "96", "100", "1000"]
EPSILONS = ["0", "1e-6", "0.01", "0.1", "0.5", "1", "3", "5", "10", "20", "100", "700", "1000", "10000"]
DELTAS = ["1e-300", "1e-100", "1e-30", "1e-12", "1e-9", "1e-6", "1e-5", "0.01", "0.3"]
# Releases, scale: sensitivity 1.
COMPOSITIONS = [
    *[(1, 4), (10, 8), (100, 16), (1000, 8)],
    *[(1, 8), (10, 1), (1_000_000, 8), (365, 30), (525_600, 500)],
]


def profile(mu: Any, epsilon: Any) -> Any:
    """delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    if epsilon == 0:
        # Phi(mu/2) - Phi(-mu/2) without the difference: at mu = 1e-300 it would take 300 digits more.
        return erf(mu / (2 * sqrt(2)))
    gap = epsilon / mu
    return (erfc((gap - mu / 2) / sqrt(2)) - exp(epsilon) * erfc((gap + mu / 2) / sqrt(2))) / 2


def root(function: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """The zero of a decreasing function on a positive bracket, by halving: slow, simple, and hard to get wrong."""
    for _ in range(300):
        middle = sqrt(low * high) if high > 2 * low else (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def epsilon_of(mu: Any, delta: Any) -> Any:
    """The least epsilon >= 0 whose profile is at most delta."""
    if profile(mu, mpf(0)) <= delta:
        return mpf(0)
    return root(lambda epsilon: profile(mu, epsilon) - delta, mpf("1e-40"), mu**2 / 2 + mu * sqrt(-2 * log(delta)))


def mu_of(epsilon: Any, delta: Any) -> Any:
    """The largest mu whose profile at epsilon is at most delta."""
    # At mu = eps/40 (or smaller than delta) the profile is far below 1e-300; at the upper end far above 0.3.
    low = max(delta / 100, epsilon / (2 * sqrt(-2 * log(delta)) + 2 * sqrt(epsilon + 1)))
    return root(lambda mu: delta - profile(mu, epsilon), low, low * 1000 + sqrt(2 * epsilon) + 10)


def closed_form(half: Any, delta: Any) -> Any:
    """a + 2 sqrt(a log(1/delta)), a = mu^2/2."""
    return half + 2 * sqrt(half * log(1 / delta))


def improved(half: Any, delta: Any) -> Any:
    """The least over orders of order a + log(1/(delta order))/(order - 1) + log(1 - 1/order), by golden sections."""

    def bound(log_excess: Any) -> Any:
        excess = exp(log_excess)
        order = 1 + excess
        return order * half - log(delta * order) / excess - log1p(1 / excess)

    golden, low, high = (sqrt(5) - 1) / 2, mpf(-20), mpf(20)
    while high - low > mpf(10) ** -(DIGITS // 4):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return bound((low + high) / 2)


def text(value: Any) -> str:
    """Thirty significant digits."""
    return str(nstr(value, PRINTED))


def table() -> dict[str, object]:
    """The whole table; rows whose delta would be below 1e-300 are left out of the profile."""
    with mp.workdps(DIGITS):
        profiles = [(mu, eps, profile(mpf(mu), mpf(eps))) for mu, eps in itertools.product(MUS, EPSILONS)]
        return {
            "what": "one Gaussian mechanism, mu = sensitivity/scale; made by make_gaussian.py",
            "profile": [
                {"mu": mu, "epsilon": eps, "delta": text(delta)}
                for mu, eps, delta in profiles
                if delta >= mpf("1e-300")
            ],
            "epsilon": [
                {"mu": mu, "delta": delta, "epsilon": text(epsilon_of(mpf(mu), mpf(delta)))}
                for mu, delta in itertools.product(MUS, DELTAS)
            ],
            "mu": [
                {"epsilon": eps, "delta": delta, "mu": text(mu_of(mpf(eps), mpf(delta)))}
                for eps, delta in itertools.product(EPSILONS, DELTAS)
            ],
            "composition": [
                {
                    "k": k,
                    "scale": scale,
                    "delta": delta,
                    "epsilon": text(epsilon_of(sqrt(mpf(k)) / scale, mpf(delta))),
                    "closed_form": text(closed_form(mpf(k) / (2 * scale**2), mpf(delta))),
                    "improved": text(improved(mpf(k) / (2 * scale**2), mpf(delta))),
                }
                for k, scale in COMPOSITIONS
                for delta in ("1e-6", "1e-9")
            ],
        }


if __name__ == "__main__":
    Path(__file__).with_name("gaussian.json").write_text(json.dumps(table(), indent=1) + "\n")
