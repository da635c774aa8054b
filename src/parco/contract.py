"""What is promised: whom the contract protects, what they may contribute, which columns and keys exist, the budget.

A contract is a TOML document. Every field that enters a proof is written down in it; nothing is ever read off the
data. It answers which bounds hold for a column or a grouping, and knows no query. Numbers are exact: write them as
decimal text ("0.05"), as p/q text ("1/3") or as plain TOML numbers, which are taken by their decimal text.
"""

from __future__ import annotations

import datetime
import tomllib
import unicodedata
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from parco import canonical
from parco.errors import ContractError, RequestError
from parco.measure import Measure, delta_units_floor, exact, exact_text, units_floor
from parco.privacy import conversion

__all__ = [
    "BLANK",
    "CELLS_MAX",
    "Bins",
    "Budget",
    "Column",
    "Contract",
    "Data",
    "DateColumn",
    "DecimalColumn",
    "IntegerColumn",
    "NumericColumn",
    "TextColumn",
    "Unit",
    "blanks",
    "label",
    "parse_document",
]

BLANK = "FILL IN"
"""What `parco init` writes where only the steward knows the answer."""

CELLS_MAX = 1_000_000
"""The most cells one question may have: its groups are all published, each with a draw of its own."""

_AMOUNTS = ("epsilon", "mu", "rho", "epsilon_at_order", "total")
_OWN_AMOUNT = {"pure": "epsilon", "gdp": "mu", "zcdp": "rho", "renyi": "epsilon_at_order"}

# A gdp budget with a larger epsilon has mu squared above 169,000 for every delta >= 1e-300: no account can hold it, and
# beyond about 1e5 the profile costs more digits than it is worth.
_EPSILON_MAX = 10**5

# Lattice values must stay far inside 64-bit integers, and a decimal with 12 places inside 38 digits, on every engine.
_STEPS_MAX = 10**18
_PLACES_MAX = 12

_NAME_LENGTH_MAX = 200
# Control characters, line and paragraph separators, halves of surrogate pairs.
_NOT_PLAIN = ("Cc", "Zl", "Zp", "Cs")


def _exact(value: object) -> Fraction:
    try:
        return exact(value, "number")
    except RequestError as error:
        raise ValueError(str(error).removeprefix("number: ")) from None


def _plain(text: str) -> str:
    """A name or key in Unicode form NFC, the form that is signed: what two files say alike is then used alike."""
    if any(unicodedata.category(character) in _NOT_PLAIN for character in text):
        raise ValueError("control characters and line breaks are refused in names and keys")
    return unicodedata.normalize("NFC", text)


def label(text: object, what: str) -> str:
    """A version, an actor or a key as it may stand in a ledger: 1 to 200 plain characters; raises RequestError."""
    if not isinstance(text, str) or not 0 < len(text) <= _NAME_LENGTH_MAX:
        raise RequestError(f"{what}: give a text of 1 to {_NAME_LENGTH_MAX} characters")
    try:
        return _plain(text)
    except ValueError as error:
        raise RequestError(f"{what}: {error}") from None


def _whole(value: object) -> object:
    """Refuses true and 1.0, which are equal to 1 and have another text."""
    if type(value) is not int:
        raise ValueError("give a whole number")
    return value


def _distinct(table: object) -> object:
    """Looks at the names before they are brought to form NFC: afterwards the second would replace the first."""
    if isinstance(table, dict):
        _check_distinct([str(name) for name in table], "a column or bins")
    return table


Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(exact_text)]
Name = Annotated[str, Field(min_length=1, max_length=_NAME_LENGTH_MAX), AfterValidator(_plain)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]


class _Part(BaseModel):
    """A table of the document: frozen, and an unknown key in it is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)


class Data(_Part):
    """The data set: its name is the account's, `version` labels its state and is declared, never computed."""

    name: Name
    source: str | None = None
    version: Name = "1"


class Unit(_Part):
    """Whom the contract protects, and the most that one of them may contribute."""

    column: Name
    neighbours: Literal["add-or-remove"]
    groups: Count
    """A unit counts in at most this many groups of one question."""
    rows: Count
    """A unit counts with at most this many rows in each group."""


