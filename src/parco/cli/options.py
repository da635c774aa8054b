"""What several commands have in common: options in one wording, and how JSON is printed."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

__all__ = ["DoerOption", "GivenLedger", "JsonOption", "LedgerOption", "ReasonOption", "RoundedJsonOption", "print_json"]

LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", help="The ledger's file, or postgresql://… [default: NAME.ledger beside the contract]."),
]
GivenLedger = Annotated[str, typer.Option("--ledger", help="The ledger's file, or postgresql://…", show_default=False)]
DoerOption = Annotated[str | None, typer.Option("--actor", help="Who does it [default: the login name].")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why: it stands in the ledger's history.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; numbers are exact decimal text.")]
RoundedJsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; numbers are decimal text.")]


def print_json(record: object) -> None:
    """Prints a tree, escaped, so that the same bytes come out wherever it is printed."""
    sys.stdout.write(json.dumps(record, indent=2) + "\n")
