"""parco's accounting beside that of other libraries, in one run: `make bench-accounting`.

Each library has an environment of its own, made here, and a process of its own (`peers/`), on one thread. Turn by turn
each answers the same question, so that a busy machine slows all of them alike; figures are medians of processor and
clock time after a turn that does not count, unless that one took long: then it is the only one. What the answers are
compared with comes from `truth.py` where it can.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console

import truth
from accounting_report import Answer, Question, markdown, write_section
from machine import machine

HERE = Path(__file__).parent
TURNS = 3
# Seconds of processor time: a first turn above LONG is the only one, and one above `--cpu-most` is broken off.
LONG = 3.0
CPU_MOST = 600.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")

Record = dict[str, object]
# Ends of the truth, and the answers.
Measured = tuple[tuple[float, float], list[Answer]]


@dataclass(frozen=True)
class Peer:
    """A library: its worker script, what pip installs for it, and the questions that it answers only after minutes."""

    name: str
    script: str
    requirements: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


PEERS = (
    Peer("parco", "use_parco.py"),
    Peer("dp-accounting", "use_dp_accounting.py", ("dp-accounting==0.6.0",), ("mixed",)),
    Peer("opake-accounting", "use_opake.py", ("opake-accounting==0.16.1",)),
    Peer("prv-accountant", "use_prv_accountant.py", ("prv-accountant==0.2.0",), ("mixed", "noise")),
    Peer("autodp", "use_autodp.py", ("autodp==0.2.3.1",), ("mixed",)),
    Peer("opacus", "use_opacus.py", ("opacus==1.6.0",), ("mixed", "noise")),
)


def _gaussian(scale: str, times: int = 1, rate: str | None = None) -> Record:
    record: Record = {"mechanism": "gaussian", "sensitivity": "1", "scale": scale, "times": times}
    return record if rate is None else record | {"sampling": {"scheme": "poisson", "rate": rate}}


def _mixed(place: int) -> Record:
    if place % 3 == 0:
        return _gaussian(f"{50 + place / 100:.2f}")
    if place % 3 == 1:
        return {"mechanism": "laplace", "sensitivity": "1", "scale": f"{60 + place / 100:.2f}"}
    return _gaussian(f"{0.8 + place / 10_000:.4f}", rate=f"{0.001 + place * 1e-7:.7f}")


def _questions() -> Iterable[Question]:
    for scale in ("0.8", "1"):
        for steps in (1_000, 10_000, 100_000):
            yield Question(
                f"sampled-{scale}-{steps}",
                f"{steps:,} Gaussians of scale {scale}, Poisson-sampled at 0.01: epsilon at delta 1e-6",
                "epsilon",
                {"releases": [_gaussian(scale, steps, "0.01")], "delta": "1e-6"},
            )
    yield Question(
        "one-more",
        "one Gaussian of scale 20 more, after 10,000 sampled ones (scale 1, rate 0.01): the new epsilon at delta 1e-6",
        "extend",
        {"releases": [_gaussian("1", 10_000, "0.01")], "more": _gaussian("20"), "delta": "1e-6"},
        "the composition before it is not timed, except where a library has to begin anew",
    )
    yield Question(
        "million",
        "1,000,000 Gaussians of scale 8: epsilon at delta 1e-6",
        "epsilon",
        {"releases": [_gaussian("8", 1_000_000)], "delta": "1e-6"},
    )
    yield Question(
        "noise",
        "the least noise for epsilon 8 at delta 1e-5 of 100,000 Gaussians, Poisson-sampled at 0.001",
        "calibrate",
        {"releases": [_gaussian("1", 100_000, "0.001")], "epsilon": "8", "delta": "1e-5"},
    )
    yield Question(
        "mixed",
        "10,000 different releases, a third each Gaussian, Laplace and sampled Gaussian: epsilon at delta 1e-6",
        "epsilon",
        {"releases": [_mixed(place) for place in range(10_000)], "delta": "1e-6", "grid": "1e-3"},
        "dp-accounting's grid is 1e-3 here instead of 1e-4, so that it ends; the truth is parco's own interval at the "
        "tolerance 1e-10, for want of another",
    )


class Worker:
    """The process of one library."""

    def __init__(self, python: Path | str, script: str) -> None:
        environment = os.environ | dict.fromkeys(THREADS, "1")
        self._process = subprocess.Popen(
            [str(python), str(HERE / "peers" / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        hello = self._line()
        if hello is None:
            raise OSError("its worker does not start")
        self.versions: dict[str, str] = hello["versions"]
        self.methods: list[str] = hello["methods"]

    def ask(self, method: str, question: Question, *, cpu_most: float) -> Mapping[str, object]:
        """The worker's answer, or why there is none."""
        request = {"method": method, "kind": question.kind, "workload": question.workload, "cpu_most": cpu_most}
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return {"refused": "its process has died"}
        return self._line() or {"refused": "its process died of it"}

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()

    def _line(self) -> dict | None:
        line = self._process.stdout.readline()
        return json.loads(line) if line.strip() else None


