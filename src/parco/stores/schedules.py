"""Schedules: releases fixed in advance, signed by one entry that sets their whole charge aside, and left by another."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from parco.errors import InternalError, RequestError
from parco.ledger.entries import Leave, Schedule, total_of
from parco.stores import reading, requests, tables, texts
from parco.stores.append import append
from parco.stores.records import Scheduled, ScheduledStep, Scheduling

__all__ = ["find", "find_all", "in_force", "leave", "name_of", "sign"]

_SCHEDULES, _STEPS = tables.schedules.c, tables.steps.c


def sign(connection: Connection, scheduling: Scheduling) -> Scheduled:
    """For every schedule, makes sure that it is signed and its charge set aside; returns it as it stands.

    Raises RequestError where another was signed under its name, BudgetError where it does not fit.
    """
    old = _row(connection, scheduling.name)
    if old is not None:
        return _same(connection, old, scheduling)
    names = {"actor": scheduling.actor, "schedule": scheduling.name}
    digests = {kind: texts.intern(connection, kind, text) for kind, text in names.items()}
    questions = iter(
        texts.intern_many(connection, "question", [text for one in scheduling.steps for text in one.questions])
    )
    steps = tuple(replace(one, questions=tuple(next(questions) for _ in one.questions)) for one in scheduling.steps)
    charges = total_of((one, len(one.questions)) for one in steps)
    _check_alone(connection, scheduling.contract)
    requests.check_charged(connection, contract=scheduling.contract, charges=charges)
    for charge in charges:
        requests.set_aside(connection, charge)
    seq = append(
        connection,
        lambda seq: Schedule(
            seq=seq,
            actor=digests["actor"],
            time=scheduling.time,
            contract=scheduling.contract,
            name=digests["schedule"],
            steps=steps,
        ),
    )
    contracts = tables.contracts.c
    dataset = connection.scalar(select(contracts.dataset).where(contracts.contract == scheduling.contract))
    row = {"schedule": seq, "dataset": dataset, "name": digests["schedule"], "ended": None}
    connection.execute(insert(tables.schedules), row)
    numbered = enumerate((question for one in steps for question in one.questions), start=1)
    connection.execute(
        insert(tables.steps),
        [{"schedule": seq, "step": number, "question": question, "request": None} for number, question in numbered],
    )
    return find(connection, scheduling.name)


def leave(connection: Connection, name: str, *, actor: str, reason: str) -> Scheduled:
    """Ends a schedule; what its open steps had set aside goes back. RequestError if there is none, or it has ended."""
    scheduled = find(connection, name)
    if scheduled.ended is not None:
        raise RequestError(f"the schedule {name!r} was left before, by entry {scheduled.ended}", entry=scheduled.ended)
    back = total_of((step.facts, 1) for step in scheduled.steps if step.request is None)
    requests.give_back(connection, back)
    names = {"actor": actor, "reason": reason}
    digests = {kind: texts.intern(connection, kind, text) for kind, text in names.items()}
    position, now = scheduled.position, int(time.time())
    seq = append(connection, lambda seq: Leave(seq=seq, time=now, schedule=position, **digests))
    ended = update(tables.schedules).where(_SCHEDULES.schedule == position, _SCHEDULES.ended.is_(None))
    if connection.execute(ended.values(ended=seq)).rowcount != 1:
        raise InternalError(f"schedule {position} is no longer in force")
    return replace(scheduled, ended=seq)


def find(connection: Connection, name: str) -> Scheduled:
    """The schedule signed under this name, as it stands, or RequestError."""
    row = _row(connection, name)
    if row is None:
        raise RequestError(f"no schedule {name!r} was signed on this ledger: run `parco schedule sign`")
    return _scheduled(connection, row)


def find_all(connection: Connection) -> list[Scheduled]:
    """All schedules as they stand, in the order in which they were signed."""
    rows = connection.execute(select(tables.schedules).order_by(_SCHEDULES.schedule)).all()
    return [_scheduled(connection, row) for row in rows]


def in_force(connection: Connection, dataset: str) -> tuple[str, ...]:
    """The names of the schedules on the data set of this digest that have not ended, in the order of their signing."""
    query = select(tables.schedules).where(_SCHEDULES.dataset == dataset, _SCHEDULES.ended.is_(None))
    rows = connection.execute(query.order_by(_SCHEDULES.schedule)).all()
    return tuple(texts.read(connection, row.name) or "" for row in rows)


def name_of(connection: Connection, position: int) -> str:
    """The name of the schedule that an entry signed, or VerificationError."""
    return texts.read(connection, reading.entry(connection, position, Schedule).name) or ""


def _check_alone(connection: Connection, contract: str) -> None:
    """RequestError for a data set that descends from others, whose accounts have claims of their own."""
    ancestors, contracts = tables.ancestors.c, tables.contracts.c
    descends = select(ancestors.account).join(tables.contracts, contracts.dataset == ancestors.dataset)
    if connection.execute(descends.where(contracts.contract == contract)).first() is not None:
        raise RequestError("a schedule is signed on data that are derived from no other: ask without a schedule")


def _row(connection: Connection, name: str) -> Row[Any] | None:
    digest = texts.find(connection, "schedule", name)
    return connection.execute(select(tables.schedules).where(_SCHEDULES.name == digest)).one_or_none()


def _scheduled(connection: Connection, row: Row[Any]) -> Scheduled:
    entry = reading.entry(connection, row.schedule, Schedule)
    steps = select(tables.steps.c.step, _STEPS.request, tables.texts.c.text).join_from(tables.steps, tables.texts)
    known = steps.where(_STEPS.schedule == row.schedule).order_by(_STEPS.step)
    facts = [one for one in entry.steps for _ in one.questions]
    return Scheduled(
        position=row.schedule,
        name=texts.read(connection, row.name) or "",
        dataset=texts.read(connection, row.dataset) or "",
        contract=entry.contract,
        ended=row.ended,
        steps=tuple(
            ScheduledStep(number=one.step, question=one.text, facts=facts[one.step - 1], request=one.request)
            for one in connection.execute(known)
        ),
    )


def _same(connection: Connection, row: Row[Any], scheduling: Scheduling) -> Scheduled:
    """What was signed before under this name, if it is this very schedule; whatever it was signed under."""
    found = _scheduled(connection, row)
    facts = [replace(step.facts, questions=(step.question or "",)) for step in found.steps]
    wanted = [replace(one, questions=(texts.normal(text),)) for one in scheduling.steps for text in one.questions]
    if facts != wanted:
        raise RequestError(
            f"another schedule was signed as {scheduling.name!r} on this ledger, and a schedule never changes: give"
            " this one another name",
            entry=found.position,
        )
    return found
