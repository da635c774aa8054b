"""The contract: whom it protects, what they may contribute, which columns, keys and budget there are.

A contract is a TOML document. Every field that enters a proof is written down in it; nothing is ever read off the
data. It answers which bounds hold for a column or a grouping, and knows no query. Numbers are exact: write them as
decimal text ("0.05"), as p/q text ("1/3") or as plain TOML numbers, which are taken by their decimal text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from parco import canonical
from parco.contract.bins import Bins
from parco.contract.budget import Budget
from parco.contract.columns import (
    BooleanColumn,
    Column,
    DateColumn,
    DecimalColumn,
    IntegerColumn,
    NumericColumn,
    TextColumn,
)
from parco.contract.dialect import Csv
from parco.contract.division import WHOLE, check_parts, check_period, part_names
from parco.contract.document import blanks, faults, parse_document
from parco.contract.fields import Count, Exact, Name, Part, check_distinct, distinct_names, whole
from parco.contract.rules import Normal
from parco.errors import ContractError, InternalError
from parco.measure import exact_text

__all__ = ["Contract", "Data", "Unit"]


_READ_ONLY, _AS_DICT = AfterValidator(MappingProxyType), PlainSerializer(dict)


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class Data(Part):
    """The data set: its name is the account's, `version` labels its state and is declared, never computed."""

    name: Name
    source: str | None = None
    version: Name = "1"
    table: Name | None = None
    """Which table of the data set this contract reads, where it has several with the same unit."""
    # None where there are none, and in one order: then two files that say the same have one text.
    derived_from: Annotated[
        tuple[Name, ...] | None,
        AfterValidator(lambda names: tuple(sorted(set(names))) if names else None),
    ] = None
    """The data sets of the ledger that its rows are made of (a copy, view, subset or join): they are charged, too."""
    # None where it is the default dialect: then the contract has the text it had before dialects could be declared.
    csv: Annotated[
        Csv | None,
        AfterValidator(lambda csv: csv if csv is not None and csv.declared else None),
        PlainSerializer(lambda csv: csv and csv.declared),
    ] = None

    @property
    def dialect(self) -> Csv:
        """How a CSV file of this data set is written."""
        return self.csv or Csv()


class Unit(Part):
    """Whom the contract protects, and the most that one of them may contribute."""

    column: Name
    neighbours: Literal["add-or-remove", "replace"]
    """Which tables are told apart: one unit there or not, or one unit's rows there instead of another's."""
    groups: Count
    """A unit counts in at most this many groups of one question."""
    rows: Count
    """A unit counts with at most this many rows in each group."""
    period: Name | None = None
    """The bins whose periods, together with the column, are what is protected: one unit in one period."""
    normal: Normal = None
    """The form in which two texts are one unit; without it, units are told apart by every character."""


