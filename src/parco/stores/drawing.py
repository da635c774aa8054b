"""Steps of a schedule as they are drawn and given back, inside a caller's write transaction.

A step is taken as money is: by one conditional UPDATE, which finds it open or does nothing. Its number stands in the
entry, so that whoever checks the ledger finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, update

from parco.errors import InternalError, RequestError
from parco.ledger.entries import Draw, Schedule
from parco.stores import reading, tables
from parco.stores.records import Request

__all__ = ["draw", "find", "give_back"]

_SCHEDULES, _STEPS = tables.schedules.c, tables.steps.c

_NAMED = (
    select(_STEPS.step, _STEPS.request)
    .where(_STEPS.schedule == bindparam("schedule"), _STEPS.question == bindparam("question"))
    .order_by(_STEPS.step)
)
_ENDED = select(_SCHEDULES.schedule, _SCHEDULES.ended).where(
    _SCHEDULES.schedule.in_(bindparam("numbers", expanding=True))
)
_DRAW = (
    update(tables.steps)
    .where(_STEPS.schedule == bindparam("of"), _STEPS.step == bindparam("number"), _STEPS.request.is_(None))
    .values(request=bindparam("drawer"))
)
_GIVE_BACK = update(tables.steps).where(_STEPS.request.in_(bindparam("numbers", expanding=True))).values(request=None)


def find(connection: Connection, request: Request, question: str | None) -> int:
    """The first open step of a request's schedule that asks its question; RequestError if there is none, if it was
    fixed otherwise than the request says, or if the schedule has ended.

    question: the digest of its text, None where the ledger does not know it.
    """
    schedule = request.schedule or 0
    ended = connection.execute(_ENDED, {"numbers": [schedule]}).one_or_none()
    if ended is None:
        raise RequestError(f"there is no schedule at entry {schedule} of this ledger")
    if ended.ended is not None:
        raise RequestError("this schedule was left: nothing more is drawn from it; ask without it", entry=ended.ended)
    rows = connection.execute(_NAMED, {"schedule": schedule, "question": question}).all()
    if not rows:
        raise RequestError("this schedule has no step for this question on this version of the data: ask without it")
    number = next((row.step for row in rows if row.request is None), None)
    if number is None:
        raise RequestError(
            "every step of this schedule for this question was drawn before, and each is drawn once: ask without it",
            request=rows[-1].request,
        )
    _check_same(request, reading.entry(connection, schedule, Schedule), number)
    return int(number)


def draw(connection: Connection, schedule: int, step: int, *, request: int) -> None:
    """Marks an open step as drawn by a request; nobody else can have drawn it."""
    if connection.execute(_DRAW, {"of": schedule, "number": step, "drawer": request}).rowcount != 1:
        raise InternalError(f"step {step} of schedule {schedule} is no longer open")


def give_back(connection: Connection, draws: Sequence[tuple[int, Draw]]) -> frozenset[int]:
    """Opens the steps of requests that are given back; returns those whose charge stays with their schedule.

    The others' schedules have ended, so that nothing holds their charge any longer.
    """
    if not draws:
        return frozenset()
    connection.execute(_GIVE_BACK, {"numbers": [number for number, _ in draws]})
    schedules = sorted({one.schedule for _, one in draws})
    ended = {row.schedule: row.ended for row in connection.execute(_ENDED, {"numbers": schedules})}
    return frozenset(number for number, one in draws if ended[one.schedule] is None)


def _check_same(request: Request, schedule: Schedule, number: int) -> None:
    found = schedule.step(number)
    if found is None:
        raise InternalError(f"schedule {schedule.seq} has no step {number}")
    _, facts = found
    asked = (request.mechanism, request.sensitivity, request.cells, request.charges)
    if asked != (facts.mechanism, facts.sensitivity, facts.cells, facts.charges):
        raise RequestError(
            f"step {number} of this schedule was fixed with {facts.mechanism.kind} noise of scale"
            f" {facts.mechanism.scale}, and this request differs from it: a step is drawn as it was signed, or not at"
            " all",
            step=number,
        )
