"""A panel: the same questions, period after period, each paid once for a period however often it is run.

The period is the label of the data's version. Each question has an idempotency key made of the panel, the period and
its canonical text; so a run that was killed, or runs at the same time, never make a second charge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from parco.contract.fields import label
from parco.errors import QuestionError
from parco.measure import Cost
from parco.queries.plan import Plan, Spend
from parco.session.ask import Ask
from parco.session.questions import Asked

if TYPE_CHECKING:
    from parco.session.release import Release
    from parco.session.session import Session

__all__ = ["Told", "run_panel"]

_DIGEST_LENGTH = 32


@dataclass(frozen=True)
class Told:
    """What became of one question of a panel: `released` now, `stored` before, or `forfeited` before.

    `release` is its answer; None if it was forfeited: its charge stands, and the panel does not pay again.
    """

    question: str
    state: str
    release: Release[Any] | None

    @property
    def cost(self) -> Cost:
        """What this run was charged for it: of several parts, those that were new."""
        return Cost(0) if self.release is None or self.release.repeat else self.release.cost

    def record(self) -> dict[str, object]:
        """As text, for JSON."""
        released = None if self.release is None else self.release.record()
        return {"question": self.question, "state": self.state, "cost": str(self.cost), "release": released}


def run_panel(session: Session, name: str, asks: Sequence[Ask]) -> list[Told]:
    """The answers to a panel's questions on the session's version of the data, all new ones in one durable charge.

    What was answered before is served, without the data; what failed behind its charge before stays so. Raises
    QuestionError for a question with a key or `fresh`, and whatever a release raises.
    """
    if any(ask.key is not None or ask.fresh for ask in asks):
        raise QuestionError("a panel makes the keys of its questions, and pays once for each: leave out key and fresh")
    questions = [_Question.of(session, name, ask) for ask in asks]
    found = iter(session._all([part for one in questions for part in one.asked]))
    return [one.told(session, [next(found) for _ in one.asked]) for one in questions]


@dataclass(frozen=True)
class _Question:
    """One question of a panel: its parts as they are asked; none where one of them was forfeited."""

    ask: Ask
    title: str
    asked: list[Asked]

    @classmethod
    def of(cls, session: Session, name: str, ask: Ask) -> _Question:
        parts = session._parts(ask)
        plans = [session._plan(part) for part in parts]
        title = str(plans[0].query) if len(plans) == 1 else f"{ask.statistic} {ask.column or ''}".strip()
        keyed = [_keyed(session, name, part, plan) for part, plan in zip(parts, plans, strict=True)]
        return cls(ask, title, [] if None in keyed else [part for part in keyed if part is not None])

    def told(self, session: Session, found: list[Release[Any]]) -> Told:
        if not found:
            return Told(self.title, "forfeited", None)
        release = session._whole(self.ask, self.asked, found)
        return Told(self.title, "stored" if release.repeat else "released", release)


def key_of(name: str, plan: Plan) -> str:
    """The idempotency key of a panel's question in the period that the plan is for."""
    digest = hashlib.sha256(plan.question.encode()).hexdigest()[:_DIGEST_LENGTH]
    return label(f"panel/{name}/{plan.version}/{digest}", "key")


def _keyed(session: Session, name: str, part: Asked, plan: Plan) -> Asked | None:
    """How a question is asked: of the ledger alone where it has the answer, else under its key; None if forfeited."""
    if session._store.answers(plan.question):
        return replace(part, key=None, spend=Spend(confidence=part.spend.confidence))
    key = key_of(name, plan)
    known = session._store.keyed(key)
    return None if known is not None and known[1] == "forfeited" else replace(part, key=key)
