"""`parco ledger`: what auditors and stewards do with a ledger, as opposed to those who ask it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from parco.errors import HaltedError, RequestError
from parco.measure import decimal_text, exact, units_ceil

__all__ = ["app"]

app = typer.Typer(
    name="ledger",
    help="Heads, proofs, checks and recovery of a ledger.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

LedgerPath = Annotated[Path, typer.Option("--ledger", help="The ledger's file.", show_default=False)]
ReleaseFiles = Annotated[
    list[Path] | None, typer.Option("--release", help="What `parco release --json` printed; repeat for several.")
]
WitnessFiles = Annotated[list[Path] | None, typer.Option("--witness", help="A file of heads; repeat for several.")]
Actor = Annotated[str | None, typer.Option("--actor", help="Who does it [default: the login name].")]
Reason = Annotated[str, typer.Option("--reason", help="Why: it stands in the ledger's history.")]


@app.command(epilog="Example:  `parco ledger head --ledger purchases.ledger >> heads.jsonl`")
def head(ledger: LedgerPath) -> None:
    """Print the last head: how many entries there are, their Merkle root, and the ledger's signature.

    Kept elsewhere, it shows later whether anything was changed.
    """
    from parco.stores.sqlite import SqliteStore

    _print(SqliteStore.open(ledger).head().line.decode())


@app.command(
    epilog="""Examples:

`parco ledger prove 4 --ledger purchases.ledger`

`parco ledger prove --from 31 --ledger purchases.ledger`
"""
)
def prove(
    position: Annotated[int | None, typer.Argument(help="The entry to prove.", show_default=False)] = None,
    *,
    ledger: LedgerPath,
    size: Annotated[int | None, typer.Option("--from", help="Prove that the head of this size is extended.")] = None,
) -> None:
    """Prove that an entry is under the last head, or that the last head extends an earlier one.

    Whoever knows the last head can check it without the ledger: `parco/audit/offline.py` does.
    """
    from parco.stores.sqlite import SqliteStore

    store = SqliteStore.open(ledger)
    if (position is None) == (size is None):
        raise RequestError("name the entry to prove, or with --from the size of an earlier head: one of them")
    proof = store.prove(position) if position is not None else store.prove_from(size or 0)
    _print(json.dumps(proof.record(), indent=2))


@app.command(epilog="Example:  `parco ledger witness heads.jsonl --ledger purchases.ledger`")
def witness(
    file: Annotated[Path, typer.Argument(help="A file of heads, made if there is none.", show_default=False)],
    *,
    ledger: LedgerPath,
    release: ReleaseFiles = None,
) -> None:
    """Check that the ledger extends every head of a file, then add its last one. Keep the file elsewhere.

    A head that this ledger signed and does not extend halts it, until `parco ledger recover`.
    """
    from parco.stores import marks
    from parco.stores.sqlite import SqliteStore

    store, seen = SqliteStore.open(ledger), marks.read_witness(file)
    proofs = _proofs(release or [])
    strays = store.witness([*seen, *(proof.head for proof in proofs)])
    if strays:
        sizes = ", ".join(str(stray.size) for stray in strays)
        raise HaltedError(
            f"the ledger does not extend heads that it signed, of {sizes} entries: it is an old copy, or its past was"
            " changed. Nothing is released until `parco ledger recover` has charged what was lost",
            sizes=tuple(stray.size for stray in strays),
        )
    last = store.head()
    if last not in seen:
        marks.write(file, last)


@app.command(
    epilog="""Examples:

`parco ledger verify --ledger purchases.ledger`

