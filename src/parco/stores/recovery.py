"""Recovery: what a lost past had cost is charged again, by what its receipts show.

A ledger was put back from a copy that ended at `common`; what it did after that is a *lost line*. A receipt of that
line shows, signed, how much of its accounts was spent and reserved when it was settled. What the line cost an account
is therefore at most what its last receipt shows, less what the ledger had spent of it at `common`. Lines add up.
Receipts are of one line if their heads stand in one file of heads, which only ever holds heads that extend each other
until one is lost; else each is taken for a line of its own, which may charge too much and never too little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, case, insert, select, update

from parco.errors import RequestError, VerificationError
from parco.ledger.accounts import replay
from parco.ledger.entries import Charge, Recover, Settle, Stray, decode
from parco.ledger.heads import Head
from parco.ledger.merkle import left_of
from parco.ledger.proofs import Inclusion
from parco.measure import UNITS_MAX
from parco.stores import halts, heads, reading, tables, texts
from parco.stores.append import append, note_trust
from parco.stores.records import Recovered, Recovery

__all__ = ["recover"]

_ACCOUNTS, _STRAYS = tables.accounts.c, tables.strays.c


@dataclass
class _Line:
    """One lost line: its heads, the size up to which it and the ledger are the same, and what receipts show of it.

    `shown` gives, by account, what was spent and reserved at the last receipt, with that receipt's head.
    """

    heads: dict[str, int] = field(default_factory=dict)
    common: int = 0
    shown: dict[int, tuple[int, int, int]] = field(default_factory=dict)


def recover(connection: Connection, recovery: Recovery) -> Recovered:
    """For every halted ledger, charges what the receipts show of its lost lines, and lets it go on; returns what.

    Raises RequestError if nothing is lost, or if a line has heads beyond its receipts and nobody says what they cost;
    VerificationError for a receipt or head that is not of this ledger.
    """
    lines = _lines(connection, recovery)
    if not lines:
        raise RequestError("nothing is lost: this ledger extends every head given, or has answered for it")
    _check_shown(connection, lines, recovery)
    charges = _charges(connection, lines, unshown=recovery.unshown or 0)
    strays = sorted({(size, root) for line in lines for root, size in line.heads.items()})
    seq = _append(connection, recovery, strays=strays, charges=charges)
    for charge in charges:
        _charge(connection, charge)
    note_trust(connection)
    for size, root in strays:
        noted = update(tables.strays).where(_STRAYS.root == root).values(recovered=seq)
        if connection.execute(noted).rowcount == 0:
            connection.execute(insert(tables.strays).values(root=root, size=size, recovered=seq))
    return Recovered(position=seq, charges=tuple(charges), lost=tuple(size for size, _ in strays))


def _lines(connection: Connection, recovery: Recovery) -> list[_Line]:
    lines = _lines_of_files(connection, recovery.files)
    for proof in recovery.receipts:
        halts.own(connection, proof.head)
        settle = _settle_of(proof)
        if not halts.is_stray(connection, proof.head):
            continue
        line = next((line for line in lines if proof.head.root in line.heads), None)
        if line is None:
            line = _Line(heads={proof.head.root: proof.head.size})
            lines.append(line)
        line.common = max(line.common, _common(connection, proof))
        for balance in settle.accounts:
            seen = (
                proof.head.size,
                balance.spent + balance.reserved,
                balance.delta_spent + balance.delta_reserved,
            )
            line.shown[balance.account] = max(line.shown.get(balance.account, (0, 0, 0)), seen)
    given = {root for line in lines for root in line.heads}
    noted = select(tables.strays).where(_STRAYS.recovered.is_(None))
    rest = {row.root: row.size for row in connection.execute(noted) if row.root not in given}
    return [*lines, *(_Line(heads={root: size}) for root, size in rest.items())]


def _lines_of_files(connection: Connection, files: Sequence[Sequence[Head]]) -> list[_Line]:
    """A line for each file with lost heads; files that share one are of one line."""
    lines: list[_Line] = []
    for file in files:
        for head in file:
            halts.own(connection, head)
        lost = {head.root: head.size for head in file if halts.is_stray(connection, head)}
        if not lost:
            continue
        # Only what stands before the first lost head was the same then: later ones may be of the line that went on.
        before = file[: next(place for place, head in enumerate(file) if head.root in lost)]
        common = max((head.size for head in before if heads.extends(connection, head)), default=0)
        same = next((line for line in lines if not line.heads.keys().isdisjoint(lost)), None)
        if same is None:
            lines.append(_Line(heads=lost, common=common))
        else:
            same.heads |= lost
            same.common = max(same.common, common)
    return lines


def _common(connection: Connection, proof: Inclusion) -> int:
    """How many entries a receipt's line shares with the ledger: what the nodes left of its leaf cover."""
    shared = 0
    for level, index, found in left_of(proof.position - 1, proof.head.size, proof.path):
        if heads.node_of(connection, level, index) != found:
            break
        shared = (index + 1) << level
    return shared


