"""What a contract says of a column or bins, as a canonical question holds it: all the exact statistic depends on."""

from __future__ import annotations

from collections.abc import Set

from parco.contract.bins import EdgeBins
from parco.contract.columns import DecimalColumn
from parco.contract.contract import Contract

__all__ = ["BOUNDS", "definition"]

BOUNDS = frozenset({"lower", "upper", "clamp", "row_lower", "row_upper"})
"""What only a sum depends on."""

# How a column is read before its bins are looked at; a contract that names none of these has the text it always had.
_READ = {"null", "nan", "infinity", "unparsed", "formats"}


def definition(contract: Contract, name: str, *, drop: Set[str]) -> dict[str, object]:
    """The declaration of a name without what plays no part in its role; of bins, with how their column is read."""
    declared = contract.bins.get(name) or contract.columns[name]
    found = {"name": name, **declared.model_dump(mode="json", exclude=set(drop), exclude_none=True)}
    if name in contract.bins:
        column = contract.columns[contract.bins[name].column]
        read = column.model_dump(mode="json", include=_READ, exclude_none=True)
        if isinstance(column, DecimalColumn) and isinstance(declared, EdgeBins):
            # What is no whole number lies between edges, and is none in an integer column.
            read["type"] = column.type
        if read:
            found["read"] = read
    return found