`parco ledger verify --ledger purchases.ledger --witness heads.jsonl --release sums.json --strict`
"""
)
def verify(
    ledger: LedgerPath,
    witness: WitnessFiles = None,
    release: ReleaseFiles = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also every signature, open requests, times, and private releases.")
    ] = False,
) -> None:
    """Check everything the ledger says of itself: silent if all holds, else the first failure and exit code 4.

    Costs are worked out anew from what each release records, accounts from the costs. docs/ledger-format.md lists the
    checks.
    """
    from parco.audit.verify import verify as verify_ledger
    from parco.stores import marks
    from parco.stores.sqlite import SqliteStore

    heads = [head for path in witness or [] for head in marks.read_witness(path)]
    verify_ledger(SqliteStore.open(ledger), heads=heads, releases=_read(release or []), strict=strict)


@app.command(epilog="Example:  `parco ledger export --ledger purchases.ledger > purchases.export`")
def export(ledger: LedgerPath) -> None:
    """Print the ledger as lines that anybody can check with `parco/audit/offline.py`, which needs only Python.

    Entries, heads and answers; no texts, no secrets.
    """
    from parco.stores.sqlite import SqliteStore

    for line in SqliteStore.open(ledger).export():
        _print(line.decode(errors="backslashreplace"))


@app.command(
    epilog="Example:  `parco ledger recover --ledger purchases.ledger --release last.json"
    ' --reason "disk failed on 3 May"`'
)
def recover(
    ledger: LedgerPath,
    reason: Reason,
    release: ReleaseFiles = None,
    witness: WitnessFiles = None,
    unshown: Annotated[
        str | None,
        typer.Option("--unshown", help="What lost entries may have cost each account of which no receipt shows it."),
    ] = None,
    actor: Actor = None,
) -> None:
    """Charge what a lost past had cost, as its receipts show, and let a halted ledger go on.

    Give the last release of the lost past; the file of heads beside the ledger is read as well. What the budget does
    not hold shows as overdrawn.
    """
    from parco.session.session import default_actor
    from parco.stores import marks
    from parco.stores.records import Recovery
    from parco.stores.sqlite import SqliteStore

    recovery = Recovery(
        actor=actor or default_actor(),
        reason=reason,
        receipts=tuple(_proofs(release or [])),
        files=tuple(tuple(marks.read_witness(path)) for path in witness or []),
        unshown=None if unshown is None else units_ceil(exact(unshown, "unshown")),
    )
    done = SqliteStore.open(ledger).recharge(recovery)
    sizes = ", ".join(map(str, done.lost))
    _print(f"Entry {done.position} answers for the heads of {sizes} entries that were lost.")
    for charge in done.charges:
        _print(f"Account {charge.account} was charged {decimal_text(exact(charge.cost, 'cost') / 10**15)}.")


@app.command(epilog='Example:  `parco ledger rotate --ledger purchases.ledger --reason "yearly"`')
def rotate(ledger: LedgerPath, reason: Reason, actor: Actor = None) -> None:
    """Make another signing key, by an entry that both keys sign; the old private key is erased."""
    from parco.session.session import default_actor
    from parco.stores.sqlite import SqliteStore

    store = SqliteStore.open(ledger)
    position = store.rotate(actor=actor or default_actor(), reason=reason)
    _print(f"Entry {position}: the ledger is signed by {store.head().key} from here on.")


@app.command(epilog="Example:  `parco ledger upgrade --ledger purchases.ledger`")
def upgrade(ledger: LedgerPath) -> None:
    """Bring a ledger that an older parco made to the tables of this one; no entry changes. There is no way back."""
    from parco.stores.sqlite import SqliteStore

    before = SqliteStore.upgrade(ledger)
    _print(f"The ledger had version {before} of its tables; it has the newest now.")


def _read(paths: Sequence[Path]) -> list[Any]:
    try:
        return [json.loads(path.read_bytes()) for path in paths]
    except (ValueError, RecursionError, OSError):
        raise RequestError("a release is a file that `parco release --json` printed; one given is none") from None


def _proofs(paths: Sequence[Path]) -> list[Any]:
    """The proofs in files of releases; VerificationError for one that does not hold."""
    from parco.audit.releases import proofs_of

    return [proof for tree in _read(paths) for proof in proofs_of(tree)]


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
