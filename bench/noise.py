"""Draws of Gaussian noise a second, beside other libraries and two limits, in one run: `python bench/noise.py`.

Each contestant runs in a process of its own, other libraries also in an environment of their own, made here with pip
(their pins clash): kept in the folder of `--environments`, so that a second run finds them, or in a temporary one.
Who cannot be installed is named with the reason. Contestants take turns, so that a busy machine slows all alike; a
figure is the median over the turns, of draws by seconds of processor time. Slow ones draw fewer than asked for, as many
as they can in about half a second; a rate stays a rate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from machine import machine
from noise_peers import CONTESTANTS

SCALES = (1, 10, 1_000, 1_000_000)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TURNS = 5
SECONDS = 0.5
"""How long one measurement of a slow contestant may take, about."""

OWN = ("parco", "numpy normal", "raw cipher")
REQUIREMENTS = {
    "opendp": ("opendp",),
    "python-dp": ("python-dp",),
    "diffprivlib, doubles": ("diffprivlib", "scikit-learn<1.6"),  # its forests do not import with later ones
    "diffprivlib, integers": ("diffprivlib", "scikit-learn<1.6"),
    "tmlt-core": ("tmlt-core",),
}
TARGETS = {"opendp": 60, "python-dp": 30, "tmlt-core": 500, "numpy normal": 1 / 5}
"""How many times as many draws as theirs are wanted, at scales from 10 and sizes from 100,000."""


class Contestant:
    """A process that draws when told to."""

    def __init__(self, name: str, python: Path) -> None:
        script = Path(__file__).with_name("noise_peers.py")
        self._process = subprocess.Popen(
            [python, script, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
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
    """Measures and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, help="folder for the other libraries' environments, kept")
    parser.add_argument("--markdown", action="store_true", help="print the figures as a table in Markdown")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    with _folder(arguments.environments) as folder:
        contestants, missing = _contestants(folder, console)
        figures = _measured(contestants, console)
        for contestant in contestants.values():
            contestant.stop()
    versions = {name: version for one in contestants.values() for name, version in one.versions.items()}
    console.print(machine("parco"))
    console.print(", ".join(f"{name} {version}" for name, version in versions.items()))
    for name, reason in missing.items():
        console.print(f"not measured: {name}: {reason}", markup=False)
    if arguments.markdown:
        _print_markdown(figures, list(contestants))
    else:
        console.print(_table(figures, list(contestants)))
    for name, share in _shares(figures).items():
        console.print(f"{name}: at least {share:.3g} times as many, {TARGETS[name]:.3g} are wanted")


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


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
    place = folder / requirements[0]
    python, ready = place / "bin" / "python", place / "ready"
    if not ready.exists():
        with console.status(f"installing {requirements[0]}"):
            venv.create(place, with_pip=True, clear=True)
            command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise RuntimeError(errors[-1] if errors else f"pip ended with {done.returncode}")
        ready.touch()
    return python


Figures = dict[tuple[int, int], dict[str, float]]


def _measured(contestants: dict[str, Contestant], console: Console) -> Figures:
    """Median rates for each scale and size."""
    figures: Figures = {}
    with Progress(console=console) as progress:
        task = progress.add_task("measuring", total=len(SCALES) * len(SIZES) * TURNS)
        for scale in SCALES:
            for size in SIZES:
                rates: dict[str, list[float]] = {name: [] for name in contestants}
                for _ in range(TURNS):
                    for name, contestant in contestants.items():
                        rates[name].append(contestant.rate(scale, size))
                    progress.advance(task)
                figures[scale, size] = {name: statistics.median(found) for name, found in rates.items()}
    return figures


def _shares(figures: Figures) -> dict[str, float]:
    """Our least advantage over each peer that has a target, where the targets apply."""
    cells = [rates for (scale, size), rates in figures.items() if scale >= 10 and size >= 100_000]
    return {name: min(rates["parco"] / rates[name] for rates in cells) for name in TARGETS if name in cells[0]}


def _rows(figures: Figures, names: list[str]) -> Iterator[list[str]]:
    for (scale, size), rates in figures.items():
        yield [f"{scale:,}", f"{size:,}", *(_cell(rates[name], rates["parco"], own=name == "parco") for name in names)]


def _cell(rate: float, ours: float, *, own: bool) -> str:
    return f"{rate:.2g}" if own else f"{rate:.2g} ({ours / rate:.2g})"


def _table(figures: Figures, names: list[str]) -> Table:
    table = Table("scale", "size", *names, title=f"draws a second (times as many here); medians of {TURNS}")
    for row in _rows(figures, names):
        table.add_row(*row)
    return table


def _print_markdown(figures: Figures, names: list[str]) -> None:
    print("| scale | size |", " | ".join(names), "|")
    print("|--:" * (len(names) + 2) + "|")
    for row in _rows(figures, names):
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
