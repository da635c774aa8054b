"""Each fault of a contract is refused, at its place, before any data is looked at."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from parco.contract.contract import Contract
from parco.contract.fields import CELLS_MAX
from parco.errors import ContractError, RequestError

from .document import DOCUMENT, changed, parse

LONG = "x" * 201
BUDGET = 'measure = "gdp"\nepsilon = "1"\ndelta = "1e-6"'
PURE = 'measure = "pure"\nepsilon = "1"'


def faults(text: str) -> list[str]:
    with pytest.raises(ContractError) as caught:
        Contract.parse(text)
    found = caught.value.facts["faults"]
    assert isinstance(found, list)
    assert all(fault in str(caught.value) for fault in found)
    return found


def test_the_document_itself_is_valid() -> None:
    contract = Contract.parse(DOCUMENT)
    assert contract.keys("month") == ("2024-01", "2024-02", "2024-03", "2024-04", "2024-05", "2024-06")
    assert contract.keys("ward") == ("north", "south")
    assert contract.keys("age") == (0, 1, 2)
    assert contract.keys("cost") is None
    assert contract.keys("nobody") is None


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("format = 1", "surprise"),
        ("[data]", "data.surprise"),
        ("[unit]", "unit.surprise"),
        ("[budget]", "budget.surprise"),
        ("[columns.day]", "columns.day.surprise"),
        ("[columns.age]", "columns.age.surprise"),
        ("[columns.cost]", "columns.cost.surprise"),
        ("[columns.ward]", "columns.ward.surprise"),
        ("[bins.month]", "bins.month.surprise"),
    ],
)
def test_an_unknown_key_is_refused_in_every_table(table: str, place: str) -> None:
    assert faults(changed((table, f"{table}\nsurprise = 1"))) == [f"{place}: unknown key"]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('name = "clinic"\n', "name"),
        ('purpose = "Visits to a clinic"\n', "purpose"),
        ('unprotected = "none"\n', "unprotected"),
        ("format = 1\n", "format"),
        ('name = "visits"\n', "data.name"),
        ('column = "patient"\n', "unit.column"),
        ('neighbours = "add-or-remove"\n', "unit.neighbours"),
        ("groups = 3\n", "unit.groups"),
        ("rows = 2\n", "unit.rows"),
        ("lower = 0\n", "columns.age.lower"),
        ("upper = 120\n", "columns.age.upper"),
        ('lattice = "0.05"\n', "columns.cost.lattice"),
        ('keys = ["north", "south"]\n', "columns.ward.keys"),
        ('every = "month"\n', "bins.month.every"),
        ('first = "2024-01"\n', "bins.month.first"),
    ],
)
def test_what_a_proof_needs_has_no_default(line: str, place: str) -> None:
    (fault,) = faults(changed((line, "")))
    assert fault.startswith(f"{place}: ")


@pytest.mark.parametrize("old", ["groups = 3", "rows = 2"])
@pytest.mark.parametrize("value", ["0", "-1", "true", "1.0", "1.5", '"2"', "1e3", "nan", "1000000001"])
def test_limits_are_whole_numbers_above_zero(old: str, value: str) -> None:
    name = old.partition(" ")[0]
    (fault,) = faults(changed((old, f"{name} = {value}")))
    assert fault.startswith(f"unit.{name}: ")


@pytest.mark.parametrize("value", ["true", "1.0", '"1"', "2", "0"])
def test_only_the_number_one_is_format_one(value: str) -> None:
    (fault,) = faults(changed(("format = 1", f"format = {value}")))
    assert fault.startswith("format: ")


@pytest.mark.parametrize("value", ["Replace", "replace-one", "add-or-remove ", "Add-Or-Remove", ""])
def test_other_neighbours_are_refused(value: str) -> None:
    (fault,) = faults(changed(('"add-or-remove"', f'"{value}"')))
    assert fault.startswith("unit.neighbours: ")
    assert "'add-or-remove'" in fault
    assert "'replace'" in fault


@pytest.mark.parametrize("value", ['"all"', '""', "[]", "true", '[""]', '["a\\u0007"]'])
def test_unprotected_is_none_or_a_list_of_names(value: str) -> None:
    assert {
        fault.partition(":")[0] for fault in faults(changed(('unprotected = "none"', f"unprotected = {value}")))
    } <= {
        "unprotected",
        "unprotected.0",
    }


# Numbers


@pytest.mark.parametrize("name", ["epsilon", "delta", "receipt_order", "default_share"])
@pytest.mark.parametrize(
    "value",
    ["nan", "+nan", "inf", "-inf", "true", "false", '"NaN"', '"Infinity"', '""', '"abc"', '"0x1"', '"1_0"', '"1/0"'],
)
def test_a_budget_is_made_of_finite_numbers(name: str, value: str) -> None:
    lines = {"epsilon": '"1"', "delta": '"1e-6"', "receipt_order": "8", "default_share": '"0.05"'}
    (fault,) = faults(changed((f"{name} = {lines[name]}", f"{name} = {value}")))
    assert fault.startswith(f"budget.{name}: ")


@pytest.mark.parametrize("field", ["epsilon", "total", "mu"])
@pytest.mark.parametrize("value", ["0", "-0.0", "-1", '"-1e-9"', '"0/5"'])
def test_a_budget_is_above_zero(field: str, value: str) -> None:
    text = changed(('epsilon = "1"', f"{field} = {value}"))
    assert faults(text) == ["budget: the budget must be above 0"]


@pytest.mark.parametrize("value", ['"1e-16"', '"1e-400"', "9224", "1e300", '"1e400"', '"9223372036854775808e-15"'])
def test_a_budget_fits_an_account(value: str) -> None:
    (fault,) = faults(changed((BUDGET, f'measure = "pure"\nepsilon = {value}')))
    assert fault.startswith("budget: the budget is outside what an account can hold")


@pytest.mark.parametrize("epsilon", ["9000", "1e5", "1.0000001e5", "1e30", "1e300"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-300"])
def test_a_gdp_budget_that_no_account_holds_is_the_contracts_fault(epsilon: str, delta: str) -> None:
    (fault,) = faults(changed(('epsilon = "1"', f'epsilon = "{epsilon}"'), ('delta = "1e-6"', f'delta = "{delta}"')))
    assert fault.startswith("budget: the budget is outside what an account can hold")


def test_the_largest_and_the_least_account_are_allowed() -> None:
    assert parse((BUDGET, 'measure = "pure"\nepsilon = "9223.372036854775807"')).budget.cap_units == 2**63 - 1
    assert parse((BUDGET, 'measure = "pure"\nepsilon = "1e-15"')).budget.cap_units == 1


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (f"{BUDGET}\ntotal = 1", "exactly one of epsilon, mu, total"),
        (f"{BUDGET}\nmu = 1", "exactly one of epsilon, mu, total"),
        (f"{PURE}\ntotal = 1", "exactly one of epsilon, total"),
        ('measure = "gdp"\ndelta = "1e-6"', "exactly one of epsilon, mu, total"),
        ('measure = "pure"', "exactly one of epsilon, total"),
        ('measure = "pure"\nmu = 1', "exactly one of epsilon, total"),
        ('measure = "gdp"\nrho = 1\ndelta = "1e-6"', "exactly one of epsilon, mu, total"),
        ('measure = "zcdp"\nmu = 1\ndelta = "1e-6"', "exactly one of epsilon, rho, total"),
        ('measure = "renyi"\norder = 4\nrho = 1\ndelta = "1e-6"', "exactly one of epsilon, epsilon_at_order, total"),
        ('measure = "renyi"\nepsilon = 1\ndelta = "1e-6"', "needs an order"),
        (f"{BUDGET}\norder = 4", "needs an order"),
        ('measure = "renyi"\norder = 1\nepsilon_at_order = 1\ndelta = "1e-6"', "must be above 1"),
        ('measure = "renyi"\norder = 4\nreceipt_order = 5\ntotal = 1\ndelta = "1e-6"', "one order"),
        ('measure = "zcdp"\nrho = 1', "a zcdp budget needs delta"),
        (f'{BUDGET}\ndelta_mechanisms = "1e-5"', "delta_mechanisms <= delta"),
        (f'{BUDGET}\ndelta_mechanisms = "-1e-7"', "delta_mechanisms <= delta"),
        (f'{BUDGET}\ndelta_mechanisms = "1e-6"', "a gdp budget needs delta"),
        (f'{PURE}\ndelta = "1e-6"', "a pure budget converts nothing"),
        ('measure = "gdp"\nepsilon = "1"', "a gdp budget needs delta"),
        ('epsilon = "1"', "a gdp budget needs delta"),
        ('measure = "gdp"\ntotal = "0.5"', "a gdp budget needs delta"),
        ('epsilon = "1"\ndelta = 0', "a gdp budget needs delta"),
        ('epsilon = "1"\ndelta = 1', "delta < 1 must hold"),
        ('epsilon = "1"\ndelta = "-1e-6"', "delta < 1 must hold"),
        ('epsilon = "1"\ndelta = "9e-301"', "a gdp budget needs delta"),
        (f"{PURE}\nreceipt_order = 1", "receipt_order must be above 1"),
        (f'{PURE}\nreceipt_order = "0.5"', "receipt_order must be above 1"),
        (f"{PURE}\ndefault_share = 0", "default_share must be above 0"),
        (f"{PURE}\ndefault_share = -0.1", "default_share must be above 0"),
        (f'{PURE}\ndefault_share = "1.0000000001"', "default_share must be above 0 and at most 1"),
    ],
)
def test_a_budget_says_one_thing(budget: str, words: str) -> None:
    plain = (("receipt_order = 8\n", ""), ('default_share = "0.05"\n', ""))
    (fault,) = faults(changed((BUDGET, budget), *plain))
    assert fault.startswith("budget: ")
    assert words in fault


def test_an_unknown_measure_is_refused() -> None:
    (fault,) = faults(changed(('measure = "gdp"', 'measure = "laplace"')))
    assert fault.startswith("budget.measure: ")


# Columns


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([('lower = "-10"', 'lower = "20.05"')], "lower is above upper"),
        ([('upper = "20"', 'upper = "-10.05"')], "lower is above upper"),
        ([('upper = "20"', 'upper = "20.01"')], "multiples of lattice"),
        ([('lower = "-10"', 'lower = "-10.000000000001"')], "multiples of lattice"),
        ([('lattice = "0.05"', 'lattice = "0.3"')], "multiples of lattice"),
        ([('lattice = "0.05"', "lattice = 0")], "lattice must be above 0"),
        ([('lattice = "0.05"', 'lattice = "-0.05"')], "lattice must be above 0"),
        ([('lattice = "0.05"', 'lattice = "1/3"')], "at most 12 places"),
        ([('lattice = "0.05"', 'lattice = "1e-13"')], "at most 12 places"),
        ([('upper = "20"', 'upper = "1000000000000000001"')], "at most 10^18"),
        ([('lattice = "0.05"', 'lattice = "1e-12"'), ('upper = "20"', 'upper = "1000001"')], "at most 10^18"),
        ([('lattice = "0.05"', 'lattice = "1e30"'), ('upper = "20"', "upper = 0"), ('"-10"', '"-1e30"')], "10^18"),
    ],
)
def test_bounds_and_lattice_fit_each_other(changes: list[tuple[str, str]], words: str) -> None:
    (fault,) = faults(changed(*changes))
    assert fault.startswith("columns.cost: ")
    assert words in fault


@pytest.mark.parametrize("old", ['lower = "-10"', 'upper = "20"', 'lattice = "0.05"'])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "true", '"nan"', '"ten"', "[]", "1979-05-27"])
def test_bounds_and_lattice_are_finite_numbers(old: str, value: str) -> None:
    name = old.partition(" ")[0]
    (fault,) = faults(changed((old, f"{name} = {value}")))
    assert fault.startswith(f"columns.cost.{name}: ")


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ([("upper = 120", 'upper = "120.5"')], "columns.age", "multiples of lattice"),
        ([("upper = 120", 'upper = 120\nlattice = "0.5"')], "columns.age", "an integer column has lattice 1"),
        ([("keys = [0, 1, 2]", "keys = []")], "columns.age", "between 1 and"),
        ([("keys = [0, 1, 2]", "keys = [0, 1, 0]")], "columns.age", "declared twice as keys: 0"),
        ([("keys = [0, 1, 2]", "keys = [0, 1000000000000000001]")], "columns.age", "at most 10^18"),
        ([("keys = [0, 1, 2]", "keys = [0, true]")], "columns.age.keys.1", ""),
        ([("keys = [0, 1, 2]", 'keys = [0, "1"]')], "columns.age.keys.1", ""),
        ([("keys = [0, 1, 2]", "keys = [0, 1.0]")], "columns.age.keys.1", ""),
        ([('["north", "south"]', "[]")], "columns.ward.keys", "between 1 and"),
        ([('["north", "south"]', '["a", "b", "a"]')], "columns.ward", "declared twice as keys: a"),
        ([('["north", "south"]', '["a", 1]')], "columns.ward.keys.1", ""),
        ([('["north", "south"]', '"north"')], "columns.ward.keys", ""),
        ([('["north", "south"]', '["a\\u0000b"]')], "columns.ward.keys.0", "control characters"),
        ([('["north", "south"]', '["a\\nb"]')], "columns.ward.keys.0", "control characters"),
        ([('["north", "south"]', '["a\\u009b"]')], "columns.ward.keys.0", "control characters"),
        ([('type = "date"', 'type = "time"')], "columns.day", "type must be one of"),
        ([('type = "date"\n', "")], "columns.day", "type"),
    ],
)
def test_columns_and_their_keys(changes: list[tuple[str, str]], place: str, words: str) -> None:
    (fault,) = faults(changed(*changes))
    assert fault.startswith(f"{place}: ")
    assert words in fault


def test_keys_equal_in_nfc_are_one_key() -> None:
    composed, decomposed = "größe", unicodedata.normalize("NFD", "größe")
    assert composed != decomposed
    (fault,) = faults(changed(('["north", "south"]', f'["{composed}", "{decomposed}"]')))
    assert fault == f"columns.ward: declared twice as keys: {composed}"


def test_there_are_no_more_keys_than_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CELLS_MAX == 1_000_000
    monkeypatch.setattr("parco.contract.fields.CELLS_MAX", 3)
    parse(('["north", "south"]', '["a", "b", "c"]'))
    (fault,) = faults(changed(('["north", "south"]', '["a", "b", "c", "d"]')))
    assert fault == "columns.ward: declare between 1 and 3 keys"


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        (
            [('column = "day"', 'column = "cost"')],
            "bins.month",
            "cost is not declared as a column of type date",
        ),
        (
            [('column = "day"', 'column = "ward"')],
            "bins.month",
            "ward is not declared as a column of type date",
        ),
        ([('column = "day"', 'column = "nothing"')], "bins.month", "nothing is not declared"),
        ([('column = "day"', 'column = "patient"')], "bins.month", "patient is not declared"),
        ([('last = "2024-06"', 'last = "2023-12"')], "bins.month", "last is before first"),
        ([('every = "month"', 'every = "hour"')], "bins.month.every", "'month'"),
        ([('first = "2024-01"', 'first = "2024-13"')], "bins.month.first", '"1997-01"'),
        ([('first = "2024-01"', 'first = "2024-1"')], "bins.month.first", '"1997-01"'),
        ([('first = "2024-01"', 'first = "24-01"')], "bins.month.first", '"1997-01"'),
        ([('first = "2024-01"', 'first = "2024-W01"')], "bins.month.first", '"1997-01"'),
        ([('first = "2024-01"', 'first = "2024-01-01"')], "bins.month.first", '"1997-01"'),
        ([('first = "2024-01"', "first = 2024-01-01")], "bins.month.first", '"1997-01"'),
        ([('first = "2024-01"', 'first = "0000-12"')], "bins.month.first", '"1997-01"'),
        ([('first = "2024-01"', "first = 202401")], "bins.month.first", '"1997-01"'),
    ],
)
def test_bins_are_months_of_a_date_column(changes: list[tuple[str, str]], place: str, words: str) -> None:
    (fault,) = faults(changed(*changes))
    assert fault.startswith(f"{place}: ")
    assert words in fault


# Names


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ([('column = "patient"', 'column = "age"')], "age"),
        ([('column = "patient"', 'column = "month"')], "month"),
        ([("[bins.month]", "[bins.ward]")], "ward"),
        ([("[bins.month]", "[bins.patient]")], "patient"),
    ],
)
def test_unit_columns_and_bins_have_names_of_their_own(changes: list[tuple[str, str]], name: str) -> None:
    assert faults(changed(*changes)) == [f"declared twice as the unit, a column or bins: {name}"]


def test_names_equal_in_nfc_are_one_name() -> None:
    composed, decomposed = "größe", unicodedata.normalize("NFD", "größe")
    two = (("[columns.age]", f'[columns."{composed}"]'), ("[columns.cost]", f'[columns."{decomposed}"]'))
    assert faults(changed(*two)) == [f"columns: declared twice as a column or bins: {composed}"]
    two = (('column = "patient"', f'column = "{composed}"'), ("[columns.cost]", f'[columns."{decomposed}"]'))
    assert faults(changed(*two)) == [f"declared twice as the unit, a column or bins: {composed}"]
    two = (("[bins.month]", f'[bins."{composed}"]'), ("[columns.cost]", f'[columns."{decomposed}"]'))
    assert faults(changed(*two)) == [f"declared twice as the unit, a column or bins: {composed}"]


def test_a_key_written_twice_is_refused() -> None:
    with pytest.raises(ContractError, match="is not TOML"):
        parse(("groups = 3", "groups = 3\ngroups = 4"))
    with pytest.raises(ContractError, match="is not TOML"):
        parse(("[columns.cost]", "[columns.age]"))


@pytest.mark.parametrize(
    ("old", "place"),
    [
        ('name = "clinic"', "name"),
        ('purpose = "Visits to a clinic"', "purpose"),
        ('name = "visits"', "data.name"),
        ('version = "1"', "data.version"),
        ('column = "patient"', "unit.column"),
        ('column = "day"', "bins.month.column"),
    ],
)
@pytest.mark.parametrize("value", ['""', '"a\\u0000"', '"a\\tb"', '"a\\u007f"', '"a\\u0085"', f'"{LONG}"', "5"])
def test_names_are_short_and_without_control_characters(old: str, place: str, value: str) -> None:
    (fault,) = faults(changed((old, f"{old.partition(' ')[0]} = {value}")))
    assert fault.startswith(f"{place}: ")


@pytest.mark.parametrize("name", ['""', '"a\\nb"', f'"{LONG}"'])
@pytest.mark.parametrize("table", ["columns.cost", "bins.month"])
def test_so_are_names_of_columns_and_bins(name: str, table: str) -> None:
    kind = table.partition(".")[0]
    (fault,) = faults(changed((f"[{table}]", f"[{kind}.{name}]")))
    assert fault.startswith(f"{kind}.")


# The document


def test_all_faults_are_listed_at_once() -> None:
    found = faults(changed(("groups = 3", "groups = 0"), ('lower = "-10"', "lower = nan"), ("[data]", "[data]\nx = 1")))
    assert sorted(fault.partition(":")[0] for fault in found) == ["columns.cost.lower", "data.x", "unit.groups"]


def test_blanks_are_listed_by_place_before_anything_else_is_said() -> None:
    text = changed(
        ('name = "visits"', 'name = "FILL IN"'),
        ("groups = 3", 'groups = "FILL IN"'),
        ('epsilon = "1"', 'epsilon = "FILL IN"'),
        ('lower = "-10"', 'lower = "FILL IN"'),
        ('["north", "south"]', '["north", "FILL IN"]'),
        ('first = "2024-01"', 'first = "FILL IN"'),
        ("rows = 2", "rows = -1"),
    )
    places = [
        "data.name",
        "unit.groups",
        "budget.epsilon",
        "columns.cost.lower",
        "columns.ward.keys",
        "bins.month.first",
    ]
    with pytest.raises(ContractError) as caught:
        Contract.parse(text, name="c.toml")
    assert caught.value.facts["blanks"] == places
    assert str(caught.value) == f"c.toml: still to fill in: {', '.join(places)}"


@pytest.mark.parametrize(
    "text",
    [
        "format = ",
        "\x00",
        "x = " + "[" * 20_000 + "]" * 20_000,
        f"epsilon = {'1' * 5000}",
        "epsilon = 1e99999999999999999999",
    ],
    ids=["half a line", "nul", "nested", "5000 digits", "huge exponent"],
)
def test_what_is_no_document_is_a_contract_error(text: str) -> None:
    with pytest.raises(ContractError) as caught:
        Contract.parse(text, name="c.toml")
    assert "c.toml" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_contract_that_cannot_be_read_is_a_contract_error(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(DOCUMENT.replace("Visits", "Größe").encode("latin-1"))
    for path in (tmp_path / "missing.toml", tmp_path, latin):
        with pytest.raises(ContractError, match="give a TOML file in UTF-8"):
            Contract.read(path)


def test_a_contract_cannot_be_changed_once_read() -> None:
    contract = Contract.parse(DOCUMENT)
    with pytest.raises(ValueError, match="frozen"):
        contract.unit.rows = 5
    with pytest.raises(ValueError, match="frozen"):
        contract.budget = contract.budget


def test_a_refusal_is_a_request_error_with_exit_code_two() -> None:
    with pytest.raises(RequestError) as caught:
        parse(("groups = 3", "groups = 0"))
    assert (caught.value.code, caught.value.exit_code, caught.value.http_status) == ("contract", 2, 400)