def _settle_of(proof: Inclusion) -> Settle:
    entry = decode(proof.entry)
    if not proof.holds or not isinstance(entry, Settle) or entry.seq != proof.position:
        raise VerificationError(f"the receipt of entry {proof.position} does not show what its head signed")
    return entry


def _check_shown(connection: Connection, lines: Sequence[_Line], recovery: Recovery) -> None:
    """Every account must be shown up to the last head of each line, or somebody says what the rest cost."""
    accounts = list(connection.scalars(select(_ACCOUNTS.account)))
    shown = {account for line in lines for account in line.shown}
    if not shown.issubset(accounts):
        raise RequestError(
            "a receipt charges an account that this ledger does not have: it is lost, and so is its secret"
        )
    if recovery.unshown is not None:
        return
    for line in lines:
        end = max(line.heads.values())
        for account in accounts:
            if line.shown.get(account, (0, 0, 0))[0] < end:
                raise RequestError(
                    f"up to entry {end} something was lost of which no receipt shows what it charged account {account}:"
                    " give the receipt of the last release, or say with --unshown what it may have cost each such"
                    " account at most (0 if it is known that there was nothing)",
                    account=account,
                    size=end,
                )


def _charges(connection: Connection, lines: Sequence[_Line], *, unshown: int) -> list[Charge]:
    bodies = list(reading.bodies(connection))
    costs, deltas = Counter[int](), Counter[int]()
    for line in lines:
        before = replay(bodies[: line.common]).accounts
        end = max(line.heads.values())
        for account in connection.scalars(select(_ACCOUNTS.account)):
            size, used, delta_used = line.shown.get(account, (0, 0, 0))
            old = before.get(account)
            costs[account] += max(0, used - (old.spent if old else 0)) + (unshown if size < end else 0)
            deltas[account] += max(0, delta_used - (old.delta_spent if old else 0))
    return [
        Charge(account, costs[account], deltas[account])
        for account in sorted(costs)
        if costs[account] or deltas[account]
    ]


def _append(
    connection: Connection, recovery: Recovery, *, strays: Sequence[tuple[int, str]], charges: Sequence[Charge]
) -> int:
    names = {"actor": recovery.actor, "reason": recovery.reason}
    digests = {kind: texts.intern(connection, kind, text) for kind, text in names.items()}
    return append(
        connection,
        lambda seq: Recover(
            seq=seq,
            time=recovery.time,
            strays=tuple(Stray(size, root) for size, root in strays),
            charges=tuple(charges),
            **digests,
        ),
    )


def _charge(connection: Connection, charge: Charge) -> None:
    """Spends whether there is room or not; the excess rises as far as the caps do not reach."""
    row = connection.execute(select(tables.accounts).where(_ACCOUNTS.account == charge.account)).one()
    if max(row.spent + row.reserved + charge.cost, row.delta_spent + row.delta_reserved + charge.delta) > UNITS_MAX:
        raise RequestError(
            f"account {charge.account} cannot count as much as this: the receipts or --unshown are too large"
        )
    over = _ACCOUNTS.spent + charge.cost + _ACCOUNTS.reserved - _ACCOUNTS.cap
    delta_over = _ACCOUNTS.delta_spent + charge.delta + _ACCOUNTS.delta_reserved - _ACCOUNTS.delta_cap
    spent = update(tables.accounts).where(_ACCOUNTS.account == charge.account)
    connection.execute(
        spent.values(
            spent=_ACCOUNTS.spent + charge.cost,
            excess=case((over > _ACCOUNTS.excess, over), else_=_ACCOUNTS.excess),
            delta_spent=_ACCOUNTS.delta_spent + charge.delta,
            delta_excess=case((delta_over > _ACCOUNTS.delta_excess, delta_over), else_=_ACCOUNTS.delta_excess),
        )
    )
