"""Nodes for compositions of few outcomes too, which are otherwise gone through one by one."""

from __future__ import annotations

import pytest

from parco.privacy.composition import composition


@pytest.fixture
def by_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nodes refuse is still gone through outcome by outcome."""
    monkeypatch.setattr(composition, "_OUTCOMES_FEW", 0)
