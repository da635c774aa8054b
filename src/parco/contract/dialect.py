"""The dialect of a CSV file: declared, never sniffed, since whoever looks at rows lets one row change all others."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from parco.contract.fields import Name, Part, check_distinct

__all__ = ["Csv"]


def _encoding(value: object) -> object:
    if value not in ("utf-8", "latin-1", "utf-16"):
        raise ValueError("encoding is one of utf-8, latin-1, utf-16: convert the file from any other")
    return value


class Csv(Part):
    """How a CSV file is written. A file in none of these dialects has to be converted by a program that knows it.

    `nulls` are the texts that stand for a missing value, beside the empty one. Without a header, `names` says what the
    columns are.
    """

    delimiter: Literal[",", ";", "\t", "|"] = ","
    quote: Literal['"', "'", "none"] = '"'
    encoding: Annotated[Literal["utf-8", "latin-1", "utf-16"], BeforeValidator(_encoding)] = "utf-8"
    decimal: Literal[".", ","] = "."
    nulls: tuple[Annotated[str, Field(strict=True, min_length=1, max_length=200)], ...] = ()
    header: Annotated[bool, Field(strict=True)] = True
    names: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.header and self.names:
            raise ValueError("names are for a file without a header: say header = false, or leave them out")
        if not self.header and not self.names:
            raise ValueError("without a header, names must list the columns in their order")
        check_distinct(list(self.names), "a column")
        return self

    @property
    def declared(self) -> dict[str, object]:
        """What differs from the default dialect, as it is signed and asked."""
        found = self.model_dump(mode="json", exclude_defaults=True)
        return found | ({"nulls": sorted(set(self.nulls))} if self.nulls else {})
