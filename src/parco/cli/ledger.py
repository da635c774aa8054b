"""`parco ledger …`: what its keeper and its auditors do with a ledger, as opposed to those who ask it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from parco.cli.options import DoerOption, GivenLedger, ReasonOption
from parco.errors import HaltedError, RequestError
from parco.measure import decimal_text, exact, units_ceil

__all__ = ["app"]

app = typer.Typer(
    name="ledger",
    help="Make, keep, check and recover ledgers.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

ReleaseFiles = Annotated[
    list[Path] | None, typer.Option("--release", help="What `parco release --json` printed; repeat for several.")
]
WitnessFiles = Annotated[list[Path] | None, typer.Option("--witness", help="A file of heads; repeat for several.")]


@app.command(epilog="Example:  `parco ledger head --ledger purchases.ledger >> heads.jsonl`")
def head(ledger: GivenLedger) -> None:
    """Print the last head: how many entries there are, their Merkle root, and the ledger's signature.

    Kept elsewhere, it shows later whether anything was changed.
    """
    from parco.stores.address import open_ledger

    _print(open_ledger(ledger).head().line.decode())


@app.command(
    epilog="""Examples:

`parco ledger prove 4 --ledger purchases.ledger`

`parco ledger prove --from 31 --ledger purchases.ledger`
"""
)
def prove(
    position: Annotated[int | None, typer.Argument(help="The entry to prove.", show_default=False)] = None,
    *,
    ledger: GivenLedger,
    size: Annotated[int | None, typer.Option("--from", help="Prove that the head of this size is extended.")] = None,
) -> None:
    """Prove that an entry is under the last head, or that the last head extends an earlier one.

    Whoever knows the last head can check it without the ledger: `parco/audit/offline.py` does.
    """
    from parco.stores.address import open_ledger

    store = open_ledger(ledger)
    if (position is None) == (size is None):
        raise RequestError("name the entry to prove, or with --from the size of an earlier head: one of them")
    proof = store.prove(position) if position is not None else store.prove_from(size or 0)
    _print(json.dumps(proof.record(), indent=2))


@app.command(epilog="Example:  `parco ledger witness heads.jsonl --ledger purchases.ledger`")
def witness(
    file: Annotated[Path, typer.Argument(help="A file of heads, made if there is none.", show_default=False)],
    *,
    ledger: GivenLedger,
    release: ReleaseFiles = None,
) -> None:
    """Check that the ledger extends every head of a file, then add its last one. Keep the file elsewhere.

    A head that this ledger signed and does not extend halts it, until `parco ledger recover`.
    """
    from parco.stores import marks
    from parco.stores.address import open_ledger

    store, seen = open_ledger(ledger), marks.read_witness(file)
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
    ledger: GivenLedger,
    witness: WitnessFiles = None,
    release: ReleaseFiles = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also every signature, open requests, times, and private releases.")
    ] = False,
) -> None:
    """Check everything the ledger says of itself: silent if all holds, else the first failure and exit code 4.

    Costs are worked out anew from what each release records, accounts from the costs. docs/ledger-format.md lists the
    checks. A release that holds and was corrected since is told with what corrected it.
    """
    from parco.audit.releases import corrections_of, releases_of
    from parco.audit.verify import verify as verify_ledger
    from parco.session.frames import escaped
    from parco.stores import marks
    from parco.stores.address import open_ledger

    heads = [head for path in witness or [] for head in marks.read_witness(path)]
    store, releases = open_ledger(ledger), _read(release or [])
    if not verify_ledger(store, heads=heads, releases=releases, strict=strict):
        sys.stderr.write(
            "all holds that this role may read; the data sets' secrets and the signing key were not looked at: verify"
            " as the role that parco spends with, to check these too\n"
        )
    for receipt, _ in releases_of(releases):
        for line in corrections_of(store, receipt):
            _print(escaped(line))


@app.command(epilog="Example:  `parco ledger export --ledger purchases.ledger > purchases.export`")
def export(ledger: GivenLedger) -> None:
    """Print the ledger as lines that anybody can check with `parco/audit/offline.py`, which needs only Python.

    Entries, heads and answers; no texts, no secrets. What that file does not know, `offline_life.py` does.
    """
    from parco.stores.address import open_ledger

    for line in open_ledger(ledger).export():
        _print(line.decode(errors="backslashreplace"))


@app.command(
    epilog="Example:  `parco ledger recover --ledger purchases.ledger --release last.json"
    ' --reason "disk failed on 3 May"`'
)
def recover(
    ledger: GivenLedger,
    reason: ReasonOption,
    release: ReleaseFiles = None,
    witness: WitnessFiles = None,
    unshown: Annotated[
        str | None,
        typer.Option("--unshown", help="What lost entries may have cost each account of which no receipt shows it."),
    ] = None,
    actor: DoerOption = None,
) -> None:
    """Charge what a lost past had cost, as its receipts show, and let a halted ledger go on.

    Give the last release of the lost past; the file of heads beside the ledger is read as well. What the budget does
    not hold shows as overdrawn.
    """
    from parco.session.session import default_actor
    from parco.stores import marks
    from parco.stores.address import open_ledger
    from parco.stores.records import Recovery

    recovery = Recovery(
        actor=actor or default_actor(),
        reason=reason,
        receipts=tuple(_proofs(release or [])),
        files=tuple(tuple(marks.read_witness(path)) for path in witness or []),
        unshown=None if unshown is None else units_ceil(exact(unshown, "unshown")),
    )
    done = open_ledger(ledger).recover(recovery)
    sizes = ", ".join(map(str, done.lost))
    _print(f"Entry {done.position} answers for the heads of {sizes} entries that were lost.")
    for charge in done.charges:
        _print(f"Account {charge.account} was charged {decimal_text(exact(charge.cost, 'cost') / 10**15)}.")


@app.command(epilog='Example:  `parco ledger rotate --ledger purchases.ledger --reason "yearly"`')
def rotate(ledger: GivenLedger, reason: ReasonOption, actor: DoerOption = None) -> None:
    """Make another signing key, by an entry that both keys sign; the old private key is erased."""
    from parco.session.session import default_actor
    from parco.stores.address import open_ledger

    store = open_ledger(ledger)
    position = store.rotate(actor=actor or default_actor(), reason=reason)
    _print(f"Entry {position}: the ledger is signed by {store.head().key} from here on.")


@app.command(epilog="Example:  `parco ledger upgrade --ledger purchases.ledger`")
def upgrade(ledger: GivenLedger) -> None:
    """Bring a ledger that an older parco made to the tables of this one; no entry changes. There is no way back."""
    from parco.stores.address import is_url
    from parco.stores.sqlite import SqliteStore

    if is_url(ledger):
        raise RequestError("no older parco made ledgers in PostgreSQL: there is nothing to upgrade")
    before = SqliteStore.upgrade(ledger)
    _print(f"The ledger had version {before} of its tables; it has the newest now.")


@app.command(epilog="Example:  `parco ledger sql --role parco | psql postgresql://admin@host/database`")
def sql(
    role: Annotated[str, typer.Option("--role", help="The role that parco will connect as.")] = "parco",
    reader: Annotated[
        str | None, typer.Option("--reader", help="A role that may read all but the data sets' secrets.")
    ] = None,
) -> None:
    """Print the SQL by which an administrator makes a ledger in a PostgreSQL database.

    The role can add entries and delete nothing; it is made without a password, which the administrator gives it.
    """
    from parco.stores.postgres_schema import administrators_sql

    sys.stdout.write(administrators_sql(role, reader=reader))


@app.command(epilog="Example:  `parco ledger tidy --ledger postgresql://parco@host/database --gone laptop-7`")
def tidy(
    ledger: GivenLedger,
    gone: Annotated[list[str] | None, typer.Option("--gone", help="A host that is gone for good; repeat.")] = None,
) -> None:
    """End the releases that nobody will end: those whose process died, and reservations whose lease is over.

    Every command does so for what stands in its way on this host; another host's releases are left alone, unless that
    host is named as gone. A release that was started is forfeited: its charge stands.
    """
    from parco.stores.address import open_ledger

    ended = open_ledger(ledger).tidy(gone=gone or ())
    sys.stdout.write(f"{len(ended)} ended{''.join(f', {number}' for number in ended)}\n")


@app.command(epilog="Example:  `parco ledger journal wal --ledger purchases.ledger`")
def journal(
    mode: Annotated[str, typer.Argument(help="wal or rollback.", show_default=False)], ledger: GivenLedger
) -> None:
    """Keep a ledger's file with a write-ahead log, or with the rollback journal again, which is the default.

    The log is faster, and refused where this machine's SQLite is known to lose entries with it.
    """
    from parco.stores.address import is_url, open_ledger
    from parco.stores.sqlite import SqliteStore

    store = None if is_url(ledger) else open_ledger(ledger)
    if not isinstance(store, SqliteStore):
        raise RequestError("PostgreSQL has a log of its own: there is nothing to choose")
    store.choose_journal(mode)


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
