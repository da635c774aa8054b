"""What accuracy costs when it is asked for: refinement beside restarts, a fixed budget and Laplace noise.

`make bench-accuracy`, or `python bench/accuracy_first.py --write`. One number of sensitivity 1 is wanted within 5 % at
95 %, and nobody knows how large it is: truths from 10 to 100,000, evenly in logarithm. Many runs of each way, in
doubles (`accuracy_paths.py`). Costs do not depend on the machine, which is printed all the same.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console

from accounting_report import write_section
from accuracy_paths import Runs, fixed, laplace, predicted, quantile, refined, restarted
from machine import duration, machine
from parco.accuracy.ladders import Geometric, Ladder, Predictive
from parco.privacy import expost, gaussian

DOCS = Path(__file__).parent.parent / "docs"
SHARE, MISS, CAP, FIRST, LEAST = 0.05, 0.05, 64.0, "1e-7", 10.0
TRUTHS = np.geomspace(LEAST, 1e5, 60)
LAPLACE_FIRST, LAPLACE_CAP = 1e-3, 64.0
UNITS = 10**15
DELTA, ORDER = Fraction(1, 10**6), Fraction(9)
SHOWN = (10, 100, 1000, 10_000)
MIXTURE_R = Fraction(1, 10)
WHAT = (
    f"By `bench/accuracy_first.py`: one number of sensitivity 1, wanted within {100 * SHARE:g} % at "
    f"{100 * (1 - MISS):g} %, its truth anywhere between {TRUTHS[0]:,.0f} and {TRUTHS[-1]:,.0f}; ladders begin at a\n"
    f"mu squared of {FIRST} and end at {CAP:g}. The smallest sufficient cost is the least at which the same rule, with "
    "the same level, would\nstop if the estimate were the truth."
)
FIGURE = (
    "![Median cost over that of one release for a known truth, over the truth from 10 to 100,000, on logarithmic axes. "
    "Restarts with\ndoubled costs zigzag between 5 and 10, refinement of ratio 2 between 2.6 and 5; the predictive "
    "ladder falls to 2.3 and stays near it;\none release fixed beforehand begins at 1 and rises with the square of the "
    "truth.](figures/accuracy-first.svg)"
)


@dataclass(frozen=True)
class Way:
    """One way to get there: `run(truth)` makes many runs, of at most `steps` steps. `pure`: costs are epsilon."""

    name: str
    steps: int
    run: Callable[[float], Runs]
    pure: bool = False


def main() -> None:
    """Measures, prints the tables, and writes them and the figure where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000, help="runs of each way and truth")
    parser.add_argument("--demo", action="store_true", help="also sessions on the demo's data, which take a minute")
    parser.add_argument("--write", action="store_true", help="write tables and figure to docs/")
    chosen, console, began = parser.parse_args(), Console(stderr=True), time.process_time()
    found = {}
    for way in ways(chosen.runs):
        console.print(way.name)
        found[way] = [way.run(truth) for truth in TRUTHS]
    told = f"{machine('parco', 'numpy')}; {duration(time.process_time() - began)} of processor time."
    texts = {
        "Measured": "\n\n".join((WHAT, told, ways_table(found), FIGURE, claims_table(found))),
        "Boundaries": boundaries_table(),
    }
    if chosen.demo:
        from accuracy_demo import demo_table

        texts["On the demo's data"] = demo_table()
    for heading, text in texts.items():
        print(f"## {heading}\n\n{text}\n")
    if chosen.write:
        from accuracy_figure import costs_svg

        for heading, text in texts.items():
            write_section(DOCS / "accuracy-first.md", heading, text)
        svg = costs_svg({way.name: over_known(runs) for way, runs in found.items() if not way.pure}, TRUTHS)
        (DOCS / "figures" / "accuracy-first.svg").write_text(svg, encoding="utf-8", newline="\n")