class Budget(_Part):
    """The most that all releases together may cost, in the account's measure.

    One amount is given: `epsilon` (with `delta`, unless pure), or the measure's own: `mu` for gdp, `rho` for zcdp,
    `epsilon_at_order` for renyi, or `total` in any. `delta` is the claims' delta; `delta_mechanisms` of it is set
    aside for mechanisms that need some, and the rest converts costs into epsilon.
    """

    tag: Literal["gdp", "pure", "zcdp", "renyi"] = Field(default="gdp", alias="measure")
    order: Exact | None = None
    epsilon: Exact | None = None
    mu: Exact | None = None
    rho: Exact | None = None
    epsilon_at_order: Exact | None = None
    total: Exact | None = None
    delta: Exact = Fraction(0)
    delta_mechanisms: Exact = Fraction(0)
    receipt_order: Exact = Fraction(8)
    default_share: Exact = Fraction(1, 20)

    @model_validator(mode="before")
    @classmethod
    def _own_order(cls, budget: object) -> object:
        """A renyi budget has one order; written out, so that leaving it out and writing it are one contract."""
        if isinstance(budget, dict) and "order" in budget:
            return {"receipt_order": budget["order"], **budget}
        return budget

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_amount()
        self._check_delta()
        if (self.tag == "renyi") != (self.order is not None):
            raise ValueError("the measure renyi, and no other, needs an order")
        if self.receipt_order <= 1:
            raise ValueError("receipt_order must be above 1")
        if self.order not in (None, self.receipt_order):
            raise ValueError("a renyi budget has one order: leave out receipt_order")
        if not 0 < self.default_share <= 1:
            raise ValueError("default_share must be above 0 and at most 1")
        too_large = self.epsilon is not None and self.epsilon > _EPSILON_MAX
        if too_large or not 0 < self.cap_units < 2**63:
            raise ValueError("the budget is outside what an account can hold: 1e-15 to 9223 in its measure")
        return self

    def _check_amount(self) -> None:
        own = _OWN_AMOUNT[self.tag]
        given = [name for name in _AMOUNTS if getattr(self, name) is not None]
        if len(given) != 1 or given[0] not in ("epsilon", own, "total"):
            words = dict.fromkeys(("epsilon", own, "total"))
            raise ValueError(f"a {self.tag} budget is given by exactly one of {', '.join(words)}")
        if getattr(self, given[0]) <= 0:
            raise ValueError("the budget must be above 0")

    def _check_delta(self) -> None:
        if not 0 <= self.delta_mechanisms <= self.delta < 1:
            raise ValueError("0 <= delta_mechanisms <= delta < 1 must hold")
        if self.tag == "pure" and self.delta_for_conversion != 0:
            raise ValueError("a pure budget converts nothing: leave out delta, or set it all aside as delta_mechanisms")
        if self.tag != "pure" and self.delta_for_conversion < Fraction(10) ** -300:
            raise ValueError(f'a {self.tag} budget needs delta, for example delta = "1e-6"')

    @property
    def measure(self) -> Measure:
        """The account's currency."""
        return Measure(self.tag, self.order)

    @property
    def delta_for_conversion(self) -> Fraction:
        """What is left of delta to convert costs into epsilon."""
        return self.delta - self.delta_mechanisms

    @property
    def cap_units(self) -> int:
        """The cap in 10^-15 of the measure, rounded down."""
        if self.total is not None:
            return units_floor(self.total)
        if self.mu is not None:
            return units_floor(self.mu**2)
        if self.epsilon is not None:
            return units_floor(conversion.amount_lower(self.measure, self.epsilon, self.delta_for_conversion))
        return units_floor(self.rho or self.epsilon_at_order or Fraction(0))

    @property
    def delta_cap_units(self) -> int:
        """The cap of mechanisms' own deltas in 10^-18, rounded down."""
        return delta_units_floor(self.delta_mechanisms)


