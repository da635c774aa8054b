"""Which file system a ledger lies on: locks of network file systems are known to fail without a word."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from pathlib import Path

__all__ = ["network_type", "warn_of_network"]

_MOUNTS = Path("/proc/self/mountinfo")
# fmt: off
_NETWORK = frozenset([
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph", "fuse.davfs", "fuse.glusterfs",
    "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "ocfs2", "smb3", "smbfs", "vboxsf", "vmhgfs",
])
# fmt: on


def network_type(path: Path) -> str | None:
    """The type of the network file system that `path` lies on; None for a local one, or where the system cannot tell.

    Linux alone can be asked without a driver of its own.
    """
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError):
        found = _type_of(path, _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
        return found if found in _NETWORK else None
    return None


def warn_of_network(path: Path) -> None:
    """Warns where a ledger lies on a network file system."""
    found = network_type(path)
    if found is not None:
        warnings.warn(
            f"{path} lies on a network file system ({found}): its locks may let two writers in at once, and a ledger"
            " can be damaged so. Keep it on a local disk; a team shares a ledger in PostgreSQL",
            RuntimeWarning,
            stacklevel=3,
        )


def _type_of(path: Path, mounts: str) -> str:
    """The type of the last mount on the longest mount point above `path`: it hides the others.

    proc(5): field 5 is the mount point, with \\040 for a space; the type follows a lone dash.
    """
    best, found = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split(" ")[4].encode().decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, found = len(point.parts), after.split(" ")[0]
    return found
