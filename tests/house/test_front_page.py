"""What is public: names with a docstring, imported fast."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from functools import partial

import pytest

import parco

PUBLIC = [
    "AbsoluteError",
    "Accesses",
    "Answer",
    "Ask",
    "BoundsAnswer",
    "BoundsPlan",
    "BudgetError",
    "BusyError",
    "Contract",
    "ContractChangedError",
    "ContractError",
    "Cost",
    "DataError",
    "Explicit",
    "ExPost",
    "ForfeitedError",
    "Geometric",
    "HaltedError",
    "InternalError",
    "KeyReuseError",
    "KeysAnswer",
    "Ledger",
    "LedgerFormatError",
    "Lifetime",
    "MeanAnswer",
    "MeanPlan",
    "Measure",
    "NotSignedError",
    "ParcoError",
    "Plan",
    "Predictive",
    "QuantileAnswer",
    "QuantilePlan",
    "Query",
    "QuestionError",
    "QuotaError",
    "Receipt",
    "RefinedError",
    "RelativeError",
    "Release",
    "RequestError",
    "Row",
    "ScheduledAsk",
    "Session",
    "SharperError",
    "Stopped",
    "StorageError",
    "SupersededError",
    "TopAnswer",
    "Validation",
    "VarianceAnswer",
    "VariancePlan",
    "VerificationError",
    "View",
    "accuracy_first",
    "combine",
    "histogram_quantiles",
    "leave_schedule",
    "lift_quota",
    "move_cap",
    "quotas",
    "release_until",
    "revise",
    "run_panel",
    "set_quota",
    "sign",
    "sign_schedule",
]

IMPORT_SECONDS = 0.3
HEAVY = ("duckdb", "pyarrow", "sqlalchemy", "sqlglot", "rich", "typer", "numpy", "scipy", "pandas", "altair")


def test_the_public_names_are_these() -> None:
    assert sorted(parco.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(parco, name).__doc__, name


def test_loading_every_public_name_loads_nothing_heavy() -> None:
    listed = f"import sys; from parco import *; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _least_seconds(statement: str) -> float:
    """Processor time of a statement in a new process, the least of five."""
    measured = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    run = partial(subprocess.run, [sys.executable, "-c", measured], capture_output=True, text=True, check=True)
    return min(float(run().stdout) for _ in range(5))


def test_importing_parco_takes_less_processor_time_than_the_limit() -> None:
    assert _least_seconds("import parco") < IMPORT_SECONDS


def test_loading_every_public_name_takes_a_few_times_the_import_of_its_largest_library() -> None:
    """A ratio, since machines differ: about 4 where it was measured."""
    assert _least_seconds("from parco import *") < 10 * _least_seconds("import pydantic.main")


def test_the_front_page_loads_each_name_from_where_type_checkers_see_it() -> None:
    page = ast.parse(inspect.getsource(parco))
    seen = {
        alias.name: node.module for node in ast.walk(page) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    del seen["import_module"], seen["TYPE_CHECKING"]
    assert seen == parco._HOME
    assert sorted(seen) == sorted(parco.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Sesion'"):
        parco.Sesion  # type: ignore[attr-defined]  # noqa: B018 - reading it is the test


def test_every_error_has_its_own_code_and_an_exit_code() -> None:
    public = [getattr(parco, name) for name in PUBLIC]
    errors = [one for one in public if inspect.isclass(one) and issubclass(one, parco.ParcoError)]
    assert len({error.code for error in errors}) == len(errors)
    assert {error.exit_code for error in errors} == {2, 3, 4, 5, 70}