class _Numeric(_Part):
    lower: Exact
    upper: Exact
    lattice: Exact = Fraction(1)

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.lattice <= 0:
            raise ValueError("lattice must be above 0")
        if Fraction(10**_PLACES_MAX) % self.lattice.denominator != 0:
            raise ValueError(f"lattice must be a decimal with at most {_PLACES_MAX} places, such as 0.01")
        if self.lower > self.upper:
            raise ValueError("lower is above upper")
        for bound in (self.lower, self.upper):
            if (bound / self.lattice).denominator != 1:
                raise ValueError("lower and upper must be multiples of lattice, so that rounding stays within them")
            if abs(bound / self.lattice) > _STEPS_MAX or abs(bound) > _STEPS_MAX:
                raise ValueError("lower and upper lie at most 10^18, and at most 10^18 lattice steps, from 0")
        return self

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value a clamped value can have."""
        return max(abs(self.lower), abs(self.upper))


class IntegerColumn(_Numeric):
    """Whole numbers, clamped to [lower, upper]; optionally a closed list of keys to group by."""

    type: Literal["integer"]
    lattice: Exact = Field(default=Fraction(1), exclude=True)
    keys: tuple[Annotated[int, Field(strict=True)], ...] | None = None

    @model_validator(mode="after")
    def _check_integer(self) -> Self:
        if self.lattice != 1:
            raise ValueError('an integer column has lattice 1; use type = "decimal" for another')
        if self.keys is not None and any(abs(key) > _STEPS_MAX for key in self.keys):
            raise ValueError("keys lie at most 10^18 from 0")
        _check_keys(self.keys)
        return self


class DecimalColumn(_Numeric):
    """Numbers put on a lattice, half a step upwards, and clamped to [lower, upper]."""

    type: Literal["decimal"]
    lattice: Exact


class TextColumn(_Part):
    """Text with a closed list of keys; any other text is dropped before a unit's groups are chosen."""

    type: Literal["text"]
    keys: tuple[Annotated[str, Field(strict=True), AfterValidator(_plain)], ...]

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        _check_keys(self.keys)
        return self


class DateColumn(_Part):
    """Calendar days written year-month-day; used through bins."""

    type: Literal["date"]


Column = Annotated[IntegerColumn | DecimalColumn | TextColumn | DateColumn, Field(discriminator="type")]
NumericColumn = IntegerColumn | DecimalColumn


def _month(value: object) -> int:
    """Months since the year 0, from "1997-01"."""
    try:
        day = datetime.date.fromisoformat(f"{value}-01")
    except ValueError:
        raise ValueError('give a month as "1997-01"') from None
    return day.year * 12 + day.month - 1


def _month_text(value: int) -> str:
    return f"{value // 12:04d}-{value % 12 + 1:02d}"


Month = Annotated[int, BeforeValidator(_month), PlainSerializer(_month_text)]


class Bins(_Part):
    """Calendar months of a date column, from `first` to `last`, both included; other days are dropped."""

    column: Name
    every: Literal["month"]
    first: Month
    last: Month

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.last < self.first:
            raise ValueError("last is before first")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The months' names, in order."""
        return tuple(_month_text(month) for month in range(self.first, self.last + 1))


