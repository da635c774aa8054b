"""Makes sampled_gaussian.json: epsilons of compositions of Poisson-sampled Gaussians, removal and addition apart.

Nothing of parco is imported: the table is an oracle. Run `python -m tests.data.make_sampled_gaussian`; half an hour
(delete the file to compute every row anew). One step and two are closed forms and one integral over x (`once`,
`twice`); more are contours (contour.py). Where a contour for addition would take too long, its Renyi bound is below
the epsilon for removal and stands in the table instead.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from flint import arb, ctx

from tests.data import contour
from tests.data.contour import Gaussian, SampledGaussian, TooDearError
from tests.data.roots import number, root, text

# Who asks: case of the reference page, or what is measured; q, s, steps, delta. A rate of 1 is no sampling.
NAMED: list[Any] = [
    *[("ratios", "0.01", s, steps, "1e-6") for s in ("0.8", "1") for steps in (1000, 10000, 100000)],
    ("a million Gaussians", "1", "8", 1000000, "1e-6"),
    *[("C01", "0.00033", "4", 10000, delta) for delta in ("1.1e-18", "1.13e-18", "1e-30")],
    *[("C01", "0.00038", "4", 10000, delta) for delta in ("1.13e-18", "1.11e-18", "1e-30")],
    ("C02", "0.125", "0.8", 1000, "1e-6"),
    ("C02", "0.2", "1", 10, "1e-5"),
    ("C02", "0.2", "1", 500, "1e-5"),
    ("C02", "0.001", "1", 1000000, "1e-6"),
    ("C03", "1/60", "1.3", 900, "1e-5"),
    ("C03", "0.01", "10", 100, "1e-5"),
    ("C03", "0.004", "4", 1000, "1e-5"),
    *[("C04", "0.02", s, 1500, "1e-5") for s in ("3.9", "1.1", "0.79", "0.445", "0.356", "0.206", "0.157")],
    *[("C04", "0.02", s, 1500, "1e-5") for s in ("5.5", "3", "0.94", "0.701", "0.481", "0.438")],
    ("C06", "1", "1.3", 10, "1e-5"),
    ("C06", "1/8", "1", 1, "1e-5"),
    ("C06", "0.00016", "1", 1, "1e-5"),
    ("C06", "1/8", "1", 8, "1e-5"),
    ("C08", "1/60", "1.3", 600, "1e-5"),
    ("C08", "1/60", "1.3", 300, "1e-5"),
]
# The scale at which epsilon is reached: q, steps, delta, epsilon, and two scales on either side of it.
SCALES = [
    ("C07", "0.004", 2500, "1e-5", "1", "1.02", "1.04"),
    ("C07", "0.004", 2500, "1e-5", "8", "0.51", "0.53"),
    ("C07", "0.004", 2500, "1e-5", "50", "0.31", "0.315"),
    ("ratios", "0.001", 100000, "1e-5", "8", "0.4", "0.8"),
]
RATES, SIGMAS, STEPS = ["0.001", "0.1", "0.5", "0.999"], ["0.5", "1", "4"], [1, 2, 5, 20, 100]
DELTAS = ["0.5", "0.1", "1e-6", "1e-12", "1e-30"]


def once(law: SampledGaussian, epsilon: arb) -> arb:
    """The profile of one step at any real epsilon: the ratio r passes e^epsilon (or e^-epsilon) at one x.

    For removal P(X > x) - e^eps Q(X > x) with P the mixture, = q N(X > x - 1) - (e^eps - 1 + q) N(X > x).
    """
    q, s = number(law.q), number(law.s)
    ratio = (-epsilon if law.added else epsilon).exp()
    inner = (ratio - 1 + q) / q
    if not inner > 0:
        return arb(0) if law.added else 1 - epsilon.exp()
    x = s * s * inner.log() + arb(0.5)
    if law.added:
        return (1 - (1 - q) / ratio) * _above(-x / s) - q / ratio * _above((1 - x) / s)
    return q * _above((x - 1) / s) - (ratio - 1 + q) * _above(x / s)


def twice(law: SampledGaussian, epsilon: arb) -> arb:
    """The profile of two steps: the integral of P(x) once(epsilon - L(x)).

    The inner profile is not analytic where epsilon - L(x) reaches the edge of the losses, at x = end. With x = end -
    log(1 + e^u) it falls like a Gaussian in u, and the trapezoid rule converges geometrically: halving its step must
    not move it.
    """
    q, s = number(law.q), number(law.s)
    edge = law.edge()
    inner = ((-1 if law.added else 1) * (epsilon - edge)).exp() - 1 + q
    if law.added and not inner > 0:
        return arb(0)
    if not law.added and not inner > 0:
        raise ArithmeticError("epsilon is below every loss")
    end = s * s * (inner / q).log() + arb(0.5)
    value = arb(0)
    if not law.added:
        # Beyond the end every second loss counts: P(X > end) - e^eps Q(X > end).
        mixture = (1 - q) * _above(end / s) + q * _above((end - 1) / s)
        value = mixture - epsilon.exp() * _above(end / s)

    def term(u: arb) -> arb:
        x = end - u.exp().log1p()
        log_ratio = (1 - q + q * ((2 * x - 1) / (2 * s * s)).exp()).log()
        density = (-x * x / (2 * s * s)).exp() / (s * (2 * arb.pi()).sqrt())
        if law.added:
            return density * once(law, epsilon + log_ratio) / (1 + (-u).exp())
        return density * log_ratio.exp() * once(law, epsilon - log_ratio) / (1 + (-u).exp())

    return value + _trapezoid(term, float(end) + 40 * float(s) + 40)


def _trapezoid(term: Callable[[arb], arb], high: float) -> arb:
    """The integral over (-150, high), refused unless two steps of the rule agree to 25 digits."""
    step = arb(1) / 8
    while step > arb(2) ** -9:
        whole = [term(step * k) for k in range(int(-150 / float(step)), int(high / float(step)) + 1)]
        fine, coarse = step * sum(whole, arb(0)), 2 * step * sum(whole[::2], arb(0))
        error = abs(fine - coarse)
        if error < abs(fine) * arb(10) ** -25:
            return fine + arb(0, error.abs_upper())
        step /= 2
    raise ArithmeticError("the trapezoid rule does not converge")


def _above(x: arb) -> arb:
    """P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def epsilon(q: str, s: str, steps: int, delta: str, added: bool) -> arb:
    """The least epsilon >= 0 of one order of the pair."""
    if number(q) == 1:
        return contour.epsilon(((Gaussian(s), steps),), delta)
    law = SampledGaussian(q, s, added)
    if steps > 2:
        return contour.epsilon(((law, steps),), delta)
    if steps * law.distance() <= number(delta):
        return arb(0)
    # Above every loss that matters: the Renyi bound for removal, the largest loss for addition.
    above = arb(contour.renyi(((SampledGaussian(q, s, False), steps),), delta)) if not added else steps * law.edge()
    return root(partial(once if steps == 1 else twice, law), number(delta), above)