class Contract(Part):
    """Everything a guarantee depends on. Read one with `Contract.read(path)`."""

    format: Annotated[Literal[1], BeforeValidator(whole)]
    name: Name
    purpose: Name
    unprotected: Literal["none"] | Annotated[tuple[Name, ...], Field(min_length=1)]
    data: Data
    unit: Unit
    budget: Budget
    # Read-only: a column changed after signing would be released under a receipt that says otherwise.
    columns: Annotated[Mapping[Name, Column], BeforeValidator(distinct_names), _READ_ONLY, _AS_DICT] = Field(
        default_factory=_nothing
    )
    bins: Annotated[Mapping[Name, Bins], BeforeValidator(distinct_names), _READ_ONLY, _AS_DICT] = Field(
        default_factory=_nothing
    )
    parts: Annotated[Mapping[Name, Exact], BeforeValidator(distinct_names), _READ_ONLY, _AS_DICT] | None = None
    """The share of the units in each part; each part has an account of its own."""
    # None where it is the default: then the contract has the text it had before a scope could be declared.
    answers: Annotated[
        Literal["ledger", "contract", "actor"] | None,
        AfterValidator(lambda scope: None if scope == "ledger" else scope),
    ] = None
    """To whom a stored answer is served again: whoever can open the ledger, its contract's askers, or its own asker."""
    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @classmethod
    def read(cls, path: str | Path) -> Contract:
        """For every readable contract file, returns its contract, or raises ContractError with every fault in it."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ContractError(f"cannot read a contract from {path}: give a TOML file in UTF-8") from None
        contract = cls.parse(text, name=str(path))
        contract._folder = Path(path).absolute().parent
        return contract

    @classmethod
    def parse(cls, text: str, *, name: str = "contract") -> Contract:
        """The same for the text of a contract; `name` is how messages call it."""
        document = parse_document(text, name=name)
        if blank := blanks(document):
            raise ContractError(f"{name}: still to fill in: {', '.join(blank)}", blanks=blank)
        return cls._of(document, name)

    @classmethod
    def from_text(cls, text: str) -> Contract:
        """The contract whose canonical text this is, as a ledger keeps it."""
        return cls._of(canonical.decode(text.encode()), "the signed contract")

    @classmethod
    def _of(cls, document: dict[str, object], name: str) -> Contract:
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            found = faults(error)
            lines = "".join(f"\n  {fault}" for fault in found)
            raise ContractError(f"{name} is not a valid contract:{lines}", faults=found) from None

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_distinct([self.unit.column, *self.columns, *self.bins], "the unit, a column or bins")
        for name, bins in self.bins.items():
            if not isinstance(self.columns.get(bins.column), bins.over):
                raise ValueError(f"bins.{name}: {bins.column} is not declared as a column of type {bins.over_words}")
        check_parts(self.parts, neighbours=self.unit.neighbours)
        if self.data.name in (self.data.derived_from or ()):
            raise ValueError("data.derived_from: a data set is not derived from itself")
        if (period := self.unit.period) is not None:
            if self.data.derived_from is not None:
                raise ValueError(
                    "data.derived_from: with unit.period each period has its own account, while the whole unit is what"
                    " a parent protects: leave out period, or publish from the parent itself"
                )
            keys = self.bins[period].keys if period in self.bins else None
            check_period(keys, neighbours=self.unit.neighbours, parts=self.parts is not None)
        return self

    @property
    def folder(self) -> Path:
        """Where the contract was read: relative paths in it, and its ledger, are beside it."""
        return self._folder

    @property
    def source_path(self) -> Path | None:
        """The contract's own source, or None where it names none."""
        return None if self.data.source is None else self.folder / self.data.source

    @property
    def text(self) -> str:
        """The contract in canonical form: what is signed. Two files that say the same have the same text."""
        return canonical.encode(self._document()).decode()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text."""
        return canonical.digest(self._document())

    def _document(self) -> dict[str, object]:
        return self.model_dump(mode="json", exclude_none=True, by_alias=True)

    @property
    def terms(self) -> str:
        """What all contracts on one data set must share, in canonical form.

        Receipt order and deltas among them: chosen after seeing answers, they would make realised claims false.
        """
        unit, budget = self.unit, self.budget
        division: dict[str, object] = {}
        if self.parts is not None:
            division["parts"] = {part: exact_text(self.parts[part]) for part in self.parts}
        if self.period is not None:
            division["period"] = self.period
        if division and self.data.csv is not None:
            # Another dialect reads other texts for units and days: they would fall into other parts and periods.
            division["csv"] = self.data.csv.declared
        deltas = {name: exact_text(getattr(budget, name)) for name in ("delta", "delta_mechanisms", "receipt_order")}
        if unit.normal is not None:
            # Two normal forms tell persons apart differently: they protect different units.
            deltas["unit_normal"] = ",".join(unit.normal)
        if self.data.derived_from is not None:
            division["derived_from"] = list(self.data.derived_from)
        return canonical.encode(
            {"measure": str(budget.measure), "neighbours": unit.neighbours, "unit": unit.column, **deltas, **division}
        ).decode()

    @property
    def accounts(self) -> tuple[str, ...]:
        """The labels of the data set's accounts: one for the whole, or one for each part or period."""
        if self.unit.period is not None:
            return tuple(str(key) for key in self.bins[self.unit.period].keys)
        return (WHOLE,) if self.parts is None else part_names(self.parts)

    @property
    def period(self) -> dict[str, object] | None:
        """What decides the period of a row: the bins and their column as declared, or None without periods."""
        if self.unit.period is None:
            return None
        bins = self.bins[self.unit.period]
        declared = {"bins": bins, "column": self.columns[bins.column]}
        return {name: one.model_dump(mode="json", exclude_none=True) for name, one in declared.items()}

    @property
    def unprotected_words(self) -> str:
        """What the contract declares unprotected, in words."""
        if self.unprotected == "none":
            return "Nothing is declared unprotected."
        return f"Declared unprotected, so that no claim covers it: {', '.join(self.unprotected)}."

    @property
    def answers_words(self) -> str:
        """To whom stored answers are served again, and what that does not hide, in words."""
        to = {
            None: "everybody who can open this ledger",
            "contract": f"whoever asks under the contract {self.name!r}; others pay for their own",
            "actor": "the one who asked, by the name given; others pay for their own",
        }[self.answers]
        return f"Stored answers are served to {to}. Whoever can read the ledger itself sees all of them."

    def served_to(self, asker: str | None) -> dict[str, str] | None:
        """To whom an answer to this asker is served, as a question holds it; None for everybody."""
        if self.answers is None:
            return None
        if self.answers == "contract":
            return {"contract": self.name}
        if asker is None:
            raise InternalError("an answer that is served to its asker alone needs one")
        return {"contract": self.name, "asker": asker}

    def numeric(self, column: str) -> NumericColumn | None:
        """The declaration of a column that can be summed, or None."""
        declared = self.columns.get(column)
        if isinstance(declared, DateColumn):
            return declared.days
        return declared if isinstance(declared, IntegerColumn | DecimalColumn) else None

    @property
    def names(self) -> tuple[str, ...]:
        """All names a question may read: bins, and the columns but those dates that are only read through bins."""
        binned = {bins.column for bins in self.bins.values()}
        columns = (
            name for name, column in self.columns.items() if not (name in binned and isinstance(column, DateColumn))
        )
        return (*self.bins, *columns)

    @property
    def groupings(self) -> tuple[str, ...]:
        """All names that have declared keys: bins first, then columns."""
        return tuple(name for name in (*self.bins, *self.columns) if self.keys(name) is not None)

    def keys(self, grouping: str) -> tuple[str, ...] | tuple[int, ...] | None:
        """The declared keys of a column or of bins, in the contract's order, or None where there are none."""
        if grouping in self.bins:
            return self.bins[grouping].keys
        declared = self.columns.get(grouping)
        return declared.keys or None if isinstance(declared, TextColumn | IntegerColumn | BooleanColumn) else None
