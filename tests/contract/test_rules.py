"""Rules, normal forms, truth values and dialects: what is refused, and what is one contract however it is written."""

from __future__ import annotations

import pytest

from parco.contract.contract import Contract
from parco.contract.rules import normal_text
from parco.errors import ContractError
from tests.shop import contract_text

from .document import DOCUMENT, changed, parse

BASE = Contract.parse(DOCUMENT)
COST, AGE, WARD, DAY = 'upper = "20"', "upper = 120", 'keys = ["north", "south"]', 'type = "date"'
CSV = "[unit]"


def faults(text: str) -> list[str]:
    with pytest.raises(ContractError) as caught:
        Contract.parse(text)
    found = caught.value.facts["faults"]
    assert isinstance(found, list)
    return found


def added(old: str, line: str) -> str:
    return changed((old, f"{old}\n{line}"))


def dialect(lines: str) -> str:
    return changed((CSV, f"[data.csv]\n{lines}\n[unit]"))


# The text of the contract above as it was signed before there were rules: old ledgers hold it.
OLD_TEXT = (
    '{"bins":{"month":{"column":"day","every":"month","first":"2024-01","last":"2024-06"}},"budget":{"default_share":'
    '"0.05","delta":"0.000001","delta_mechanisms":"0","epsilon":"1","measure":"gdp","receipt_order":"8"},"columns":'
    '{"age":{"keys":[0,1,2],"lower":"0","type":"integer","upper":"120"},"cost":{"lattice":"0.05","lower":"-10","type":'
    '"decimal","upper":"20"},"day":{"type":"date"},"ward":{"keys":["north","south"],"type":"text"}},"data":{"name":'
    '"visits","source":"visits.csv","version":"1"},"format":1,"name":"clinic","purpose":"Visits to a clinic","unit":'
    '{"column":"patient","groups":3,"neighbours":"add-or-remove","rows":2},"unprotected":"none"}'
)
OLD_TERMS = (
    '{"delta":"0.000001","delta_mechanisms":"0","measure":"gdp","neighbours":"add-or-remove","receipt_order":"8",'
    '"unit":"patient"}'
)


def test_a_contract_that_declares_no_rule_has_the_text_it_always_had() -> None:
    assert (BASE.text, BASE.terms) == (OLD_TEXT, OLD_TERMS)


DEFAULTS = [
    (COST, 'null = "drop"\nnan = "drop"\ninfinity = "clamp"\nunparsed = "drop"\nclamp = "row"'),
    (AGE, 'null = "drop"\ninfinity = "clamp"\nclamp = "row"'),
    (WARD, 'null = "drop"\nnormal = []'),
    (WARD, 'normal = ["nfc"]'),
    (DAY, "formats = []"),
    ("rows = 2", "normal = []"),
    ('version = "1"', "[data.csv]"),
    ('version = "1"', '[data.csv]\ndelimiter = ","\nquote = \'"\'\nencoding = "utf-8"\ndecimal = "."\nheader = true'),
    ('version = "1"', "[data.csv]\nnulls = []\nnames = []"),
]


@pytest.mark.parametrize("change", DEFAULTS, ids=lambda change: change[1])
def test_writing_a_default_changes_nothing(change: tuple[str, str]) -> None:
    contract = Contract.parse(added(*change))
    assert (contract.text, contract.digest, contract.terms) == (BASE.text, BASE.digest, BASE.terms)


MEANINGS = [
    (COST, "null = 0"),
    (COST, 'nan = "0.05"'),
    (COST, 'infinity = "drop"'),
    (COST, "infinity = 20"),
    (COST, "unparsed = -10"),
    (COST, 'clamp = "unit"'),
    (COST, 'clamp = "unit"\nrow_lower = -100\nrow_upper = 100'),
    (AGE, "null = 2"),
    (WARD, 'null = "north"'),
    (WARD, 'normal = ["casefold"]'),
    (WARD, 'normal = ["strip", "casefold"]'),
    (DAY, 'formats = ["%d.%m.%Y"]'),
    ("rows = 2", 'normal = ["nfc"]'),
    ('version = "1"', '[data.csv]\ndelimiter = ";"'),
    ('version = "1"', '[data.csv]\ndecimal = ","'),
    ('version = "1"', '[data.csv]\nnulls = ["-"]'),
]


def test_every_rule_changes_the_text_and_the_text_gives_it_back() -> None:
    contracts = [Contract.parse(added(*change)) for change in MEANINGS]
    assert len({contract.digest for contract in [BASE, *contracts]}) == len(MEANINGS) + 1
    for contract in contracts:
        again = Contract.from_text(contract.text)
        assert (again, again.text) == (contract, contract.text)


