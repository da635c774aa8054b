"""Who acts, where nobody is named."""

from __future__ import annotations

import getpass

__all__ = ["default_actor"]


def default_actor() -> str:
    """The login name, or "unknown" where the machine has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
