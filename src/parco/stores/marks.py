"""The high-water mark: the ledger's heads once more in a file outside it, one line each, the last one last.

For a ledger in a file it lies beside it; of a ledger in a database each host keeps one of its own, with the heads that
this host's processes left. If an old copy of the ledger is put back, or a stale replica made a primary, the mark still
knows how far it had come. Whoever puts both back is found by a head kept elsewhere, in a witness file, which has the
same form. A mark is written after the commit, as well as the machine allows: losing it loses a warning and no more.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from parco.errors import ParcoError, RequestError
from parco.ledger.heads import Head, head_of

__all__ = ["beside", "last", "on_this_host", "read", "read_witness", "record", "write"]

# The file is cut down to its last heads now and then; each line takes less than 600 bytes.
_BYTES_MAX, _BYTES_KEPT = 1 << 20, 1 << 18
# Where the last one is looked for: seven lines at least.
_BYTES_LAST = 1 << 12
# Windows would change the ends of lines.
_BINARY = getattr(os, "O_BINARY", 0)

# The last line that this process wrote, and the head it says.
_WRITTEN: list[tuple[bytes, Head]] = []


def beside(ledger: Path) -> Path:
    """`purchases.ledger` has `purchases.ledger.heads`."""
    return ledger.with_name(f"{ledger.name}.heads")


def on_this_host(identity: object) -> Path | None:
    """The file that this user keeps of the database's ledger with this identity, None for a user without a home.

    In the folder for state of the XDG Base Directory Specification, or `%LOCALAPPDATA%`.
    """
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", "")
    try:
        folder = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return folder / "parco" / f"{identity}.heads"


def record(path: Path, head: Head) -> None:
    """Adds a head to the mark, if the machine lets it; never raises for the machine."""
    with suppress(OSError):
        try:
            size = write(path, head, mode=0o600)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            size = write(path, head, mode=0o600)
        if size > _BYTES_MAX:
            _cut(path)


def write(path: Path, head: Head, *, mode: int = 0o644) -> int:
    """Adds a head to a file of heads, which is made, with this mode, if there is none; returns how long it is."""
    line = head.line
    _WRITTEN[:] = [(line, head)]
    handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR | _BINARY, mode)
    try:
        size = os.fstat(handle).st_size
        # Behind a line that a failing disk cut short, the next one begins anew.
        data = (b"" if size == 0 or _last_byte(handle) == b"\n" else b"\n") + line + b"\n"
        if os.write(handle, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return size + len(data)
    finally:
        os.close(handle)


def _last_byte(handle: int) -> bytes:
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1)


def last(path: Path) -> Head | None:
    """The last head of the mark that can be read, None if there is none."""
    # As a rule in the last lines; further back only behind what is no head.
    for end in (_BYTES_LAST, _BYTES_KEPT):
        data = _end(path, end)
        # And as a rule it is what this process wrote.
        for line, head in _WRITTEN:
            if data.endswith(b"\n" + line + b"\n"):
                return head
        found = next(_readable(reversed(data.split(b"\n"))), None)
        if found is not None:
            return found
    return None


def read(path: Path) -> list[Head]:
    """All heads of the mark that can be read, oldest first."""
    return list(_readable(_lines(path)))


def read_witness(path: Path) -> list[Head]:
    """The heads of a witness file, none if there is no file; RequestError for a line that is not a head."""
    if not path.exists():
        return []
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    found = list(_readable(lines))
    if len(found) < len(lines):
        raise RequestError(f"{path} is not a file of heads: each line is what `parco ledger head` prints")
    return found


def _readable(lines: Iterable[bytes]) -> Iterator[Head]:
    for line in lines:
        head = _head(line)
        if head is not None:
            yield head


def _head(line: bytes) -> Head | None:
    if not line:
        return None
    with suppress(ParcoError, ValueError, RecursionError):
        return head_of(json.loads(line))
    return None


def _lines(path: Path) -> list[bytes]:
    with suppress(OSError):
        return path.read_bytes().split(b"\n")
    return []


def _end(path: Path, length: int) -> bytes:
    """The last so many bytes of a file, nothing where it cannot be read."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | _BINARY)
        try:
            os.lseek(handle, max(0, os.fstat(handle).st_size - length), os.SEEK_SET)
            return os.read(handle, length)
        finally:
            os.close(handle)
    return b""


def _cut(path: Path) -> None:
    lines = _end(path, _BYTES_KEPT).split(b"\n")[1:]
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(b"\n".join(lines))
    draft.replace(path)