def test_the_order_of_forms_and_of_null_texts_says_nothing() -> None:
    one, two = (
        Contract.parse(added("rows = 2", f"normal = {forms}")) for forms in ('["strip","nfc"]', '["nfc","strip"]')
    )
    assert (one.text, one.terms) == (two.text, two.terms)
    one, two = (Contract.parse(dialect(f"nulls = {nulls}")) for nulls in ('["-","NA","-"]', '["NA","-"]'))
    assert one.text == two.text


def test_another_normal_form_of_the_unit_is_another_unit() -> None:
    assert Contract.parse(added("rows = 2", 'normal = ["casefold"]')).terms != BASE.terms


RULE = 'give "drop" or a number'


@pytest.mark.parametrize(
    ("old", "line", "place", "words"),
    [
        (COST, 'null = "zero"', "columns.cost.null", RULE),
        (COST, "null = true", "columns.cost.null", RULE),
        (COST, "nan = nan", "columns.cost.nan", RULE),
        (COST, "nan = inf", "columns.cost.nan", RULE),
        (COST, 'null = "clamp"', "columns.cost.null", RULE),
        (COST, "unparsed = []", "columns.cost.unparsed", RULE),
        (COST, 'infinity = "bound"', "columns.cost.infinity", 'give "clamp", "drop" or a number'),
        (COST, "null = 21", "columns.cost", "null must be a multiple of lattice within the bounds"),
        (COST, 'nan = "-10.05"', "columns.cost", "nan must be a multiple of lattice within the bounds"),
        (COST, 'infinity = "0.01"', "columns.cost", "infinity must be a multiple of lattice"),
        (COST, 'unparsed = "1/3"', "columns.cost", "unparsed must be a multiple of lattice"),
        (COST, 'clamp = "group"', "columns.cost.clamp", 'give "row" or "unit"'),
        (COST, "clamp = true", "columns.cost.clamp", 'give "row" or "unit"'),
        (COST, "row_lower = 0\nrow_upper = 1", "columns.cost", 'need clamp = "unit"'),
        (COST, 'clamp = "unit"\nrow_upper = 1', "columns.cost", "give both of row_lower and row_upper"),
        (COST, 'clamp = "unit"\nrow_lower = 2\nrow_upper = 1', "columns.cost", "row_lower is above row_upper"),
        (COST, 'clamp = "unit"\nrow_lower = 0\nrow_upper = "0.01"', "columns.cost", "multiples of lattice"),
        (COST, 'clamp = "unit"\nrow_lower = 0\nrow_upper = 1e18', "columns.cost", "10^18 lattice steps"),
        (COST, 'clamp = "unit"\nrow_lower = 0\nrow_upper = 1\nnull = 2', "columns.cost", "null must be"),
        (AGE, "null = 3", "columns.age", "null must be one of the keys"),
        (AGE, 'nan = "1.5"', "columns.age", "nan must be a multiple"),
        (WARD, 'null = "east"', "columns.ward", 'null must be "drop" or one of the keys'),
        (WARD, "null = 1", "columns.ward.null", "give text in quotes"),
        (WARD, 'normal = ["upper"]', "columns.ward.normal", 'give a list of "nfc"'),
        (WARD, 'normal = "casefold"', "columns.ward.normal", 'give a list of "nfc"'),
        ("rows = 2", 'normal = ["soundex"]', "unit.normal", 'give a list of "nfc"'),
        (DAY, 'formats = "%Y-%m-%d"', "columns.day.formats", "give a list of patterns"),
        (DAY, 'formats = ["%Y-%m"]', "columns.day.formats", "a year, a month and a day"),
        (DAY, 'formats = ["%Y-%m-%d %y"]', "columns.day.formats", "a year, a month and a day"),
        (DAY, 'formats = ["%d.%m.%Y %Z"]', "columns.day.formats", "a pattern knows"),
        (DAY, 'formats = ["%-d.%m.%Y"]', "columns.day.formats", "a pattern knows"),
        (DAY, 'formats = ["%Y%m%d%"]', "columns.day.formats", "a pattern knows"),
        (DAY, 'formats = ["%Y\\u0000%m%d"]', "columns.day.formats", "control characters"),
        (DAY, 'nan = "drop"', "columns.day.nan", "unknown key"),
        (WARD, 'nan = "drop"', "columns.ward.nan", "unknown key"),
    ],
    ids=lambda value: value,
)
def test_a_rule_that_makes_no_sense_is_refused(old: str, line: str, place: str, words: str) -> None:
    (fault,) = faults(added(old, line))
    assert fault.startswith(f"{place}: ")
    assert words in fault


