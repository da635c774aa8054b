"""The README's examples are run, in order, as a reader would run them."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import parco
from tests.shop import write_csv

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


# Three thousand customers who buy twice in 1997.
ROWS = [(number, f"1997-{number % 12 + 1:02d}-{number % 28 + 1:02d}", number % 90) for number in range(3_000)] * 2


def test_the_examples_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "purchases.csv", ROWS, header=["customer", "date", "dollars"])
    shown: dict[str, str] = {}
    for kind, text in BLOCKS:
        if kind == "console":
            shown |= {line: _run(line, tmp_path) for line in text.splitlines()}
        elif kind == "toml":
            name = "schedule.toml" if "[[release]]" in text else "contract.toml"
            (tmp_path / name).write_text(text, encoding="utf-8")
        elif kind == "python":
            shown["python"] = _python(text)
    assert {kind for kind, _ in BLOCKS} == {"sh", "console", "toml", "python"}
    released = json.loads(next(out for line, out in shown.items() if line.endswith("--json")))
    assert len(released["rows"]) == 18
    assert "tight" in shown["$ parco account schedule.toml --delta 1e-6"]
    assert "release 2: count by month" in shown["python"]  # the same question as on the command line: served
    assert "free, already stored" in shown["python"]


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    (commands,) = [text for kind, text in BLOCKS if kind == "sh"]
    targets = re.findall(r"^make (\w+)", commands, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def _run(line: str, folder: Path) -> str:
    program, *arguments = shlex.split(line.removeprefix("$ "))
    assert program == "parco"
    target = None
    if ">" in arguments:
        target = arguments[arguments.index(">") + 1]
        arguments = arguments[: arguments.index(">")]
    done: subprocess.CompletedProcess[str] = parco(*arguments, cwd=folder)
    if target is not None:
        (folder / target).write_text(done.stdout, encoding="utf-8")
    return done.stdout


def _python(text: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "README.md", "exec"), {})  # noqa: S102 - our own README
    return out.getvalue()
