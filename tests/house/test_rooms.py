"""The arrows between rooms, and a planted bad import to see that the check bites."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    # The copy comes first on the path, so that it is linted and not the installed package.
    environment = {"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(LINT, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_rooms_are_in_order(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "bad"),
    [
        ("queries/query.py", "parco.stores.sqlite"),
        ("engines/sql.py", "parco.ledger.entries"),
        ("stores/sqlite.py", "parco.queries.query"),
        ("noise/draw.py", "parco.privacy.gaussian"),
        ("contract/contract.py", "parco.queries.query"),
        ("ledger/accounts.py", "sqlalchemy"),
        ("cli/show.py", "parco"),
        ("session/session.py", "parco.cli.show"),
        ("session/session.py", "parco.reports.figures"),
        ("reports/figures.py", "parco.testing"),
    ],
)
def test_a_bad_import_is_found(copy: Path, module: str, bad: str) -> None:
    with (copy / "src" / "parco" / module).open("a", encoding="utf-8") as source:
        source.write(f"\nimport {bad}  # planted\n")
    done = lint(copy)
    assert done.returncode != 0
    assert "BROKEN" in done.stdout