def ways(runs: int) -> list[Way]:
    """All that are compared, each with its own number of steps and level, at the same cap."""
    plans = {"share": SHARE, "bits": np.random.default_rng(20_250)}
    found = [_climbed(ratio, runs, plans) for ratio in ("1.5", "2", "4")]
    ladder, most = Predictive(FIRST), CAP
    few = max(1, runs // 20)
    found.append(
        Way(
            "refinement, predictive ladder",
            ladder.steps(int(most * UNITS)),
            lambda truth: predicted(truth, ladder=ladder, most=most, miss=MISS, runs=few, **plans),
        )
    )
    costs = rungs(Geometric(FIRST, 2), CAP)
    z = quantile(MISS, len(costs))
    found.append(
        Way(
            "independent restarts, costs doubled",
            len(costs),
            lambda truth: restarted(truth, costs=costs, z=z, runs=runs, **plans),
        )
    )
    once = quantile(MISS, 1)
    beforehand = (once / (SHARE * LEAST)) ** 2
    found.append(
        Way(
            "one release, fixed beforehand for a truth of 10",
            1,
            lambda truth: fixed(truth, cost=beforehand, z=once, runs=runs, **plans),
        )
    )
    noise = [LAPLACE_FIRST * 2**step for step in range(round(math.log2(LAPLACE_CAP / LAPLACE_FIRST)) + 1)]
    found.append(
        Way(
            "Laplace noise reduction, epsilon doubled",
            len(noise),
            lambda truth: laplace(truth, costs=noise, miss=MISS, runs=runs, **plans),
            pure=True,
        )
    )
    return found


def _climbed(ratio: str, runs: int, plans: dict[str, object]) -> Way:
    costs = rungs(Geometric(FIRST, ratio), CAP)
    z = quantile(MISS, len(costs))
    return Way(
        f"refinement, ratio {ratio}", len(costs), lambda truth: refined(truth, costs=costs, z=z, runs=runs, **plans)
    )


def rungs(ladder: Ladder, cap: float) -> list[float]:
    """The costs of a ladder that does not predict."""
    most, at, found = ladder.cap(cap), 0, list[float]()
    for step in range(1, ladder.steps(most) + 1):
        at = ladder.cost(step, at=at, need=None, most=most)
        found.append(at / UNITS)
    return found


def over_known(runs: Sequence[Runs]) -> list[float]:
    """Median costs over that of the one release that would do for a truth that is known: 95 % and one step."""
    once = quantile(MISS, 1)
    return [float(np.median(one.cost)) / (once / (SHARE * truth)) ** 2 for one, truth in zip(runs, TRUTHS, strict=True)]


def ways_table(found: dict[Way, list[Runs]]) -> str:
    """Realised over smallest sufficient cost, and coverage at the stop."""
    lines = [
        "| way | steps at most | realised over smallest sufficient cost: median | 90 % of runs "
        "| over one release for a known truth: median | coverage at the stop, mean |",
        "|---|---|---|---|---|---|",
    ]
    for way, runs in found.items():
        ratios = np.concatenate([one.ratio for one in runs])
        known = "" if way.pure else f"{np.median(over_known(runs)):.3g}"
        covers = np.mean([one.covers.mean() for one in runs])
        lines.append(
            f"| {way.name} | {way.steps} | {np.median(ratios):.3g} | {np.quantile(ratios, 0.9):.3g} | {known} | "
            f"{covers:.3f} |"
        )
    return "\n".join(lines)


def claims_table(found: dict[Way, list[Runs]]) -> str:
    """For some truths, what the median run costs and what may be claimed of it."""
    told = [way for way in found if way.name in ("refinement, ratio 2", "refinement, predictive ladder") or way.pure]
    lines = [
        f"Median runs at some truths: mu squared, and epsilon at delta = {float(DELTA):g} by the ex-post bound "
        f"at order {ORDER}; of Laplace noise epsilon itself, without a delta.\n",
        "| truth | " + " | ".join(way.name for way in told) + " |",
        "|---|" + "---|" * len(told),
    ]
    for truth in SHOWN:
        cells = [_claim(way, float(np.median(way.run(truth).cost))) for way in told]
        lines.append(f"| {truth:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _claim(way: Way, cost: float) -> str:
    if way.pure:
        return f"epsilon {cost:.3g}"
    bound = Fraction(cost) * ORDER / 2
    epsilon = expost.hockey_stick_epsilon_upper(bound, order=ORDER, delta=DELTA)
    return f"{cost:.3g}; epsilon {float(epsilon):.3g}"


def boundaries_table() -> str:
    """What a reader of the path may say at any time, by four formulas; beside the profile that a fixed release has."""
    lines = [
        f"delta = {float(DELTA):g}, order {ORDER} (for the linear boundary b = (order - 1)/2), "
        f"r = {float(MIXTURE_R):g} of the mixture; all fixed beforehand. The last column is what one release fixed in "
        "advance may claim, and no run that stops by what it saw.\n",
        "| mu squared at the stop | ex-post, hockey-stick | ex-post, probabilistic | linear boundary "
        "| mixture boundary | exact profile, fixed in advance |",
        "|---|---|---|---|---|---|",
    ]
    for text in ("0.01", "0.1", "0.5", "1", "4"):
        squared = Fraction(text)
        bound = squared * ORDER / 2
        found = [
            float(expost.hockey_stick_epsilon_upper(bound, order=ORDER, delta=DELTA)),
            float(expost.probabilistic_epsilon_upper(bound, order=ORDER, delta=DELTA)),
            linear(float(squared)),
            mixture(float(squared)),
            float(gaussian.epsilon_upper(squared, DELTA)),
        ]
        lines.append(f"| {text} | " + " | ".join(f"{one:.4g}" for one in found) + " |")
    return "\n".join(lines)


def linear(squared: float) -> float:
    """(D/t)(D/2 + b) + aD with 2ab = log(1/delta), D = 1 and 1/t = mu squared (Whitehouse et al. 2022)."""
    b = (float(ORDER) - 1) / 2
    return squared * (0.5 + b) + math.log(1 / float(DELTA)) / (2 * b)


def mixture(squared: float) -> float:
    """v/2 + sqrt(2 (v + r) log(sqrt((v + r)/r)/delta)), v = mu squared (Whitehouse et al. 2022)."""
    whole = squared + float(MIXTURE_R)
    return squared / 2 + math.sqrt(2 * whole * math.log(math.sqrt(whole / float(MIXTURE_R)) / float(DELTA)))


if __name__ == "__main__":
    main()