class Contract(_Part):
    """Everything a guarantee depends on. Read one with `Contract.read(path)`."""

    format: Annotated[Literal[1], BeforeValidator(_whole)]
    name: Name
    purpose: Name
    unprotected: Literal["none"] | Annotated[tuple[Name, ...], Field(min_length=1)]
    data: Data
    unit: Unit
    budget: Budget
    columns: Annotated[dict[Name, Column], BeforeValidator(_distinct)] = {}
    bins: Annotated[dict[Name, Bins], BeforeValidator(_distinct)] = {}
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
            faults = [_fault(item["loc"], _reason(item)) for item in error.errors(include_url=False)]
            lines = "".join(f"\n  {fault}" for fault in faults)
            raise ContractError(f"{name} is not a valid contract:{lines}", faults=faults) from None

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_distinct([self.unit.column, *self.columns, *self.bins], "the unit, a column or bins")
        for name, bins in self.bins.items():
            if not isinstance(self.columns.get(bins.column), DateColumn):
                raise ValueError(f"bins.{name}: {bins.column} is not declared as a column of type date")
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
        deltas = {name: exact_text(getattr(budget, name)) for name in ("delta", "delta_mechanisms", "receipt_order")}
        return canonical.encode(
            {"measure": str(budget.measure), "neighbours": unit.neighbours, "unit": unit.column, **deltas}
        ).decode()

    def numeric(self, column: str) -> NumericColumn | None:
        """The declaration of a column that can be summed, or None."""
        declared = self.columns.get(column)
        return declared if isinstance(declared, IntegerColumn | DecimalColumn) else None

    @property
    def groupings(self) -> tuple[str, ...]:
        """All names that have declared keys: bins first, then columns."""
        return tuple(name for name in (*self.bins, *self.columns) if self.keys(name) is not None)

    def keys(self, grouping: str) -> tuple[str, ...] | tuple[int, ...] | None:
        """The declared keys of a column or of bins, in the contract's order, or None where there are none."""
        if grouping in self.bins:
            return self.bins[grouping].keys
        declared = self.columns.get(grouping)
        return declared.keys if isinstance(declared, TextColumn | IntegerColumn) else None


def parse_document(text: str, *, name: str = "contract") -> dict[str, object]:
    """The document of a TOML text, its decimals exact; raises ContractError where it is not TOML."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ContractError(f"{name} is not TOML: {error}") from None
    except (ValueError, ArithmeticError, RecursionError):
        raise ContractError(
            f"{name} cannot be read: a number in it is too long, or its tables nest too deeply"
        ) from None


def blanks(document: object, place: str = "") -> list[str]:
    """The places of a document that still say FILL IN."""
    if isinstance(document, dict):
        return [found for key, item in document.items() for found in blanks(item, f"{place}.{key}".lstrip("."))]
    if isinstance(document, list):
        return [found for item in document for found in blanks(item, place)]
    return [place] if document == BLANK else []


def _check_keys(keys: tuple[str, ...] | tuple[int, ...] | None) -> None:
    if keys is None:
        return
    if not 0 < len(keys) <= CELLS_MAX:
        raise ValueError(f"declare between 1 and {CELLS_MAX} keys")
    _check_distinct([str(key) for key in keys], "keys")


def _check_distinct(names: list[str], what: str) -> None:
    """Names that are one text in Unicode form NFC would be one column, or one key, to a reader."""
    seen = Counter(unicodedata.normalize("NFC", name) for name in names)
    twice = sorted(name for name, times in seen.items() if times > 1)
    if twice:
        raise ValueError(f"declared twice as {what}: {', '.join(twice[:5])}")


def _fault(location: tuple[int | str, ...], reason: str) -> str:
    # pydantic names the branch of a union it tried; a reader of the TOML file knows no such level.
    if location[:1] == ("columns",) and location[2:3] in (("integer",), ("decimal",), ("text",), ("date",)):
        location = location[:2] + location[3:]
    elif location[:1] == ("unprotected",):
        location = location[:1] + location[2:]
    place = ".".join(str(part) for part in location)
    return f"{place}: {reason}" if place else reason


_PLAIN_REASONS = {
    "Extra inputs are not permitted": "unknown key",
    "Field required": "missing: write it down",
    "Input should be a valid integer": "give a whole number, without quotes",
    "Input should be a valid string": "give text in quotes",
    "Input should be a valid tuple": "give a list, such as [1, 2]",
    "Input should be a valid dictionary": "give a table",
    "Input tag": "type must be one of integer, decimal, text, date",
    "Unable to extract tag": "a column needs a type: integer, decimal, text or date",
}


def _reason(item: object) -> str:
    message = str(item["msg"]) if isinstance(item, dict) else str(item)
    message = message.removeprefix("Value error, ")
    return next((words for start, words in _PLAIN_REASONS.items() if message.startswith(start)), message)
