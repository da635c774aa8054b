"""A release as other libraries' frames and in a notebook: exact, and with nothing in it that runs."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import parco
from parco.session.release import Answer
from tests.shop import COLUMNS, open_shop

MARKUP = '<img src=x onerror="alert(1)">&amp;'


def test_frames_hold_what_the_table_holds(tmp_path: Path) -> None:
    release = parco.Session(open_shop(tmp_path)).sum("dollars", by=["month", "channel"], cost="0.25")
    rows = release.table().to_pylist()
    assert release.to_polars().to_dicts() == rows
    assert release.to_pandas().to_dict("records") == rows
    assert {type(row["value"]) for row in rows} == {Decimal}


def test_longer_decimals_become_doubles_in_polars_only() -> None:
    from parco.session import frames

    answer = Answer(("k",), ((0,), (1,)), (2**62 + 1, -1), Fraction(1, 2**60), Fraction(1), Fraction(95, 100))
    found = frames.to_polars(answer.table())
    assert found.schema["value"] == pl.Float64
    assert found["value"].to_list() == pytest.approx([4.0, -(0.5**60)], rel=1e-15)
    assert frames.to_pandas(answer.table())["value"].tolist() == answer.table()["value"].to_pylist()


def test_keys_are_escaped_in_a_notebook(tmp_path: Path) -> None:
    columns = COLUMNS.replace('"web"', f"'{MARKUP}'").replace("[bins.month]", "[bins.'<b>month']")
    contract = open_shop(tmp_path, columns=columns)
    release = parco.Session(contract).count(by=["channel", "<b>month"], cost="0.25")
    shown = release._repr_html_()
    assert "<img" not in shown
    assert "<b>" not in shown
    assert shown.count("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;amp;") == 4
    assert shown.startswith(release.value._repr_html_())
    assert "bound" in shown
    assert "one customer. Nothing is declared unprotected." in shown
    assert release.map(lambda _: "<i>mine</i>")._repr_html_().startswith("<pre>&lt;i&gt;mine")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_asked_for(
    tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = parco.Session(open_shop(tmp_path)).count(cost="0.25")
    release.table()  # Arrow looks for pandas once, at its first array
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(parco.RequestError, match=f"{library} is not installed"):
        getattr(release, f"to_{library}")()


def test_what_is_unprotected_stands_on_every_receipt(tmp_path: Path) -> None:
    contract = open_shop(tmp_path)
    assert "Nothing is declared unprotected." in str(parco.Session(contract).count(cost="0.1").receipt)
    text = (tmp_path / "contract.toml").read_text().replace('unprotected = "none"', 'unprotected = ["number of rows"]')
    (tmp_path / "contract.toml").write_text(text.replace('name = "shop"', 'name = "shop 2"', 1))
    other = parco.Contract.read(tmp_path / "contract.toml")
    parco.sign(other)
    shown = str(parco.Session(other).count_units(cost="0.1").receipt)
    assert "Declared unprotected, so that no claim covers it: number of rows." in shown
