"""How a stored column becomes a unit, a key, or a whole number of lattice steps, by the contract's rules.

Every expression is total: no value can raise, and NULL means that the row is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from parco.contract.columns import BooleanColumn, Column, IntegerColumn, NumericColumn, TextColumn
from parco.contract.contract import Unit
from parco.contract.rules import BLANK_CHARACTERS, KEY_LENGTH_MAX, normal_text
from parco.engines.source import Kind
from parco.engines.tree import PLACES, StoredColumn, decimal, literal, number, template, text_list

__all__ = [
    "READ",
    "compared",
    "found_key",
    "key",
    "read_text",
    "ruled",
    "steps",
    "total",
    "total_of_squares",
    "unit",
    "whole",
]

Constant = Callable[[Fraction], exp.Expression]

_NOT_PLAIN = r"[\p{Cc}\p{Zl}\p{Zp}]"
"""Control characters and line breaks, which a contract refuses in keys; data have no halves of surrogate pairs."""

_READ_STEP = Fraction(1, 10**PLACES)

READ = "TRY_CAST(:x AS DECIMAL(38, 12))"
# FLOOR may leave 38 digits, at -(10^26 - 1/2): without the cast the comparison would raise there.
_IS_WHOLE = f"{READ} IS NULL OR {READ} = TRY_CAST(FLOOR({READ}) AS DECIMAL(38, 12))"
_WHOLE = f"CASE WHEN {_IS_WHOLE} THEN TRY_CAST({READ} AS BIGINT) END"
# No key and no range reaches this: it stands for a number that is read, and is too large to matter.
_FAR = 2**63 - 1
_READ_WHOLE = (
    f"CASE WHEN NOT {READ} IS NULL THEN CASE WHEN {_IS_WHOLE} THEN COALESCE(TRY_CAST({READ} AS BIGINT), {_FAR}) END"
    f" WHEN NOT TRY_CAST(:x AS DOUBLE) IS NULL THEN {_FAR} END"
)

# The offset from the lower bound is taken apart into whole and fraction, since the product would not fit 38 digits.
# Adding half a step and dividing whole numbers rounds halves upwards, the same on every engine.
_CLAMPED = f"LEAST(GREATEST({READ}, :low), :high) - :low"
_OFFSET = f"(CAST(FLOOR({_CLAMPED}) AS HUGEINT) * :unit + CAST(({_CLAMPED} - FLOOR({_CLAMPED})) * :unit AS HUGEINT))"
# What DECIMAL cannot hold for its size (26 digits, beyond any bound), infinities included, is clamped. What is smaller
# was written with too many digits before its point (10^27 times 1e-26): it does not parse, whatever the bounds are.
_EXACT_STEPS = (
    f"CASE WHEN NOT {READ} IS NULL THEN"
    f" CASE WHEN :valid THEN CAST(:low_steps + (2 * {_OFFSET} + :width) // (2 * :width) AS BIGINT) END"
    " WHEN TRY_CAST(:x AS DOUBLE) IS NULL OR ISNAN(TRY_CAST(:x AS DOUBLE)) THEN NULL"
    " WHEN TRY_CAST(:x AS DOUBLE) >= CAST('1e26' AS DOUBLE) THEN :high_steps"
    " WHEN TRY_CAST(:x AS DOUBLE) <= CAST('-1e26' AS DOUBLE) THEN :low_steps END"
)
_DOUBLE_STEPS = (
    "CASE WHEN :x IS NULL OR ISNAN(:x) THEN NULL ELSE"
    " LEAST(GREATEST(CAST(FLOOR(LEAST(GREATEST(CAST(:x AS DOUBLE), CAST(:low AS DOUBLE)), CAST(:high AS DOUBLE))"
    " / CAST(:step AS DOUBLE) + CAST(0.5 AS DOUBLE)) AS BIGINT), :low_steps), :high_steps) END"
)
_DOUBLE = "TRY_CAST(:x AS DOUBLE)"
# A text of digits may be too large for a double, which then holds an infinity: it is a number all the same.
_INFINITE_TEXT = f"ISINF({_DOUBLE}) AND NOT REGEXP_MATCHES(:x, '[0-9]')"
_RULED = (
    "CASE WHEN :x IS NULL THEN :null WHEN :is_nan THEN :nan WHEN :is_infinite THEN :infinity"
    " ELSE COALESCE(:read, :unparsed) END"
)
_TEXT = "NFC_NORMALIZE(CAST(:x AS TEXT))"


def unit(declared: Unit, column: StoredColumn) -> exp.Expression:
    """The unit as text, in its declared normal form."""
    text = exp.cast(column.expression.copy(), "TEXT")
    return text if declared.normal is None else _normal(text, declared.normal, nfc="nfc" in declared.normal)


def key(declared: Column, column: StoredColumn) -> exp.Expression:
    """What is compared with the declared keys."""
    match declared:
        case IntegerColumn():
            if not declared.values:
                return template(_WHOLE, x=read_text(column))
            read, constant = whole(column), _whole_literal
            return ruled(declared, column, read=read, constant=constant, infinite=_FAR)
        case TextColumn():
            text = _normal(column.expression, declared.normal)
            if declared.null is None:
                return text
            return template("COALESCE(:x, :null)", x=text, null=literal(normal_text(declared.null, declared.normal)))
        case BooleanColumn():
            return _boolean(declared, column)
    raise AssertionError("a group was planned over a column without keys")


def found_key(declared: Column, column: StoredColumn) -> exp.Expression:
    """A key that no contract declares, NULL where there is none: a plain text of some length, a number in bounds."""
    match declared:
        case TextColumn():
            inside = "LENGTH(:x) <= :most AND NOT REGEXP_MATCHES(:x, :not_plain)"
            ends = {"most": number(KEY_LENGTH_MAX), "not_plain": exp.Literal.string(_NOT_PLAIN)}
        case IntegerColumn():
            low, high = declared.row_range
            inside, ends = (
                "CAST(:x AS BIGINT) BETWEEN :low AND :high",
                {"low": literal(int(low)), "high": literal(int(high))},
            )
        case _:
            raise AssertionError("keys were to be selected of a column that has none")
    return template(f"CASE WHEN {inside} THEN :x END", x=key(declared, column), **ends)


def compared(declared: Column, key: str | int) -> str | int:
    """A declared key in the form in which `key` compares it."""
    return normal_text(key, declared.normal) if isinstance(declared, TextColumn) and isinstance(key, str) else key


def whole(column: StoredColumn) -> exp.Expression:
    """The whole number that is stored, a very large one for what is larger than any key, NULL for what is none."""
    return template(_READ_WHOLE, x=read_text(column))


def steps(declared: NumericColumn, column: StoredColumn) -> exp.Expression:
    """A row's clamped value as a whole number of lattice steps."""
    read = _steps(declared, column)
    if not declared.values and declared.infinity is None:
        return read
    return ruled(declared, column, read=read, constant=lambda value: literal(int(value / declared.lattice)))


