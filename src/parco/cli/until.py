"""`parco release ... --within 5% --at-most 0.2`: sharpened until it is good enough."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from parco.accuracy.rules import RelativeError
from parco.accuracy.sessions import ReleasedUntil, release_until
from parco.cli import show
from parco.errors import QuestionError, RequestError
from parco.session.ask import Ask
from parco.session.session import Session

__all__ = ["release_within", "show_until"]


def release_within(
    session: Session,
    ask: Ask,
    *,
    within: str | None,
    at_most: str | None,
    confidence: str | None,
    reserve: bool,
    each: bool,
    others: Sequence[str],
) -> ReleasedUntil:
    """The run that the options ask for; QuestionError where they clash. `others`: those given beside it."""
    if within is None or at_most is None:
        raise QuestionError("--within and --at-most go together: how near is enough, and the most that it may cost")
    if others:
        raise QuestionError(f"with --within, leave out {', '.join(others)}: its run decides on costs and draws itself")
    if ask.fresh and not reserve:
        raise QuestionError("with --within, --fresh takes --reserve: step by step a stored answer is sharpened")
    try:
        rule = RelativeError(within)
    except RequestError as error:
        raise QuestionError(f"--within: {error}") from None
    return release_until(
        session,
        ask,
        rule,
        at_most=at_most,
        confidence=confidence or "0.95",
        reserve=reserve,
        keys="each" if each else "together",
    )


def show_until(console: Console, found: ReleasedUntil) -> None:
    """The answer at the stop, and how the run came to it."""
    show.show_release(console, found.release)
    console.print(show.plain_lines(str(found.stopped)))
