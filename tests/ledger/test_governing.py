"""Every governing act names who did it, and every one but a signing says why."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from parco.ledger.entries import Entry, Open, Schedule

# A request is an analyst's, and what it does is its question; `start`, `settle` and the like belong to one.
OF_REQUESTS = ("key", "request")


def test_every_governing_entry_has_an_actor_and_a_reason() -> None:
    named = {kind: {field.name for field in fields(kind)} for kind in get_args(Entry)}
    assert all("actor" in names for names in named.values())
    acts = {kind for kind, names in named.items() if names.isdisjoint(OF_REQUESTS)}
    assert {kind.__name__ for kind in acts} >= {"Open", "Derive", "Revise", "Cap", "Quota", "Recover", "Rotate"}
    # What a signing is for stands in its contract, as its purpose; what a schedule is for, in its name.
    assert {kind for kind in acts if "reason" not in named[kind]} == {Open, Schedule}