def total(declared: NumericColumn | None, *, centre: int = 0) -> exp.Expression:
    """The sum of a unit's kept rows in a cell, in steps, each less `centre`.

    Up to 10^27, far inside 38 digits, before it is clamped.
    """
    value = "value" if not centre else "value - CAST(:centre AS BIGINT)"
    added = template(f"CAST(SUM({value}) AS DECIMAL(38, 0))", centre=number(centre))
    if declared is None or declared.clamp is None:
        return added
    low, high = (number(int(bound / declared.lattice)) for bound in (declared.lower, declared.upper))
    return template("CAST(LEAST(GREATEST(:added, :low), :high) AS DECIMAL(38, 0))", added=added, low=low, high=high)


def total_of_squares(*, centre: int) -> exp.Expression:
    """The sum of the squares of a unit's kept rows in a cell, in squared steps; a question has at most 10^27."""
    distance = "CAST(value - CAST(:centre AS BIGINT) AS HUGEINT)"
    return template(f"CAST(SUM({distance} * {distance}) AS DECIMAL(38, 0))", centre=number(centre))


def read_text(column: StoredColumn) -> exp.Expression:
    """The stored number; where text has the comma as decimal sign, point and comma change places.

    A point is then where no number has one, and such a text does not parse.
    """
    if column.kind is Kind.UNTYPED and column.sign == ",":
        return template("TRANSLATE(:x, ',.', '.,')", x=column.expression)
    return column.expression


