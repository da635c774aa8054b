"""Quotas from the front door: who shares how much of a budget. Fairness; the account is the guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from parco.contract.fields import label
from parco.errors import RequestError
from parco.measure import Exactable, exact, units_floor
from parco.session.session import default_actor

if TYPE_CHECKING:
    from parco.stores.records import QuotaRow
    from parco.stores.store import Store

__all__ = ["lift_quota", "quotas", "set_quota"]


def set_quota(
    name: str,
    *,
    members: Sequence[str],
    amount: Exactable,
    reason: str,
    ledger: str | Path,
    dataset: str | None = None,
    actor: str | None = None,
) -> list[QuotaRow]:
    """For every ledger, limits what the requests of `members`, together, may take of a data set; returns how it stands.

    members: actors as they sign their requests: one analyst, or several that may collude. amount: in the measure of
    the data set's accounts, on each of them; what was asked before counts. A quota of the same name is replaced. It
    limits costs, not deltas, and it is a matter of fairness: a name can be invented, so that what is promised of the
    data rests on the account alone. Raises RequestError, StorageError.
    """
    from parco.stores.records import Allotment

    if isinstance(members, str) or not members:
        raise RequestError("a quota has at least one member: name the actors whose requests it limits")
    limit = exact(amount, "amount")
    if not 0 <= limit < _AMOUNT_MAX:
        raise RequestError("the amount of a quota is 0 or more, and not beyond what an account can hold")
    wanted = Allotment(
        actor=_actor(actor),
        reason=label(reason, "reason"),
        name=label(name, "name"),
        members=tuple(label(member, "member") for member in members),
        amount=units_floor(limit),
        dataset=dataset,
    )
    return _store(ledger).set_quota(wanted)


def lift_quota(name: str, *, reason: str, ledger: str | Path, actor: str | None = None) -> None:
    """Ends the quota of a name; RequestError if there is none in force."""
    from parco.stores.records import Allotment

    why = label(reason, "reason")
    _store(ledger).set_quota(Allotment(actor=_actor(actor), reason=why, name=label(name, "name"), amount=None))


def quotas(ledger: str | Path) -> list[QuotaRow]:
    """The quotas in force, each with every account that it limits: amount, used and remaining in 10^-15."""
    return _store(ledger).quotas()


_AMOUNT_MAX = 9223
"""Below 2^63 times 10^-15."""


def _actor(actor: str | None) -> str:
    return label(default_actor() if actor is None else actor, "actor")


def _store(ledger: str | Path) -> Store:
    from parco.stores.address import open_ledger

    return open_ledger(ledger)
