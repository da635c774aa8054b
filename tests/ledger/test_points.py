"""Crash points have closed names."""

from __future__ import annotations

import pytest

from parco.errors import InternalError
from parco.ledger import points


def test_every_named_point_is_passed_and_no_other() -> None:
    for point in points.POINTS:
        points.reach(point)
    with pytest.raises(InternalError, match="after-resreve"):
        points.reach("after-resreve")
