"""Draws of Gaussian noise a second, beside other libraries and two limits, in one run: `make bench-noise`.

Each contestant runs in a process of its own, on one thread, other libraries also in an environment of their own, made
here with pip (their pins clash) and kept. Who cannot be installed is named with the reason. Contestants take turns, so
that a busy machine slows all alike; a figure is the median over the turns, of draws by seconds of processor time. Slow
ones draw fewer than asked for, as many as they can in about half a second; a rate stays a rate.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from accounting_report import write_section
from machine import machine
from noise_peers import CONTESTANTS

HERE = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")

SCALES = (1, 10, 1_000, 1_000_000)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TURNS = 5
SECONDS = 0.5
"""How long one measurement of a slow contestant may take, about."""

OWN = ("parco", "numpy normal", "raw cipher")
REQUIREMENTS = {
    "opendp": ("opendp==0.16.0",),
    "python-dp": ("python-dp==1.1.5",),
    "diffprivlib, doubles": ("diffprivlib==0.6.6", "scikit-learn<1.6"),  # its forests do not import with later ones
    "diffprivlib, integers": ("diffprivlib==0.6.6", "scikit-learn<1.6"),
    "tmlt-core": ("tmlt-core==0.20.0",),
}
TARGETS = {"opendp": 60, "python-dp": 30, "tmlt-core": 500, "numpy normal": 1 / 5}
"""How many times as many draws as theirs are wanted, at scales from 10 and sizes from 100,000."""


class Contestant:
    """A process that draws when told to."""

    def __init__(self, name: str, python: Path) -> None:
        script = Path(__file__).with_name("noise_peers.py")
        self._process = subprocess.Popen(
            [python, script, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | dict.fromkeys(THREADS, "1"),
        )
        self.versions: dict[str, str] = json.loads(self._answer())
        self._rates: dict[int, float] = {}

    def rate(self, scale: int, size: int) -> float:
        """Draws a second of processor time."""
        if scale not in self._rates:
            self._rates[scale] = self._measured(scale, 1)
        self._rates[scale] = self._measured(scale, max(1, min(size, int(SECONDS * self._rates[scale]))))
        return self._rates[scale]

    def stop(self) -> None:
        self._process.communicate()

    def _measured(self, scale: int, size: int) -> float:
        assert self._process.stdin is not None  # noqa: S101 - opened above
        self._process.stdin.write(f"{scale} {size}\n")
        self._process.stdin.flush()
        found = json.loads(self._answer())
        rate: float = found["draws"] / found["seconds"]
        return rate

    def _answer(self) -> str:
        assert self._process.stdout is not None  # noqa: S101 - opened above
        # Packages may greet; what answers is an object of JSON.
        for line in self._process.stdout:
            if line.startswith("{"):
                return line
        raise RuntimeError("it stopped: run bench/noise_peers.py by hand to see why")


def main() -> None:
    """Measures, prints the table, and writes it where asked."""
    chosen, console = _arguments(), Console(stderr=True)
    contestants, missing = _contestants(chosen.envs, console)
    figures = _measured(contestants, chosen, console)
    for contestant in contestants.values():
        contestant.stop()
    versions = {name: version for one in contestants.values() for name, version in one.versions.items()}
    known = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()) if name != "parco")
    parts = [
        f"{machine('parco')}; {known}.",
        "Draws a second of processor time, and in brackets how many times as many parco makes; medians of "
        f"{chosen.turns} turns.",
        "\n".join(_lines(figures, list(contestants))),
        *(f"Not measured: {name}: {reason}." for name, reason in missing.items()),
        *(
            f"Against {name}, from scale 10 and size 100,000 on: at least {share:.3g} times as many; "
            f"{TARGETS[name]:.3g} are wanted."
            for name, share in _shares(figures).items()
        ),
    ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if chosen.write:
        write_section(HERE.parent / "docs" / "bench.md", "Noise", text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "parco-bench"
    parser.add_argument("--envs", type=Path, default=cache, help="where the libraries' environments are made and kept")
    parser.add_argument("--scales", type=int, nargs="*", default=SCALES, help="of the noise, in lattice steps")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="how many draws are asked for at once")
    parser.add_argument("--turns", type=int, default=TURNS, help="of each contestant")
    parser.add_argument("--write", action="store_true", help='write the table to docs/bench.md, under "Noise"')
    return parser.parse_args()


def _contestants(folder: Path, console: Console) -> tuple[dict[str, Contestant], dict[str, str]]:
    """Those that start, and why the others do not."""
    found, missing = {}, {}
    for name in CONTESTANTS:
        try:
            python = Path(sys.executable) if name in OWN else _environment(folder, REQUIREMENTS[name], console)
            found[name] = Contestant(name, python)
        except RuntimeError as error:
            missing[name] = str(error)
    return found, missing


def _environment(folder: Path, requirements: tuple[str, ...], console: Console) -> Path:
    """The Python of an environment that has these packages; RuntimeError with pip's reason if there can be none."""
    place = folder / requirements[0].partition("==")[0]
    python, made = place / "bin" / "python", place / "parco-bench.txt"
    if not made.exists() or made.read_text(encoding="utf-8").splitlines() != list(requirements):
        with console.status(f"installing {requirements[0]}"):
            venv.create(place, with_pip=True, clear=True)
            command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise RuntimeError(errors[-1] if errors else f"pip ended with {done.returncode}")
        made.write_text("\n".join(requirements), encoding="utf-8")
    return python


Figures = dict[tuple[int, int], dict[str, float]]


def _measured(contestants: dict[str, Contestant], chosen: argparse.Namespace, console: Console) -> Figures:
    """Median rates for each scale and size."""
    figures: Figures = {}
    with Progress(console=console) as progress:
        task = progress.add_task("measuring", total=len(chosen.scales) * len(chosen.sizes) * chosen.turns)
        for scale in chosen.scales:
            for size in chosen.sizes:
                rates: dict[str, list[float]] = {name: [] for name in contestants}
                for _ in range(chosen.turns):
                    for name, contestant in contestants.items():
                        rates[name].append(contestant.rate(scale, size))
                    progress.advance(task)
                figures[scale, size] = {name: statistics.median(found) for name, found in rates.items()}
    return figures


def _shares(figures: Figures) -> dict[str, float]:
    """Our least advantage over each peer that has a target, where the targets apply."""
    cells = [rates for (scale, size), rates in figures.items() if scale >= 10 and size >= 100_000]
    known = [name for name in TARGETS if cells and name in cells[0]]
    return {name: min(rates["parco"] / rates[name] for rates in cells) for name in known}


def _rows(figures: Figures, names: list[str]) -> Iterator[list[str]]:
    for (scale, size), rates in figures.items():
        yield [f"{scale:,}", f"{size:,}", *(_cell(rates[name], rates["parco"], own=name == "parco") for name in names)]


def _cell(rate: float, ours: float, *, own: bool) -> str:
    return f"{rate:.2g}" if own else f"{rate:.2g} ({ours / rate:.2g})"


def _lines(figures: Figures, names: list[str]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| scale | size | {' | '.join(names)} |"
    yield "|--:" * (len(names) + 2) + "|"
    for row in _rows(figures, names):
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    main()
