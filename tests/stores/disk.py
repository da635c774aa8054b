"""A disk that can be watched and broken: what SQLite asks of it, recorded or refused, and what a power failure leaves.

A VFS of SQLite's own kind, registered with the very library that the `sqlite3` module uses, stands before the system's
and passes everything on. So the store under test runs unchanged. What a failure of power can leave is told by the rules
of sqlite.org/atomiccommit.html: what was not synced may be there, be missing, or be there up to some sector.
"""

from __future__ import annotations

import ctypes
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Disk", "Step", "images", "watched"]

SECTOR = 512

_Pointer = ctypes.c_void_p
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, ctypes.c_int)
_CLOSE = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer)
# The path as a bare pointer: SQLite keeps it, and Python's own copy of the text would be gone by then.
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, _Pointer, ctypes.c_int, _Pointer)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, ctypes.c_char_p, ctypes.c_int)


class _Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("close", _Pointer),
        ("read", _Pointer),
        ("write", _Pointer),
        ("truncate", _Pointer),
        ("sync", _Pointer),
        *((f"other_{number}", _Pointer) for number in range(13)),
    ]


class _File(ctypes.Structure):
    """sqlite3_file: what follows is the system's own."""

    _fields_ = [("methods", ctypes.POINTER(_Methods))]


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("path_max", ctypes.c_int),
        ("next", _Pointer),
        ("name", ctypes.c_char_p),
        ("data", _Pointer),
        ("open", _Pointer),
        ("delete", _Pointer),
        *((f"other_{number}", _Pointer) for number in range(14)),
    ]


@dataclass(frozen=True)
class Step:
    """One thing asked of the disk: `write`, `truncate`, `sync`, `delete` or `create`, of the file with this name.

    A `sync` of a new file also keeps its name; a `delete` is kept at once where `size` is 1.
    """

    kind: str
    name: str
    data: bytes = b""
    place: int = 0
    size: int = 0


@dataclass
class Disk:
    """All steps so far; the one with the number `broken` (from 0) fails, and is not done."""

    steps: list[Step] = field(default_factory=list)
    broken: int | None = None
    failed: bool = False

    def asked(self, step: Step, act: Callable[[], int], faults: dict[str, int]) -> int:
        """Does a step, or fails it with the code for its kind."""
        number = len(self.steps)
        self.steps.append(step)
        if number == self.broken and step.kind in faults:
            self.failed = True
            return faults[step.kind]
        return act()


def _library() -> Any:
    """The library that `sqlite3` is linked with: already loaded, so that its name finds it."""
    library = ctypes.CDLL("libsqlite3.so.0")
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    library.sqlite3_vfs_register.argtypes = [ctypes.POINTER(_Vfs), ctypes.c_int]
    library.sqlite3_libversion.restype = ctypes.c_char_p
    if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
        raise OSError("the sqlite3 module has a library of its own")
    return library


@contextmanager
def watched(disk: Disk, *, faults: dict[str, int] | None = None) -> Iterator[Disk]:
    """Every file that SQLite opens inside is watched by `disk`; raises OSError where the library cannot be reached."""
    library = _library()
    system = library.sqlite3_vfs_find(None)
    shim = _Shim(disk, system, faults or {})
    library.sqlite3_vfs_register(ctypes.byref(shim.vfs), 1)
    try:
        yield disk
    finally:
        library.sqlite3_vfs_register(system, 1)
        library.sqlite3_vfs_unregister(ctypes.byref(shim.vfs))


