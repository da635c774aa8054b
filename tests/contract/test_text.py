"""The canonical text: two files that say the same have one text and one digest, and each term changes both."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from parco.contract.contract import Contract
from parco.contract.document import blanks, parse_document
from parco.errors import ContractError, VerificationError

from .document import DOCUMENT, changed, parse

BASE = Contract.parse(DOCUMENT)


def test_the_text_gives_the_contract_back() -> None:
    again = Contract.from_text(BASE.text)
    assert (again, again.text, again.digest) == (BASE, BASE.text, BASE.digest)
    assert again.budget.cap_units == BASE.budget.cap_units
    assert again.terms == BASE.terms


@pytest.mark.parametrize(
    "changes",
    [
        [("groups = 3", "groups=3 # at most three")],
        [("[data]", "\n\n# who\n[data]")],
        [("[unit]", "[ unit ]")],
        [('name = "clinic"', "name = 'clinic'")],
        [('name = "clinic"', '"name" = "\\u0063linic"')],
        [('"0.05"\n\n[columns.day]', "0.05\n\n[columns.day]")],
        [('default_share = "0.05"', 'default_share = "1/20"')],
        [('default_share = "0.05"', 'default_share = "5e-2"')],
        [('default_share = "0.05"', 'default_share = " 0.0500 "')],
        [('default_share = "0.05"', 'default_share = "+.05"')],
        [('default_share = "0.05"\n', "")],
        [("receipt_order = 8\n", "")],
        [("receipt_order = 8", 'receipt_order = "8.000"')],
        [('measure = "gdp"\n', "")],
        [('version = "1"\n', "")],
        [('epsilon = "1"', "epsilon = 1.0")],
        [('delta = "1e-6"', 'delta = "0.000001"')],
        [('delta = "1e-6"', "delta = 1E-6")],
        [('lattice = "0.05"', "lattice = 5e-2")],
        [('lower = "-10"', "lower = -10")],
        [("upper = 120", 'upper = "120.0"')],
        [("upper = 120", "upper = 120\nlattice = 1")],
        [("keys = [0, 1, 2]", "keys = [0x0, 0b1, 2,]")],
    ],
)
def test_spelling_changes_nothing(changes: list[tuple[str, str]]) -> None:
    contract = parse(*changes)
    assert (contract.text, contract.digest) == (BASE.text, BASE.digest)
    assert contract == BASE


def test_the_order_of_tables_changes_nothing() -> None:
    head, *tables = DOCUMENT.split("\n\n")
    assert len(tables) == 8
    assert Contract.parse("\n\n".join([head, *reversed(tables)])).digest == BASE.digest


def test_dotted_and_inline_tables_change_nothing() -> None:
    unit = '[unit]\ncolumn = "patient"\nneighbours = "add-or-remove"\ngroups = 3\nrows = 2\n'
    inline = 'unit = {column = "patient", neighbours = "add-or-remove", groups = 3, rows = 2}\n'
    assert Contract.parse(inline + changed((unit, ""))).digest == BASE.digest


MEANINGS = [
    ('name = "clinic"', 'name = "clinic 2"'),
    ("Visits to a clinic", "Visits"),
    ('unprotected = "none"', 'unprotected = ["none"]'),
    ('unprotected = "none"', 'unprotected = ["number of rows"]'),
    ('name = "visits"', 'name = "visits 2"'),
    ('source = "visits.csv"', 'source = "other.csv"'),
    ('source = "visits.csv"\n', ""),
    ('version = "1"', 'version = "2"'),
    ('column = "patient"', 'column = "person"'),
    ("groups = 3", "groups = 4"),
    ("rows = 2", "rows = 3"),
    ('measure = "gdp"\nepsilon = "1"\ndelta = "1e-6"', 'measure = "pure"\nepsilon = "1"'),
    ('epsilon = "1"', 'epsilon = "1.1"'),
    ('epsilon = "1"', 'total = "1"'),
    ('epsilon = "1"', 'mu = "1"'),
    ('delta = "1e-6"', 'delta = "1e-7"'),
    ('delta = "1e-6"', 'delta = "1e-6"\ndelta_mechanisms = "1e-7"'),
    ('measure = "gdp"\nepsilon = "1"', 'measure = "zcdp"\nrho = "1"'),
    ('measure = "gdp"\nepsilon = "1"', 'measure = "zcdp"\ntotal = "1"'),
    ('measure = "gdp"\nepsilon = "1"', 'measure = "renyi"\norder = 8\nepsilon_at_order = "1"'),
    (
        'measure = "gdp"\nepsilon = "1"\ndelta = "1e-6"\nreceipt_order = 8',
        'measure = "renyi"\norder = 4\nepsilon_at_order = "1"\ndelta = "1e-6"',
    ),
    ("receipt_order = 8", "receipt_order = 9"),
    ('default_share = "0.05"', 'default_share = "0.06"'),
    ("[columns.day]", '[columns.extra]\ntype = "date"\n[columns.day]'),
    ("[columns.cost]", "[columns.costs]"),
    ("lower = 0", "lower = 1"),
    ("upper = 120", "upper = 121"),
    ("keys = [0, 1, 2]", "keys = [0, 1]"),
    ("keys = [0, 1, 2]", "keys = [0, 2, 1]"),
    ("keys = [0, 1, 2]\n", ""),
    ('lattice = "0.05"', 'lattice = "0.1"'),
    ('lower = "-10"', 'lower = "-10.05"'),
    ('upper = "20"', 'upper = "20.05"'),
    ('type = "decimal"\nlattice = "0.05"', 'type = "integer"'),
    ('["north", "south"]', '["south", "north"]'),
    ('["north", "south"]', '["north", "south", "east"]'),
    ('["north", "south"]', '["north", "South"]'),
    ("[bins.month]", "[bins.months]"),
    ('first = "2024-01"', 'first = "2024-02"'),
    ('last = "2024-06"', 'last = "2024-07"'),
]


@pytest.mark.parametrize("change", MEANINGS, ids=lambda change: change[1])
def test_each_term_changes_text_and_digest(change: tuple[str, str]) -> None:
    contract = parse(change)
    assert contract.text != BASE.text
    assert contract.digest != BASE.digest
    assert Contract.from_text(contract.text) == contract


def test_no_two_of_these_contracts_share_a_digest() -> None:
    digests = [BASE.digest, *(parse(change).digest for change in MEANINGS)]
    assert len(set(digests)) == len(digests)


def test_terms_are_what_contracts_on_one_data_set_share() -> None:
    assert parse(("groups = 3", "groups = 4"), ('name = "clinic"', 'name = "other"')).terms == BASE.terms
    assert parse(('column = "patient"', 'column = "person"')).terms != BASE.terms
    pure = 'measure = "pure"\nepsilon = "1"'
    assert parse(('measure = "gdp"\nepsilon = "1"\ndelta = "1e-6"', pure)).terms != BASE.terms


def test_unicode_forms_of_names_and_keys_are_one_contract() -> None:
    composed, decomposed = "größe", unicodedata.normalize("NFD", "größe")
    one, two = (
        parse(
            ("[columns.ward]", f'[columns."{name}"]'),
            ('["north", "south"]', f'["{name}", "south"]'),
            ('column = "patient"', f'column = "{name}-nummer"'),
            ("Visits to a clinic", name),
        )
        for name in (composed, decomposed)
    )
    assert (one, one.text, one.digest) == (two, two.text, two.digest)
    # And what is used is what was signed: the form of the file does not live on beside the text.
    assert two.keys(composed) == (composed, "south")
    assert two.unit.column == f"{composed}-nummer"
    assert Contract.from_text(two.text) == two


def test_the_text_is_the_form_that_is_hashed_and_nothing_else() -> None:
    assert json.loads(BASE.text)["budget"] == {
        "measure": "gdp",
        "epsilon": "1",
        "delta": "0.000001",
        "delta_mechanisms": "0",
        "receipt_order": "8",
        "default_share": "0.05",
    }
    assert parse(('default_share = "0.05"', 'default_share = "1/3"')).text.count('"default_share":"1/3"') == 1
    for text in (BASE.text + " ", " " + BASE.text, BASE.text.replace(":", ": ", 1), BASE.text[:-1], ""):
        with pytest.raises(VerificationError):
            Contract.from_text(text)


def test_a_text_that_is_canonical_and_no_contract_is_refused() -> None:
    for text in ("{}", "[]", '"none"', BASE.text.replace('"rows":2', '"rows":0')):
        with pytest.raises(ContractError, match="the signed contract is not a valid contract"):
            Contract.from_text(text)


def test_a_contract_knows_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "c.toml"
    path.parent.mkdir()
    path.write_text(DOCUMENT, encoding="utf-8")
    contract = Contract.read(path)
    assert contract.folder == path.parent
    assert contract.source_path == path.parent / "visits.csv"
    assert contract.digest == BASE.digest
    assert parse(('source = "visits.csv"\n', "")).source_path is None


def test_the_folder_is_absolute_however_the_path_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.toml").write_text(DOCUMENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    contract = Contract.read("c.toml")
    monkeypatch.chdir("/")
    assert contract.source_path == tmp_path / "visits.csv"


def test_blanks_are_found_at_any_depth_and_nowhere_else() -> None:
    document = parse_document('a = "FILL IN"\nb = "fill in"\n[c.d]\ne = ["x", ["FILL IN"]]\nf = {g = "FILL IN"}\n')
    assert blanks(document) == ["a", "c.d.e", "c.d.f.g"]
    assert blanks(parse_document(DOCUMENT)) == []
