"""Which methods write. Each has its place in the tests of faults, or those fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["DURABLE", "durable"]

F = TypeVar("F", bound=Callable[..., Any])

DURABLE: list[str] = []
"""Their names, in the order in which they are defined."""


def durable(method: F) -> F:
    """The same method, listed."""
    DURABLE.append(method.__name__)
    return method