class _Shim:
    """The VFS; it keeps every callback alive as long as itself."""

    def __init__(self, disk: Disk, system: Any, faults: dict[str, int]) -> None:
        self._disk, self._system, self._faults = disk, system, faults
        self._files: dict[int, tuple[str, _Methods, _Methods]] = {}
        self._callbacks = {
            "open": _OPEN(self._open),
            "delete": _DELETE(self._delete),
            "close": _CLOSE(self._close),
            "write": _WRITE(self._write),
            "truncate": _TRUNCATE(self._truncate),
            "sync": _SYNC(self._sync),
        }
        self.vfs = _Vfs.from_buffer_copy(system.contents)
        self.vfs.name = b"watched"
        for name in ("open", "delete"):
            setattr(self.vfs, name, ctypes.cast(self._callbacks[name], _Pointer))

    def _open(self, _: int, given: int | None, file: int, flags: int, flags_out: int | None) -> int:
        path = None if given is None else Path(ctypes.string_at(given).decode())
        is_new = path is not None and not path.exists()
        code = _OPEN(self._system.contents.open)(ctypes.addressof(self._system.contents), given, file, flags, flags_out)
        opened = ctypes.cast(file, ctypes.POINTER(_File)).contents
        if code != 0 or not opened.methods:
            return int(code)
        original = opened.methods.contents
        ours = _Methods.from_buffer_copy(original)
        for method in ("close", "write", "truncate", "sync"):
            setattr(ours, method, ctypes.cast(self._callbacks[method], _Pointer))
        name = "" if path is None else path.name
        self._files[file] = (name, original, ours)
        opened.methods = ctypes.pointer(ours)
        if is_new:
            self._disk.steps.append(Step("create", name))
        return int(code)

    def _close(self, file: int) -> int:
        _, original, _ = self._files.pop(file)
        return int(_CLOSE(original.close)(file))

    def _write(self, file: int, data: int, size: int, place: int) -> int:
        name, original, _ = self._files[file]
        step = Step("write", name, ctypes.string_at(data, size), place)
        return self._asked(step, lambda: _WRITE(original.write)(file, data, size, place))

    def _truncate(self, file: int, size: int) -> int:
        name, original, _ = self._files[file]
        return self._asked(Step("truncate", name, size=size), lambda: _TRUNCATE(original.truncate)(file, size))

    def _sync(self, file: int, flags: int) -> int:
        name, original, _ = self._files[file]
        return self._asked(Step("sync", name), lambda: _SYNC(original.sync)(file, flags))

    def _delete(self, _: int, path: bytes, is_synced: int) -> int:
        step = Step("delete", Path(path.decode()).name, size=is_synced)
        system = ctypes.addressof(self._system.contents)
        return self._asked(step, lambda: _DELETE(self._system.contents.delete)(system, path, is_synced))

    def _asked(self, step: Step, act: Callable[[], int]) -> int:
        return int(self._disk.asked(step, act, self._faults))


@dataclass
class _Kept:
    """What a disk surely holds, and what was asked of it since and is not synced."""

    files: dict[str, bytes]
    loose: list[Step] = field(default_factory=list)

    def do(self, step: Step) -> None:
        if step.kind == "sync":
            # A new file's name is synced with it: unixSync syncs the folder of a journal once.
            self._keep(lambda other: other.name == step.name)
        elif step.kind == "delete" and step.size:
            self.loose.append(step)
            self._keep(lambda other: other.kind in ("create", "delete"))
        else:
            self.loose.append(step)

    def _keep(self, chosen: Callable[[Step], bool]) -> None:
        for step in self.loose:
            if chosen(step):
                _apply(self.files, step)
        self.loose = [step for step in self.loose if not chosen(step)]


def images(
    before: dict[str, bytes], steps: list[Step], *, seed: int, each: int
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Files that a power failure may leave, with the number of steps that were done: all loose steps lost, all kept,
    and `each` times some lost, some torn, in any order.
    """
    dice, kept = random.Random(seed), _Kept(dict(before))
    for done in range(len(steps) + 1):
        loose = kept.loose
        yield done, dict(kept.files)
        if loose:
            yield done, _with(kept.files, loose)
            for _ in range(each):
                yield done, _with(kept.files, _some(loose, dice))
        if done < len(steps):
            kept.do(steps[done])


def _some(loose: list[Step], dice: random.Random) -> list[Step]:
    chosen = []
    for step in loose:
        if dice.random() < 0.5:
            continue
        is_torn = step.kind == "write" and dice.random() < 0.3
        chosen.append(_torn(step, dice) if is_torn else step)
    if dice.random() < 0.3:
        dice.shuffle(chosen)
    return chosen


def _torn(step: Step, dice: random.Random) -> Step:
    """A write of which only the first sectors came to the disk."""
    return Step("write", step.name, step.data[: dice.randrange(0, len(step.data) + 1, SECTOR)], step.place)


def _with(files: dict[str, bytes], steps: list[Step]) -> dict[str, bytes]:
    found = dict(files)
    for step in steps:
        _apply(found, step)
    return found


def _apply(files: dict[str, bytes], step: Step) -> None:
    if step.kind == "create":
        files.setdefault(step.name, b"")
    elif step.kind == "delete":
        files.pop(step.name, None)
    elif step.kind == "truncate" and step.name in files:
        files[step.name] = files[step.name][: step.size].ljust(step.size, b"\0")
    elif step.kind == "write":
        old = files.get(step.name, b"").ljust(step.place, b"\0")
        files[step.name] = old[: step.place] + step.data + old[step.place + len(step.data) :]
