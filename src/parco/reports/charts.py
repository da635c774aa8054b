"""The worked example as pictures: altair describes them, vl-convert draws them to SVG, without network or browser.

In every picture valid is orange and dashed, tight is blue and solid: told apart without colour, and by colour under
each common kind of colour blindness. Curves are named where they are. Text is set in Liberation Sans, which vl-convert
carries: the same rows give the same bytes on every machine with the same versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from parco.measure import significant_text
from parco.reports.example import AVERAGED_SCALE, DELTA, Average, Bounds

__all__ = ["averages_svg", "composition_svg"]

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_QUIET, _GRID = "#5f5f5f", "#e6e6e6"
_COLOURS = {"plain": "#222222", "valid": "#c44e00", "tight": "#0072b2", "charge": _QUIET}
_DASHES = {"plain": [1, 0], "valid": [5, 3], "tight": [1, 0], "charge": [1, 0]}
_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MARKED = (1, 10, 100, 1000)
_EPSILON = f"ε at δ = {float(DELTA):g}".replace("e-0", "e-")
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])

Row = dict[str, Any]


def composition_svg(rows: Sequence[Bounds]) -> str:
    """For every list of bounds, returns epsilon over the number of releases, two curves for each scale, as SVG."""
    most = max(row.releases for row in rows)
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
    panel = _Panel("k, number of releases", _EPSILON, (0.1, 300), ticks)
    curves = [_epsilons(row) for row in rows if _is_drawn(row.releases, most)]
    ends = [_epsilons(row) for row in rows if row.releases == most]
    layers = [
        panel.band(curves),
        panel.line(curves, "valid"),
        panel.line(curves, "tight"),
        *(panel.text(most, (end["valid"] * end["tight"]) ** 0.5, f"σ = {end['line']}", dx=8) for end in ends),
        panel.text(1.15, 8, "valid: closed form", "valid"),
        panel.text(850, 0.9, "tight: exact Gaussian profile", "tight", align="right"),
    ]
    return _svg(
        alt.layer(*layers).properties(width=600, height=430),
        title="Epsilon of k Gaussian releases, by a valid bound and by the tight one",
        subtitle="Sensitivity 1, noise of standard deviation σ in each release, k fixed in advance; logarithmic axes",
    )


def averages_svg(rows: Sequence[Average]) -> str:
    """For every list of averages, returns their standard deviation and, beside it, their cost, as SVG."""
    most = max(row.bounds.releases for row in rows)
    curves = [_average(row) for row in rows if _is_drawn(row.bounds.releases, most)]
    marked = [row for row in curves if row["x"] in _MARKED]
    error = _Panel("r, number of answers", "standard deviation of the mean", (0.2, 10), (0.2, 0.5, 1, 2, 5, 10))
    ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
    cost = _Panel("r, number of answers", f"cost of all r answers: μ², and {_EPSILON}", (0.01, 50), ticks)
    errors = [
        error.line(curves, "deviation", "plain"),
        error.points(marked, "deviation", "plain"),
        *(error.text(row["x"], row["deviation"], f"{row['deviation']:.3g}", dx=8, dy=-7) for row in marked),
    ]
    costs = [
        cost.band(curves),
        cost.line(curves, "charge"),
        cost.line(curves, "valid"),
        cost.line(curves, "tight"),
        cost.points(marked, "tight", "tight"),
        *(cost.text(row["x"], row["tight"], row["tight_text"], "tight", dx=7, dy=10) for row in marked),
        cost.text(2.7, 2.6, "ε, valid", "valid"),
        cost.text(27, 1.85, "ε, tight", "tight"),
        cost.text(24, 0.17, "μ², the charge in gdp", "charge"),
    ]
    panels = [alt.layer(*layers).properties(width=330, height=330) for layers in (errors, costs)]
    return _svg(
        alt.hconcat(*panels, spacing=64),
        title="The mean of r answers to one question: what it gains, what it costs",
        subtitle=f"Sensitivity 1, fresh noise of standard deviation {AVERAGED_SCALE} in each, r fixed in advance; "
        "logarithmic axes",
    )


@dataclass(frozen=True)
class _Panel:
    """Two logarithmic axes, and what can be laid upon them; every row of data has its place across under "x"."""

    across: str
    up: str
    span: tuple[float, float]
    ticks: tuple[float, ...]

    def line(self, rows: Iterable[Row], field: str, kind: str | None = None) -> alt.Chart:
        style = kind or field
        chart = _data(rows).mark_line(color=_COLOURS[style], strokeDash=_DASHES[style], strokeWidth=1.8, aria=False)
        return self._placed(chart, field, alt.Detail("line:N"))

    def band(self, rows: Iterable[Row]) -> alt.Chart:
        chart = _data(rows).mark_area(color=_COLOURS["valid"], opacity=0.12, aria=False)
        return self._placed(chart, "valid", alt.Y2("tight:Q"), alt.Detail("line:N"))

    def points(self, rows: Iterable[Row], field: str, kind: str) -> alt.Chart:
        chart = _data(rows).mark_point(color=_COLOURS[kind], filled=True, size=45, opacity=1, aria=False)
        return self._placed(chart, field)

    def text(self, x: float, y: float, text: str, kind: str = "plain", **place: Any) -> alt.Chart:  # noqa: ANN401
        mark: Row = {"align": "left", "fontSize": 13, "color": _COLOURS[kind], "aria": False} | place
        chart = _data([{"x": x, "y": _short(y), "text": text}]).mark_text(**mark)
        return self._placed(chart, "y", alt.Text("text:N"))

    def _placed(self, chart: alt.Chart, field: str, *encodings: Any) -> alt.Chart:  # noqa: ANN401 - altair's channels
        placed: alt.Chart = chart.encode(self._x(), self._y(field), *encodings)
        return placed

    def _x(self) -> alt.X:
        scale = alt.Scale(type="log", domain=[_COUNTS[0], _COUNTS[-1]], nice=False)
        return alt.X("x:Q", scale=scale, axis=alt.Axis(values=list(_COUNTS), title=self.across, format="d"))

    def _y(self, field: str) -> alt.Y:
        # The title stands above the axis, upright.
        place: Row = {"titleAngle": 0, "titleAlign": "left", "titleBaseline": "bottom", "titleX": -34, "titleY": -12}
        axis = alt.Axis(values=list(self.ticks), title=self.up, format="~g", **place)
        return alt.Y(f"{field}:Q", scale=alt.Scale(type="log", domain=list(self.span), nice=False), axis=axis)


def _svg(chart: alt.TopLevelMixin, *, title: str, subtitle: str) -> str:
    configured = (
        chart.properties(title=alt.TitleParams(title, subtitle=subtitle, anchor="start"))
        .configure(font=_FONT, background="white", padding=14)
        .configure_view(stroke=None)
        .configure_title(fontSize=16, subtitleFontSize=13, subtitleColor=_QUIET, offset=20)
        .configure_axis(
            gridColor=_GRID,
            domainColor=_QUIET,
            tickColor=_QUIET,
            labelColor=_COLOURS["plain"],
            labelFontSize=12,
            labelFlush=False,
            labelOverlap=False,
            titleColor=_COLOURS["plain"],
            titleFontSize=13,
            titleFontWeight="normal",
        )
    )
    svg: str = vl_convert.vegalite_to_svg(configured.to_dict(), vl_version=_VEGA_LITE, allowed_base_urls=[])
    return svg + "\n"


def _data(rows: Iterable[Row]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)))


def _epsilons(row: Bounds) -> Row:
    return {"x": row.releases, "valid": _short(row.valid), "tight": _short(row.tight), "line": str(row.scale)}


def _average(row: Average) -> Row:
    known: Row = {"deviation": _short(row.standard_deviation), "charge": _short(row.bounds.mu_squared)}
    # A printed epsilon is rounded up, like every other.
    return _epsilons(row.bounds) | known | {"tight_text": significant_text(row.bounds.tight, 3, up=True)}


def _short(value: Any) -> float:  # noqa: ANN401 - Fraction or float
    """A number to six digits, which is finer than a picture shows and the same wherever it is computed."""
    return float(f"{float(value):.6g}")


def _is_drawn(count: int, most: int) -> bool:
    """About ninety places of a thousand: between them a curve is straight to a hundredth of a pixel."""
    return count == most or count % max(1, 10 ** (len(str(count)) - 1) // 4) == 0