def row(q: str, s: str, steps: int, delta: str) -> dict[str, Any]:
    """One row; epsilon is the larger of the two."""
    removed = epsilon(q, s, steps, delta, False)
    result: dict[str, Any] = {"q": q, "s": s, "steps": steps, "delta": delta, "removed": text(removed)}
    if number(q) == 1:
        return result | {"added": text(removed), "epsilon": text(removed)}
    bound = contour.renyi(((SampledGaussian(q, s, True), steps),), delta)
    try:
        added = epsilon(q, s, steps, delta, True)
    except TooDearError:
        if not bound < removed:
            raise
        return result | {"added": None, "added_at_most": bound, "epsilon": text(removed)}
    return result | {"added": text(added), "epsilon": text(added if added > removed else removed)}


def scale(q: str, steps: int, delta: str, target: str, low: str, high: str) -> str:
    """The scale at which removal, the larger of the two here, has this epsilon: the secant rule, to 16 digits."""

    def excess(s: arb) -> arb:
        return (epsilon(q, s.str(30, radius=False), steps, delta, False) / number(target)).log().mid()

    before, now = number(low), number(high)
    before_value, value = excess(before), excess(now)
    while abs(value) > arb(10) ** -16:
        before, now, before_value = now, (now - value * (now - before) / (value - before_value)).mid(), value
        value = excess(now)
    return str(now.str(15, radius=False))


def table(known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The table, again and again, a row longer each time; rows that are known already are not computed again."""
    what = "Poisson-sampled Gaussians of sensitivity 1; made by make_sampled_gaussian.py"
    result: dict[str, Any] = {"what": what, "named": [], "scales": [], "spread": [], "left_out": []}
    for case, *rest in NAMED:
        result["named"].append(_known(known, "named", rest) or {"case": case, **row(*rest)})
        yield result
    for case, q, steps, delta, target, low, high in SCALES:
        found = [r for r in known.get("scales", []) if (r["q"], r["steps"], r["epsilon"]) == (q, steps, target)]
        new = {"case": case, "q": q, "steps": steps, "delta": delta, "epsilon": target}
        result["scales"] += found or [new | {"s": scale(q, steps, delta, target, low, high)}]
        yield result
    for steps, q, s, delta in itertools.product(STEPS, RATES, SIGMAS, DELTAS):
        rest = [q, s, steps, delta]
        try:
            result["spread"].append(_known(known, "spread", rest) or row(q, s, steps, delta))
        except TooDearError:
            result["left_out"].append({"q": q, "s": s, "steps": steps, "delta": delta})
        yield result


def _known(known: dict[str, Any], part: str, rest: list[Any]) -> dict[str, Any] | None:
    found = [r for r in known.get(part, []) if [r["q"], r["s"], r["steps"], r["delta"]] == rest]
    return found[0] if found else None


if __name__ == "__main__":
    path = Path(__file__).with_name("sampled_gaussian.json")
    ctx.prec = contour.BITS
    for rows in table(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}):
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
