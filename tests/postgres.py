"""A PostgreSQL server of the tests' own, in a temporary folder, for as long as they run.

The programs of a server are looked for where systems put them; root runs them as another user, since they refuse root.
"""

from __future__ import annotations

import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from parco.stores.postgres_schema import administrators_sql
from parco.stores.upgrade import VERSION

__all__ = ["APP", "READER", "Server", "programs"]

APP, READER, ADMIN = "parco_app", "parco_reader", "admin"
START_SECONDS = 60.0
_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/pgsql/bin",
)

# Small, and with every safety on: what the store refuses to run without is not turned off for speed.
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "deadlock_timeout": "20ms",
    "log_min_messages": "fatal",
}


def programs() -> Path | None:
    """The folder of the newest server's programs on this machine, or None."""
    found = [path for place in _PLACES for path in Path("/").glob(place.lstrip("/")) if (path / "initdb").exists()]
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve().parent)
    return max(found, key=lambda path: [int(number) for number in re.findall(r"\d+", str(path))], default=None)


class Server:
    """One server, reached through a socket in its folder; `ledger()` lends an empty ledger in a database of its own."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="parco-pg-"))
        self._user = _unprivileged() if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._process: subprocess.Popen[Any] | None = None
        self._free: list[str] = []
        self._numbers = itertools.count()
        try:
            self._run("initdb", "-D", "data", "-U", ADMIN, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self.start()
            self.run_sql("postgres", "CREATE DATABASE template")
            self.run_sql("template", administrators_sql(APP, reader=READER))
        except BaseException:
            self.remove()
            raise

    def start(self) -> None:
        """Starts the server, after recovery where it crashed, and returns when it answers."""
        options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", "data", "-k", str(self.folder), *options]
        self._process = process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._as_user()
        )
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres", ADMIN)).close()
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops it: SIGINT in order, SIGQUIT as a crash of the server, whose log is replayed at the next start."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=START_SECONDS)

    def remove(self) -> None:
        """Stops it for good."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, role: str = APP) -> str:
        """The address of a database."""
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def ledger(self) -> str:
        """The name of a database with an empty ledger; give it back with `free`."""
        if not self._free:
            name = f"ledger_{next(self._numbers)}"
            self.run_sql("postgres", f"CREATE DATABASE {name} TEMPLATE template")
            self.run_sql(name, "UPDATE ledger SET identity = gen_random_uuid()")
            return name
        name = self._free.pop()
        self.empty(name)
        return name

    def empty(self, database: str) -> None:
        """Makes a ledger as new: whoever still has a connection loses it."""
        with psycopg.connect(self.url(database, ADMIN), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'parco'").fetchall()
            clear = [f"DELETE FROM parco.{name}" for (name,) in tables if name not in ("ledger", "writing")]
            statements = ["BEGIN", "SET LOCAL session_replication_role = replica", *clear]
            statements += [f"UPDATE parco.ledger SET identity = gen_random_uuid(), version = {VERSION}", "COMMIT"]
            connection.execute("; ".join(statements))

    def free(self, database: str) -> None:
        """Takes a database back."""
        self._free.append(database)

    def run_sql(self, database: str, *statements: str, unguarded: bool = False) -> list[Any]:
        """Statements of the administrator, past the store; `unguarded`, past triggers and foreign keys too."""
        rows: list[Any] = []
        with psycopg.connect(self.url(database, ADMIN), autocommit=True, options="-c search_path=parco") as connection:
            if unguarded:
                connection.execute("SET session_replication_role = replica")
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def dump(self, database: str) -> dict[str, bytes]:
        """What every table of a ledger holds."""
        with psycopg.connect(self.url(database, ADMIN)) as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'parco'").fetchall()
            kept = {}
            for (name,) in names:
                with connection.cursor().copy(f"COPY parco.{name} TO STDOUT") as rows:
                    kept[name] = b"".join(bytes(part) for part in rows)
        return kept

    def load(self, database: str, kept: dict[str, bytes]) -> None:
        """Puts that back in one transaction, past triggers and foreign keys, in the place of what is there."""
        with psycopg.connect(self.url(database, ADMIN)) as connection:
            connection.execute("SET LOCAL session_replication_role = replica")
            for name, rows in kept.items():
                connection.execute(f"DELETE FROM parco.{name}")
                with connection.cursor().copy(f"COPY parco.{name} FROM STDIN") as copy:
                    copy.write(rows)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, **self._as_user())

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LookupError("no user to run PostgreSQL as")