def ruled(
    declared: NumericColumn,
    column: StoredColumn,
    *,
    read: exp.Expression,
    constant: Constant,
    infinite: int | None = None,
) -> exp.Expression:
    """`read`, which is NULL for what does not parse, with the rules of the column around it.

    `constant` says what a value named by a rule is here; `infinite` is what an infinity is that no rule names, where
    `read` itself does not say.
    """
    x, kind = read_text(column), column.kind
    rules: dict[str, exp.Expression] = {name: exp.null() for name in ("null", "nan", "infinity", "unparsed")}
    rules |= {name: constant(value) for name, value in declared.values.items()}
    if declared.infinity is None:
        rules["infinity"] = read if infinite is None else literal(infinite)
    tests: dict[str, exp.Expression] = {"is_nan": exp.false(), "is_infinite": exp.false()}
    if kind is Kind.DOUBLE:
        tests = {"is_nan": template("ISNAN(:x)", x=x), "is_infinite": template("ISINF(:x)", x=x)}
    elif kind is Kind.UNTYPED:
        tests = {"is_nan": template(f"ISNAN({_DOUBLE})", x=x), "is_infinite": template(_INFINITE_TEXT, x=x)}
    return template(_RULED, x=x, read=read, **rules, **tests)


def _whole_literal(value: Fraction) -> exp.Expression:
    return literal(int(value))


def _steps(declared: NumericColumn, column: StoredColumn) -> exp.Expression:
    step, (lower, upper) = declared.lattice, declared.row_range
    ends = {"low_steps": number(int(lower / step)), "high_steps": number(int(upper / step))}
    x = read_text(column)
    bounds = {"low": decimal(lower), "high": decimal(upper), "x": x}
    if column.kind is Kind.DOUBLE:
        return template(_DOUBLE_STEPS, **bounds, **ends, step=decimal(step))
    width, per_unit = number(int(step / _READ_STEP)), number(int(1 / _READ_STEP))
    valid = template(_IS_WHOLE if isinstance(declared, IntegerColumn) else "TRUE", x=x)
    return template(_EXACT_STEPS, **bounds, **ends, width=width, unit=per_unit, valid=valid)


def _normal(text: exp.Expression, forms: tuple[str, ...] | None, *, nfc: bool = True) -> exp.Expression:
    """The same as `rules.normal_text`, in SQL; without `nfc`, as a unit may be declared, its form is left as it is."""
    # Declared keys are in Unicode form NFC; the data may be in another.
    form = template(_TEXT, x=text) if nfc else text
    if "accents" in (forms or ()):
        form = template("NFC_NORMALIZE(STRIP_ACCENTS(:x))", x=form)
    if "casefold" in (forms or ()):
        # A small letter and a mark may be one character where the capital and the mark are two.
        form = template("NFC_NORMALIZE(LOWER(:x))" if nfc else "LOWER(:x)", x=form)
    if "strip" in (forms or ()):
        form = template("TRIM(:x, :blanks)", x=form, blanks=exp.Literal.string(BLANK_CHARACTERS))
    return form


def _boolean(declared: BooleanColumn, column: StoredColumn) -> exp.Expression:
    null = exp.null() if declared.null is None else literal(declared.null)
    if column.kind is Kind.BOOLEAN:
        sql = "CASE WHEN :x IS NULL THEN :null WHEN :x THEN 'true' ELSE 'false' END"
        return template(sql, x=column.expression, null=null)
    false, true = (text_list(words) for words in declared.spelling)
    x = column.expression
    case = exp.Case(ifs=[exp.If(this=exp.Is(this=x.copy(), expression=exp.null()), true=null)])
    for words, name in ((true, "true"), (false, "false")):
        case = case.when(exp.In(this=x.copy(), expressions=words.expressions), literal(name))
    return case
