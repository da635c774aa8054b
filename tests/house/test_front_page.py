"""What is public: names with a docstring, imported fast."""

from __future__ import annotations

import subprocess
import sys

import parco

PUBLIC = [
    "Answer",
    "Ask",
    "BudgetError",
    "BusyError",
    "Contract",
    "ContractChangedError",
    "ContractError",
    "Cost",
    "DataError",
    "ForfeitedError",
    "HaltedError",
    "InternalError",
    "KeyReuseError",
    "LedgerFormatError",
    "MeanAnswer",
    "MeanPlan",
    "Measure",
    "NotSignedError",
    "ParcoError",
    "Plan",
    "Query",
    "QuestionError",
    "Receipt",
    "Release",
    "RequestError",
    "Row",
    "Session",
    "SharperError",
    "StorageError",
    "VerificationError",
    "move_cap",
    "revise",
    "sign",
]

IMPORT_SECONDS = 0.3
HEAVY = ("duckdb", "pyarrow", "sqlalchemy", "sqlglot", "rich", "typer", "numpy", "scipy", "pandas", "altair")


def test_the_public_names_are_these() -> None:
    assert sorted(parco.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(parco, name).__doc__, name


def test_importing_parco_loads_nothing_heavy() -> None:
    listed = f"import sys, parco; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_parco_takes_less_processor_time_than_the_limit() -> None:
    measured = "import time; t = time.process_time(); import parco; print(time.process_time() - t)"
    taken = [
        float(subprocess.run([sys.executable, "-c", measured], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(taken) < IMPORT_SECONDS, taken


def test_every_error_has_its_own_code_and_an_exit_code() -> None:
    errors = [getattr(parco, name) for name in PUBLIC if name.endswith("Error")]
    assert len({error.code for error in errors}) == len(errors)
    assert {error.exit_code for error in errors} == {2, 3, 4, 5, 70}
