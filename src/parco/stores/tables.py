"""The tables of ledger format 1: entries and answers only ever grow, everything else can be rebuilt or may be lost.

`entries` is the ledger. `texts` holds what entries name by salted digest, and may be erased. `accounts`, `caps`,
`entries` is the ledger. `texts` holds what entries name by salted digest, and may be erased. `accounts`, `caps`,
`contracts`, `requests`, `schedules`, `steps`, `refinements`, `corrections` and `recosts` are projections of the
entries, kept so that spending is one conditional UPDATE. `answers`, `secrets`, `owners` and `leases` hold what no entry
may. `tree` holds the nodes of the Merkle tree, each with the leaf that completes it, and `heads` what was signed after
each commit; `keys` signs, and `strays` are heads seen outside that this ledger signed and does not extend. `ancestors`
says whom the releases of a derived data set charge besides, `quotas`, `quota_members` and `quota_amounts` what some
actors may take of accounts, `streams` which request an account may have to itself; they are projections, too. Every
store has the same tables; what a database system adds to them (SQLite's triggers below, PostgreSQL's in
`postgres_schema`) keeps all that is only added from being changed.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy import Integer as PlainInteger
from sqlalchemy.schema import SchemaItem

__all__ = [
    "APPLICATION_ID",
    "TRIGGERS",
    "accounts",
    "ancestors",
    "answers",
    "caps",
    "contracts",
    "corrections",
    "entries",
    "heads",
    "keys",
    "leases",
    "metadata",
    "owners",
    "quota_amounts",
    "quota_members",
    "quotas",
    "recosts",
    "refinements",
    "requests",
    "schedules",
    "secrets",
    "steps",
    "strays",
    "streams",
    "texts",
    "tree",
]

APPLICATION_ID = int.from_bytes(b"parc")

metadata = MetaData()

# 64 bits everywhere: SQLite's INTEGER has them, PostgreSQL calls them BIGINT.
Integer = PlainInteger().with_variant(BigInteger(), "postgresql")


def _key(name: str, *parts: SchemaItem) -> Column[int]:
    """A number of the primary key, which we count ourselves: no database draws it from a sequence."""
    return Column(name, Integer, *parts, primary_key=True, autoincrement=False)


# Every amount is checked here a second time: no statement, whoever wrote it, can leave an account outside its cap.
# Both sides are differences of numbers below 2^63, so that neither can overflow into a float.
_AMOUNTS = ("cap", "spent", "reserved", "excess", "delta_cap", "delta_spent", "delta_reserved", "delta_excess")

entries = Table(
    "entries",
    metadata,
    _key("seq", CheckConstraint("seq >= 1")),
    Column("body", LargeBinary, nullable=False),
    sqlite_strict=True,
)

texts = Table(
    "texts",
    metadata,
    Column("digest", Text, CheckConstraint("length(digest) = 64"), primary_key=True),
    Column("salt", LargeBinary),
    Column("text", Text),
    Column("lookup", Text, unique=True),
    CheckConstraint("(salt IS NULL) = (text IS NULL) AND (salt IS NULL) = (lookup IS NULL)", name="erased_whole"),
    sqlite_strict=True,
)

accounts = Table(
    "accounts",
    metadata,
    _key("account", CheckConstraint("account >= 1")),
    Column("opened", Integer, ForeignKey("entries.seq"), nullable=False),
    Column("dataset", Text, ForeignKey("texts.digest"), nullable=False),
    Column("label", Text, ForeignKey("texts.digest"), nullable=False),
    Column("terms", Text, ForeignKey("texts.digest"), nullable=False),
    Column("measure", Text, nullable=False),
    *(Column(name, Integer, CheckConstraint(f"{name} >= 0"), nullable=False) for name in _AMOUNTS),
    Index("accounts_by_label", "dataset", "label", unique=True),
    CheckConstraint("spent - excess <= cap - reserved", name="within_cap"),
    CheckConstraint("delta_spent - delta_excess <= delta_cap - delta_reserved", name="within_delta_cap"),
    sqlite_strict=True,
)

# What each `cap` entry made of an account: claims have to know whether a cap was ever above the one signed.
caps = Table(
    "caps",
    metadata,
    _key("seq", ForeignKey("entries.seq")),
    _key("account", ForeignKey("accounts.account")),
    Column("cap", Integer, CheckConstraint("cap >= 0"), nullable=False),
    sqlite_strict=True,
)

# Which entries correct an entry or a request (`about`); of a `supersede`, what stands instead: 0 for nothing.
corrections = Table(
    "corrections",
    metadata,
    _key("about", ForeignKey("entries.seq")),
    _key("seq", ForeignKey("entries.seq")),
    Column("tag", Text, nullable=False),
    Column("stands", Integer),
    CheckConstraint("tag IN ('amend', 'supersede', 'recost', 'flag')", name="known_tag"),
    CheckConstraint("(tag = 'supersede') = (stands IS NOT NULL)", name="superseded_by"),
    CheckConstraint("about < seq", name="about_the_past"),
    sqlite_strict=True,
)

# What each `recost` entry added to an account: claims made before it have to add it.
recosts = Table(
    "recosts",
    metadata,
    _key("seq", ForeignKey("entries.seq")),
    _key("account", ForeignKey("accounts.account")),
    Column("cost", Integer, nullable=False),
    Column("delta", Integer, nullable=False),
    sqlite_strict=True,
)

# All accounts, near and far, that a data set descends from: whoever asks it pays there, too.
ancestors = Table(
    "ancestors",
    metadata,
    Column("dataset", Text, ForeignKey("texts.digest"), primary_key=True),
    _key("account", ForeignKey("accounts.account")),
    sqlite_strict=True,
)

# A quota is the entry that made it; one of the same name replaces it, and nothing is ever deleted.
quotas = Table(
    "quotas",
    metadata,
    _key("quota", ForeignKey("entries.seq")),
    Column("name", Text, ForeignKey("texts.digest"), nullable=False),
    Column("replaced", Integer, ForeignKey("entries.seq")),
    sqlite_strict=True,
)

quota_members = Table(
    "quota_members",
    metadata,
    _key("quota", ForeignKey("quotas.quota")),
    Column("actor", Text, ForeignKey("texts.digest"), primary_key=True),
    sqlite_strict=True,
)

# `used` may exceed `amount`, where the quota was made after its members had spent; it is counted while in force.
quota_amounts = Table(
    "quota_amounts",
    metadata,
    _key("quota", ForeignKey("quotas.quota")),
    _key("account", ForeignKey("accounts.account")),
    Column("amount", Integer, CheckConstraint("amount >= 0"), nullable=False),
    Column("used", Integer, CheckConstraint("used >= 0"), nullable=False),
    sqlite_strict=True,
)

secrets = Table(
    "secrets",
    metadata,
    _key("account", ForeignKey("accounts.account")),
    Column("secret", LargeBinary, CheckConstraint("length(secret) = 32"), nullable=False),
    sqlite_strict=True,
)

contracts = Table(
    "contracts",
    metadata,
    _key("opened", ForeignKey("entries.seq")),
    Column("dataset", Text, ForeignKey("texts.digest"), nullable=False),
    Column("name", Text, ForeignKey("texts.digest"), nullable=False),
    Column("contract", Text, ForeignKey("texts.digest"), nullable=False, unique=True),
    Column("account", Integer, ForeignKey("accounts.account"), nullable=False),
    Index("contracts_by_name", "dataset", "name", unique=True),
    sqlite_strict=True,
)

requests = Table(
    "requests",
    metadata,
    _key("request", ForeignKey("entries.seq")),
    Column("key", Text, ForeignKey("texts.digest"), nullable=False, unique=True),
    Column("question", Text, ForeignKey("texts.digest"), nullable=False),
    Column("state", Text, nullable=False),
    Column("private", Integer, CheckConstraint("private IN (0, 1)"), nullable=False),
    Column("settled", Integer, ForeignKey("entries.seq"), unique=True),
    CheckConstraint("state IN ('reserved', 'started', 'settled', 'void', 'forfeited')", name="known_state"),
    CheckConstraint("(state = 'settled') = (settled IS NOT NULL)", name="settled_by_an_entry"),
    Index("requests_by_question", "question", "state"),
    Index("requests_by_state", "state"),
    sqlite_strict=True,
)

# `ended` is the entry by which a schedule was left.
schedules = Table(
    "schedules",
    metadata,
    _key("schedule", ForeignKey("entries.seq")),
    Column("dataset", Text, ForeignKey("texts.digest"), nullable=False),
    Column("name", Text, ForeignKey("texts.digest"), nullable=False, unique=True),
    Column("ended", Integer, ForeignKey("entries.seq"), unique=True),
    sqlite_strict=True,
)

# A step is drawn by one conditional UPDATE, as money is spent; given back, it has no request again.
steps = Table(
    "steps",
    metadata,
    _key("schedule", ForeignKey("schedules.schedule")),
    _key("step", CheckConstraint("step >= 1")),
    Column("question", Text, ForeignKey("texts.digest"), nullable=False),
    Column("request", Integer, ForeignKey("requests.request"), unique=True),
    Index("steps_by_question", "schedule", "question"),
    sqlite_strict=True,
)

# An answer is refined by one request at a time: by another only after one that was given back or forfeited.
refinements = Table(
    "refinements",
    metadata,
    _key("parent", ForeignKey("requests.request")),
    Column("request", Integer, ForeignKey("requests.request"), nullable=False, unique=True),
    sqlite_strict=True,
)

# The last interactive request on an account: while that is open, no other is admitted there.
streams = Table(
    "streams",
    metadata,
    _key("account", ForeignKey("accounts.account")),
    Column("request", Integer, ForeignKey("requests.request"), nullable=False),
    sqlite_strict=True,
)

answers = Table(
    "answers",
    metadata,
    _key("request", ForeignKey("requests.request")),
    Column("salt", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_strict=True,
)

owners = Table(
    "owners",
    metadata,
    _key("request", ForeignKey("requests.request")),
    Column("host", Text, nullable=False),
    Column("boot", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", Integer, nullable=False),
    sqlite_strict=True,
)

# How long a reservation waits for its start: `given` counts microseconds on the clock of that boot of that host.
leases = Table(
    "leases",
    metadata,
    _key("request", ForeignKey("requests.request")),
    Column("host", Text, nullable=False),
    Column("boot", Text, nullable=False),
    Column("given", Integer, nullable=False),
    Column("seconds", Integer, CheckConstraint("seconds >= 1"), nullable=False),
    sqlite_strict=True,
)

# Row n holds the nodes that leaf n - 1 completes, the lowest first, 32 bytes each: two an entry, and all there are.
tree = Table(
    "tree",
    metadata,
    _key("size", ForeignKey("entries.seq")),
    Column("nodes", LargeBinary, CheckConstraint("length(nodes) > 0 AND length(nodes) % 32 = 0"), nullable=False),
    sqlite_strict=True,
)

# The private key is in the file that it signs (docs/decisions/0033), and gone once another has replaced it.
keys = Table(
    "keys",
    metadata,
    Column("key", Text, CheckConstraint("length(key) = 64"), primary_key=True),
    Column("private", LargeBinary, CheckConstraint("length(private) = 32")),
    sqlite_strict=True,
)

heads = Table(
    "heads",
    metadata,
    _key("size", ForeignKey("entries.seq")),
    Column("root", Text, CheckConstraint("length(root) = 64"), nullable=False),
    Column("accounts", Text, CheckConstraint("length(accounts) = 64"), nullable=False),
    Column("previous", Text, CheckConstraint("length(previous) = 64")),
    Column("key", Text, ForeignKey("keys.key"), nullable=False),
    Column("signature", Text, CheckConstraint("length(signature) = 128"), nullable=False),
    sqlite_strict=True,
)

strays = Table(
    "strays",
    metadata,
    Column("root", Text, CheckConstraint("length(root) = 64"), primary_key=True),
    Column("size", Integer, CheckConstraint("size >= 1"), nullable=False),
    Column("recovered", Integer, ForeignKey("entries.seq")),
    sqlite_strict=True,
)

# INSERT OR REPLACE deletes without a DELETE trigger, hence the third: an entry can only be the next one.
TRIGGERS = (
    "CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'entries are only added'); END",
    "CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'entries are only added'); END",
    "CREATE TRIGGER entries_have_no_gaps BEFORE INSERT ON entries"
    " WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM entries)"
    " BEGIN SELECT RAISE(ABORT, 'entries are only added'); END",
    "CREATE TRIGGER answers_are_never_changed BEFORE UPDATE ON answers"
    " BEGIN SELECT RAISE(ABORT, 'answers are only added'); END",
    "CREATE TRIGGER answers_are_never_removed BEFORE DELETE ON answers"
    " BEGIN SELECT RAISE(ABORT, 'answers are only added'); END",
    "CREATE TRIGGER answers_are_never_replaced BEFORE INSERT ON answers"
    " WHEN EXISTS (SELECT 1 FROM answers WHERE request = NEW.request)"
    " BEGIN SELECT RAISE(ABORT, 'answers are only added'); END",
    "CREATE TRIGGER tree_is_never_changed BEFORE UPDATE ON tree BEGIN SELECT RAISE(ABORT, 'nodes are only added'); END",
    "CREATE TRIGGER tree_is_never_removed BEFORE DELETE ON tree BEGIN SELECT RAISE(ABORT, 'nodes are only added'); END",
    "CREATE TRIGGER tree_has_no_gaps BEFORE INSERT ON tree"
    " WHEN NEW.size IS NOT (SELECT coalesce(max(size), 0) + 1 FROM tree)"
    " BEGIN SELECT RAISE(ABORT, 'nodes are only added'); END",
    "CREATE TRIGGER heads_are_never_changed BEFORE UPDATE ON heads"
    " BEGIN SELECT RAISE(ABORT, 'heads are only added'); END",
    "CREATE TRIGGER heads_are_never_removed BEFORE DELETE ON heads"
    " BEGIN SELECT RAISE(ABORT, 'heads are only added'); END",
    "CREATE TRIGGER heads_only_rise BEFORE INSERT ON heads"
    " WHEN NEW.size <= (SELECT coalesce(max(size), 0) FROM heads)"
    " BEGIN SELECT RAISE(ABORT, 'heads are only added'); END",
)