def main() -> None:
    """Measures, prints the tables, and writes them where asked."""
    chosen, console = _arguments(), Console(stderr=True)
    workers, missing = _start(chosen, console)
    found = _kept(chosen.results)
    for question in _questions():
        if question.name in found or (chosen.questions and question.name not in chosen.questions):
            continue
        console.print(question.name)
        limits = _truth(question, workers["parco"])
        answers = _measure(question, workers, chosen)
        found[question.name] = limits, [*answers, *(Answer(name, "", refused=why) for name, why in missing.items())]
        _keep(chosen.results, found)
    rows = [(question, *found[question.name]) for question in _questions() if question.name in found]
    versions = [f"{name} {number}" for worker in workers.values() for name, number in worker.versions.items()]
    text = markdown(rows, machine("parco"), sorted({line for line in versions if not line.startswith("parco")}))
    for worker in workers.values():
        worker.close()
    print(text)
    if chosen.write:
        write_section(HERE.parent / "docs" / "bench.md", "Accounting", text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "parco-bench"
    parser.add_argument("--envs", type=Path, default=cache, help="where the libraries' environments are made and kept")
    parser.add_argument("--peers", nargs="*", default=[], help="only these libraries")
    parser.add_argument("--questions", nargs="*", default=[], help="only these questions")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--cpu-most", type=float, default=CPU_MOST, help="seconds of processor time for one answer")
    parser.add_argument("--turns", type=int, default=TURNS, help="timed turns of each library")
    parser.add_argument("--torch-spec", default="torch", help="what pip installs as torch, for opacus")
    parser.add_argument("--results", type=Path, help="keep figures in this file; ask only what is not in it")
    parser.add_argument("--write", action="store_true", help='write the tables to docs/bench.md, under "Accounting"')
    return parser.parse_args()


def _start(chosen: argparse.Namespace, console: Console) -> tuple[dict[str, Worker], dict[str, str]]:
    """The workers, and why others are missing."""
    workers, missing = {}, {}
    for peer in PEERS:
        if chosen.peers and peer.name not in (*chosen.peers, "parco"):
            continue
        console.print(f"starting {peer.name}")
        try:
            workers[peer.name] = Worker(_python(peer, chosen), peer.script)
        except (OSError, subprocess.CalledProcessError) as error:
            missing[peer.name] = (
                "cannot be installed" if isinstance(error, subprocess.CalledProcessError) else str(error)
            )
    return workers, missing


def _python(peer: Peer, chosen: argparse.Namespace) -> Path | str:
    """The interpreter of the library's environment, which is made where it is not there yet."""
    if not peer.requirements:
        return sys.executable
    wanted = [*peer.requirements, *([chosen.torch_spec] if peer.name == "opacus" else [])]
    folder = chosen.envs / peer.name
    python, made = folder / "bin" / "python", folder / "parco-bench.txt"
    if not made.exists() or made.read_text(encoding="utf-8").split() != wanted:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
        made.write_text("\n".join(wanted), encoding="utf-8")
    return python


def _measure(question: Question, workers: Mapping[str, Worker], chosen: argparse.Namespace) -> list[Answer]:
    """Each library's answer, turn by turn."""
    slow = {peer.name: peer.slow for peer in PEERS}
    pairs = [(name, method) for name, worker in workers.items() for method in worker.methods if method != "certificate"]
    turns: dict[tuple[str, str], list[Mapping[str, object]]] = {pair: [] for pair in pairs}
    for turn in range(1 + chosen.turns):
        for name, method in pairs:
            before = turns[name, method]
            if chosen.quick and question.name in slow[name]:
                turns[name, method] = [{"refused": "left out of a quick run"}]
            elif not before or ("value" in before[0] and float(str(before[0]["cpu"])) < LONG):
                answer = workers[name].ask(method, question, cpu_most=chosen.cpu_most)
                turns[name, method] = [answer] if turn <= 1 and "value" in answer else [*before, answer]
    return [_answer(name, method, found) for (name, method), found in turns.items()]


def _answer(name: str, method: str, turns: list[Mapping[str, object]]) -> Answer:
    refused = [str(turn["refused"]) for turn in turns if "refused" in turn]
    if refused:
        return Answer(name, method, refused=refused[0])
    cpu, wall = (median(float(str(turn[what])) for turn in turns) for what in ("cpu", "wall"))
    return Answer(name, method, float(str(turns[-1]["value"])), cpu, wall, turns=len(turns))


def _truth(question: Question, parco: Worker) -> tuple[float, float]:
    """Numbers at most and at least the right answer, or nearly so: a part in 10^13 on either side of thirty digits."""
    work = question.workload
    if question.name == "mixed":
        low, high = parco.ask("certificate", question, cpu_most=CPU_MOST)["value"]
        return low, high
    records = [*work["releases"], *([work["more"]] if "more" in work else [])]
    releases = tuple(
        truth.Release(record["scale"], record["times"], record.get("sampling", {"rate": "1"})["rate"])
        for record in records
    )
    if question.kind == "calibrate":
        found = truth.noise(releases[0], work["epsilon"], work["delta"], (0.55, 0.57))
    else:
        found = truth.epsilon(releases, work["delta"])
    return found * (1 - 1e-13), found * (1 + 1e-13)


def _kept(path: Path | None) -> dict[str, Measured]:
    """What a run before this one has found."""
    if path is None or not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {name: (tuple(limits), [Answer(**answer) for answer in answers]) for name, (limits, answers) in kept.items()}


def _keep(path: Path | None, found: Mapping[str, Measured]) -> None:
    if path is not None:
        kept = {name: (limits, [asdict(answer) for answer in answers]) for name, (limits, answers) in found.items()}
        path.write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
