"""What an administrator runs once to make a ledger in a PostgreSQL database: tables, triggers and roles, as SQL.

The role that parco connects as may add entries and move amounts. It owns nothing and may delete nothing, and whoever
owns the tables is stopped by triggers from changing entries by mistake. The SQL is printed and not run: who may make
tables and roles is the administrator's to decide, and everything it does can be read first.
"""

from __future__ import annotations

import re

from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.schema import CreateIndex, CreateTable

from parco.errors import RequestError
from parco.stores import tables
from parco.stores.upgrade import VERSION

__all__ = ["SCHEMA", "WRITING", "administrators_sql"]

SCHEMA = "parco"

WRITING = "writing"
"""The empty table whose lock lets one writer in at a time: nothing ever vacuums it, and readers never wait for it."""

_ROLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)

# Repeats change nothing and may be lost: a table without a write-ahead log, emptied by a crash of the server.
_MORE = f"""
CREATE TABLE ledger (
    one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    version BIGINT NOT NULL,
    identity UUID NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO ledger (version) VALUES ({VERSION});
CREATE TABLE {WRITING} (nothing BOOLEAN);
CREATE UNLOGGED TABLE repeats (request BIGINT NOT NULL);
"""  # noqa: S608 - a number and a name of our own

# Once for all rows that a statement adds: for each of a hundred thousand, the server would be busy with little else.
_TRIGGERS = """
CREATE FUNCTION only_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are only added', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION only_the_next() RETURNS trigger LANGUAGE plpgsql SET search_path = parco, pg_temp AS $$
DECLARE
    low BIGINT; high BIGINT; number BIGINT;
BEGIN
    SELECT min(seq), max(seq), count(*) INTO low, high, number FROM added;
    IF number > 0 AND (
        number <> high - low + 1 OR high <> (SELECT max(seq) FROM entries)
        OR low <> (SELECT coalesce(max(seq), 0) + 1 FROM entries WHERE seq < low)
    ) THEN
        RAISE EXCEPTION 'entries are only added' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION only_the_next_node() RETURNS trigger LANGUAGE plpgsql SET search_path = parco, pg_temp AS $$
DECLARE
    low BIGINT; high BIGINT; number BIGINT;
BEGIN
    SELECT min(size), max(size), count(*) INTO low, high, number FROM added;
    IF number > 0 AND (
        number <> high - low + 1 OR high <> (SELECT max(size) FROM tree)
        OR low <> (SELECT coalesce(max(size), 0) + 1 FROM tree WHERE size < low)
    ) THEN
        RAISE EXCEPTION 'nodes are only added' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION only_higher() RETURNS trigger LANGUAGE plpgsql SET search_path = parco, pg_temp AS $$
BEGIN
    IF NEW.size <= (SELECT coalesce(max(size), 0) FROM heads) THEN
        RAISE EXCEPTION 'heads are only added' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER entries_have_no_gaps AFTER INSERT ON entries REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION only_the_next();
CREATE TRIGGER tree_has_no_gaps AFTER INSERT ON tree REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION only_the_next_node();
CREATE TRIGGER heads_only_rise BEFORE INSERT ON heads
    FOR EACH ROW EXECUTE FUNCTION only_higher();
CREATE TRIGGER entries_are_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    EXECUTE FUNCTION only_added();
CREATE TRIGGER answers_are_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON answers
    EXECUTE FUNCTION only_added();
CREATE TRIGGER tree_are_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON tree
    EXECUTE FUNCTION only_added();
CREATE TRIGGER heads_are_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON heads
    EXECUTE FUNCTION only_added();
"""

_AMOUNTS = ", ".join(f"{kind}{name}" for kind in ("", "delta_") for name in ("cap", "spent", "reserved", "excess"))
_CHANGED = {
    "accounts": _AMOUNTS,
    "contracts": "contract, opened",
    "keys": "private",
    "quota_amounts": "used",
    "quotas": "replaced",
    "refinements": "request",
    "requests": "state, settled",
    "schedules": "ended",
    "steps": "request",
    "strays": "recovered",
    "streams": "request",
    "texts": "salt, text, lookup",
}


def administrators_sql(role: str, *, reader: str | None = None) -> str:
    """For every two names of roles, the SQL that makes an empty ledger for them, in one transaction.

    `role` is the one parco connects as; it is made if there is none, without a password. `reader`, if given, may read
    everything but the data sets' secrets and the signing key. Raises RequestError for a name that is no plain name.
    """
    for name in (role, *([] if reader is None else [reader])):
        if not _ROLE.fullmatch(name):
            raise RequestError("a role is named by letters, digits and _, and begins with no digit")
    parts = [
        "-- A parco ledger in this database. Run it as the administrator who is to own the tables.",
        "BEGIN;",
        f"CREATE SCHEMA {SCHEMA};",
        f"SET LOCAL search_path = {SCHEMA};",
        *_tables(),
        _MORE.strip(),
        _TRIGGERS.strip(),
        _grants(role, write=True),
        *([] if reader is None else [_grants(reader, write=False)]),
        "COMMIT;",
    ]
    return "\n".join(parts) + "\n"


def _tables() -> list[str]:
    # The SQL is printed, so that no % of it may be doubled as in a statement with parameters.
    dialect = psycopg.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
    made = []
    for table in tables.metadata.sorted_tables:
        made.append(str(CreateTable(table).compile(dialect=dialect)).strip() + ";")
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        made += [str(CreateIndex(index).compile(dialect=dialect)).strip() + ";" for index in indexes]
    return made


def _grants(role: str, *, write: bool) -> str:
    everything = [table.name for table in tables.metadata.sorted_tables]
    quoted = f'"{role}"'
    lines = [
        f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN",
        f"    CREATE ROLE {quoted} LOGIN;",
        "END IF; END $$;",
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO {quoted};",
    ]
    if not write:
        read = ", ".join(name for name in everything if name not in (tables.secrets.name, tables.keys.name))
        public = f"GRANT SELECT ({tables.keys.c.key.name}) ON {tables.keys.name} TO {quoted};"
        return "\n".join([*lines, f"GRANT SELECT ON {read}, ledger, repeats TO {quoted};", public])
    return "\n".join(
        [
            *lines,
            f"GRANT SELECT, INSERT ON {', '.join(everything)}, repeats TO {quoted};",
            f"GRANT SELECT ON ledger TO {quoted};",
            # A lock needs a right to change; there is never anything in this table.
            f"GRANT UPDATE ON {WRITING} TO {quoted};",
            *(f"GRANT UPDATE ({columns}) ON {name} TO {quoted};" for name, columns in _CHANGED.items()),
        ]
    )
