"""The tables of `accounting.py`, from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Answer", "Question", "markdown", "write_section"]

OURS = "parco"
# A safe answer this near the truth counts as tight.
TIGHT = 0.01


@dataclass(frozen=True)
class Question:
    """What all libraries are asked: a `kind` of question about a `workload`, and a note for the reader."""

    name: str
    title: str
    kind: str
    workload: Mapping[str, object]
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """A library's value by one method, with its median seconds of `turns` turns; or why there is none, `refused`."""

    library: str
    method: str
    value: float | None = None
    cpu: float = 0.0
    wall: float = 0.0
    refused: str = ""
    turns: int = 0


Found = Sequence[tuple[Question, tuple[float, float], Sequence[Answer]]]


def markdown(found: Found, machine: str, versions: Sequence[str]) -> str:
    """For every list of questions with ends of their truths and answers, the summary and a table for each question."""
    parts = [f"{machine}; {', '.join(versions)}.", _summary(found)]
    for question, truth, answers in found:
        parts.append(f"### {question.title[0].upper()}{question.title[1:]}")
        parts.append(f"The truth is {truth[1]:.13g}.{_sentence(question.note)}")
        parts.append(_table(truth, answers))
    return "\n\n".join(parts) + "\n"


def write_section(path: Path, heading: str, text: str) -> None:
    """Puts `text` under the second-level `heading` of the page, in the place of what stood there; other sections
    stay."""
    page = path.read_text(encoding="utf-8") if path.exists() else "# Bench\n"
    before, found, rest = page.partition(f"\n## {heading}\n")
    _, other, after = rest.partition("\n## ")
    tail = f"\n## {after}" if found and other else ""
    path.write_text(f"{before.rstrip()}\n\n## {heading}\n\n{text.rstrip()}\n{tail}", encoding="utf-8")


def _summary(found: Found) -> str:
    lines = [
        f"| question | parco, processor time | fastest safe peer within {TIGHT:.0%} | ratio |",
        "|---|---|---|---|",
    ]
    for question, truth, answers in found:
        ours = _ours(answers)
        tight = [answer for answer in answers if answer.library != OURS and _is_tight(answer, truth)]
        best = min(tight, key=lambda answer: answer.cpu, default=None)
        told = "none" if best is None else f"{_name(best)}, {_time(best.cpu)}"
        ratio = "" if best is None or ours is None else _ratio(best.cpu / ours.cpu)
        lines.append(f"| {question.title} | {_time(ours.cpu) if ours else 'none'} | {told} | {ratio} |")
    return "\n".join(lines)


def _table(truth: tuple[float, float], answers: Sequence[Answer]) -> str:
    lines = [
        "| accountant | answer | over the truth | processor | clock | processor, over parco's | turns |",
        "|---|---|---|---|---|---|---|",
    ]
    ours = _ours(answers)
    for answer in answers:
        if answer.value is None:
            reason = answer.refused.replace("|", "/").replace("\n", " ")
            lines.append(f"| {_name(answer)} | none: {reason} | | | | | |")
            continue
        ratio = "" if ours is None else _ratio(answer.cpu / ours.cpu)
        cells = [_name(answer), f"{answer.value:.10g}", _excess(answer.value, truth), _time(answer.cpu)]
        lines.append(f"| {' | '.join([*cells, _time(answer.wall), ratio, str(answer.turns)])} |")
    return "\n".join(lines)


def _ours(answers: Sequence[Answer]) -> Answer | None:
    return next((answer for answer in answers if answer.library == OURS and answer.value is not None), None)


def _is_tight(answer: Answer, truth: tuple[float, float]) -> bool:
    return answer.value is not None and truth[0] <= answer.value <= truth[1] * (1 + TIGHT)


def _excess(value: float, truth: tuple[float, float]) -> str:
    low, high = truth
    if not value >= low:
        return f"**{1 - value / low:.1e} below: unsafe**" if value < low else "**no number: unsafe**"
    return "0" if value <= high else f"{value / high - 1:.1e}"


def _name(answer: Answer) -> str:
    return f"{answer.library} {answer.method}".strip()


def _sentence(note: str) -> str:
    return f" {note[0].upper()}{note[1:]}." if note else ""


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
