"""One writer and one reader for each kind of value an entry may hold; a reader raises ValueError for all else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter, lt
from typing import Any, TypeAlias

from parco.measure import UNITS_MAX

__all__ = [
    "Codec",
    "amount",
    "bit",
    "difference",
    "digest",
    "listed",
    "one_of",
    "optional",
    "ordinal",
    "positive",
    "record",
    "row",
    "signature",
    "sorted_digests",
    "sorted_rows",
    "writers",
    "written",
]

# Wide enough for every scale in use, narrow enough that no reader has to fear a number's length.
_RATIONAL_MAX = 10**308
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SIGNATURE = re.compile(r"[0-9a-f]{128}", re.ASCII)


@dataclass(frozen=True)
class Codec:
    """`write` turns a value into its JSON tree, `read` turns the tree back or raises ValueError or TypeError."""

    write: Callable[[Any], object]
    read: Callable[[Any], Any]


Writers: TypeAlias = Sequence[tuple[str, Callable[[Any], object]]]


def writers(schema: Mapping[str, Codec]) -> Writers:
    """How the fields of a record are written, without those whose value is its own JSON tree."""
    return [(name, codec.write) for name, codec in schema.items() if codec.write is not _itself]


def written(fields: dict[str, object], by: Writers) -> dict[str, object]:
    """The fields of a record, which are written in their place, and those that are their own tree."""
    for name, write in by:
        fields[name] = write(fields[name])
    return fields


def _itself(value: object) -> object:
    return value


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def _integer(low: int, high: int) -> Codec:
    def read(value: object) -> int:
        # bool is an int in Python; in the ledger, true is not 1.
        if type(value) is not int or not low <= value <= high:
            raise ValueError
        return value

    return Codec(_itself, read)


def _hexadecimal(pattern: re.Pattern[str]) -> Codec:
    def read(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError
        return value

    return Codec(_itself, read)


def _read_positive(value: object) -> Fraction:
    if not isinstance(value, list):
        raise TypeError
    return _lowest(*value)


# A ledger names the same few numbers again and again. By type as well: true is not 1.
@lru_cache(maxsize=1024, typed=True)
def _lowest(top: object, bottom: object) -> Fraction:
    numerator, denominator = _COMPONENT.read(top), _COMPONENT.read(bottom)
    _require(math.gcd(numerator, denominator) == 1)
    return Fraction(numerator, denominator)


def _write_rational(value: Fraction) -> object:
    return [value.numerator, value.denominator]


_COMPONENT = _integer(1, _RATIONAL_MAX - 1)
_BIT = _integer(0, 1)

amount = _integer(0, UNITS_MAX)
ordinal = _integer(1, UNITS_MAX)
difference = _integer(-UNITS_MAX, UNITS_MAX)
bit = Codec(lambda value: int(_checked_bool(value)), lambda value: bool(_BIT.read(value)))
digest = _hexadecimal(_DIGEST)
signature = _hexadecimal(_SIGNATURE)
positive = Codec(_write_rational, _read_positive)


def _checked_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def one_of(tags: Iterable[str]) -> Codec:
    """A closed set of tags; reading returns the member itself, so an enumeration stays one."""
    members = {str(tag): tag for tag in tags}

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in members:
            raise ValueError
        return members[value]

    return Codec(str, read)


def optional(codec: Codec) -> Codec:
    """What `codec` takes, or nothing at all."""
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda value: None if value is None else codec.read(value),
    )


def record(kind: type[Any], schema: dict[str, Codec]) -> Codec:
    """A record with exactly the fields of `schema`."""

    names, by = schema.keys(), writers(schema)
    readers = [(name, codec.read) for name, codec in schema.items()]

    def write(value: object) -> object:
        return written(dict(vars(value)), by)

    def read(value: object) -> object:
        if not isinstance(value, dict) or value.keys() != names:
            raise ValueError
        return kind(**{name: read(value[name]) for name, read in readers})

    return Codec(write, read)


def row(kind: type[Any], *columns: Codec) -> Codec:
    """A list with one value for each field of `kind`, in order."""

    readers = [codec.read for codec in columns]

    def read(value: object) -> object:
        if not isinstance(value, list) or len(value) != len(readers):
            raise ValueError
        return kind(*[read(item) for read, item in zip(readers, value, strict=True)])

    return Codec(lambda value: [*vars(value).values()], read)


def sorted_rows(item: Codec, *by: str, least: int = 1) -> Codec:
    """At least so many rows, strictly rising by account, or by the fields named: so equal entries have equal bytes."""

    key = attrgetter(*(by or ("account",)))

    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError
        rows = tuple(map(item.read, value))
        order = list(map(key, rows))
        _require(len(rows) >= least and all(map(lt, order, order[1:])))
        return rows

    return Codec(lambda value: [item.write(part) for part in value], read)


def listed(item: Codec, *, least: int = 1) -> Codec:
    """At least so many of them, in an order that means something."""

    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError
        _require(len(value) >= least)
        return tuple(item.read(part) for part in value)

    return Codec(lambda value: [item.write(part) for part in value], read)


def sorted_digests(*, least: int = 1) -> Codec:
    """At least so many digests, strictly rising."""

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise TypeError
        found = [digest.read(part) for part in value]
        _require(len(found) >= least and found == sorted(set(found)))
        return tuple(found)

    return Codec(list, read)