@pytest.mark.parametrize(
    ("null", "words"), [("a\\u001bb", "control characters"), ("a\\u2028b", "control"), ("x" * 201, "at most 200")]
)
def test_what_a_missing_text_counts_as_is_a_key_that_can_be_selected(null: str, words: str) -> None:
    selected = '[columns.city]\ntype = "text"\nkeys = "select"\nnull = "{}"\n'
    with pytest.raises(ContractError, match=words):
        Contract.parse(contract_text(columns=selected.format(null)))
    assert Contract.parse(contract_text(columns=selected.format("x" * 200)))


def test_keys_that_are_one_in_their_normal_form_are_refused() -> None:
    keys = 'keys = ["north", "North", " north"]'
    assert len(parse((WARD, keys)).keys("ward") or ()) == 3
    for forms in ('["casefold"]', '["strip"]'):
        (fault,) = faults(changed((WARD, f"{keys}\nnormal = {forms}")))
        assert fault.startswith("columns.ward: declared twice as keys, in their normal form: north")


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        ('delimiter = ":"', "data.csv.delimiter", "Input should be"),
        ('delimiter = ""', "data.csv.delimiter", "Input should be"),
        ("delimiter = 5", "data.csv.delimiter", "Input should be"),
        ('quote = "`"', "data.csv.quote", "Input should be"),
        ('encoding = "UTF-8"', "data.csv.encoding", "encoding is one of utf-8, latin-1, utf-16"),
        ('encoding = "cp1252"', "data.csv.encoding", "encoding is one of"),
        ('decimal = "\'"', "data.csv.decimal", "Input should be"),
        ('nulls = "NA"', "data.csv.nulls", "give a list"),
        ('nulls = [""]', "data.csv.nulls.0", "at least 1 character"),
        ("nulls = [1]", "data.csv.nulls.0", "give text in quotes"),
        ("header = 1", "data.csv.header", "boolean"),
        ("header = false", "data.csv", "names must list the columns"),
        ('names = ["a"]', "data.csv", "names are for a file without a header"),
        ('header = false\nnames = ["a", "a"]', "data.csv", "declared twice as a column"),
        ('header = false\nnames = ["a", ""]', "data.csv.names.1", "at least 1 character"),
        ("sniff = true", "data.csv.sniff", "unknown key"),
    ],
    ids=lambda value: value,
)
def test_a_dialect_that_makes_no_sense_is_refused(lines: str, place: str, words: str) -> None:
    (fault,) = faults(dialect(lines))
    assert fault.startswith(f"{place}: ")
    assert words in fault


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        ('keys = ["true"]', "columns.f.keys", "unknown key"),
        ('true = "yes"', "columns.f.true", "give a list"),
        ("true = []", "columns.f.true", "at least 1 item"),
        ('true = [""]', "columns.f.true.0", "at least 1 character"),
        ('true = ["1"]\nfalse = ["1"]', "columns.f", "declared twice as a spelling"),
        ('true = ["false"]', "columns.f", "declared twice as a spelling"),
        ('null = "maybe"', "columns.f.null", "Input should be"),
        ("null = true", "columns.f.null", "Input should be"),
    ],
    ids=lambda value: value,
)
def test_truth_values_that_make_no_sense_are_refused(lines: str, place: str, words: str) -> None:
    table = f'[columns.f]\ntype = "boolean"\n{lines}\n[columns.day]'
    fault, *_ = faults(changed(("[columns.day]", table)))
    assert fault.startswith(f"{place}: ")
    assert words in fault


def test_a_truth_value_has_two_groups() -> None:
    contract = parse(("[columns.day]", '[columns.f]\ntype = "boolean"\ntrue = ["ja"]\n[columns.day]'))
    assert contract.keys("f") == ("false", "true")
    assert "f" in contract.groupings
    assert Contract.from_text(contract.text) == contract


@pytest.mark.parametrize(
    ("text", "forms", "wanted"),
    [
        ("A\u030asa ", None, "\u00c5sa "),
        ("A\u030asa ", ("casefold",), "\u00e5sa "),
        (" \u00a0A\tb \n", ("strip",), "A\tb"),
        ("STRASSE straße İ Σ", ("casefold",), "strasse straße i σ"),
        ("", ("casefold", "strip"), ""),
        ("H\u0331", ("casefold",), "\u1e96"),
        ("\u0130\u0301J\u030c", ("casefold",), "\u00ed\u01f0"),
    ],
)
def test_normal_forms(text: str, forms: tuple[str, ...] | None, wanted: str) -> None:
    assert normal_text(text, forms) == wanted


def test_a_key_with_a_character_unknown_here_has_no_accents_to_take_off() -> None:
    unknown = '[columns.w]\ntype = "text"\nkeys = ["\U0001fbff", "a\U000e0fff"]\n'
    Contract.parse(contract_text(columns=unknown))
    with pytest.raises(ContractError, match="does not know"):
        Contract.parse(contract_text(columns=unknown + 'normal = ["accents"]\n'))
