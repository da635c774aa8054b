"""The figure of `accuracy_first.py`, in the looks of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
from numpy.typing import NDArray

# One look for all pictures: these are the file's own, and this bench is a guest there.
from parco.reports.charts import _COLOURS, _data, _short, _svg

__all__ = ["costs_svg"]

_DRAWN = {
    "refinement, ratio 2": ("refinement, ratio 2", "#0072b2", [1, 0]),
    "refinement, predictive ladder": ("predictive", "#222222", [1, 0]),
    "independent restarts, costs doubled": ("restarts", "#c44e00", [5, 3]),
    "one release, fixed beforehand for a truth of 10": ("one release, fixed beforehand", "#5f5f5f", [2, 2]),
}
_TOP = 100


def costs_svg(costs: Mapping[str, Sequence[float]], truths: NDArray[np.float64]) -> str:
    """For every list of median costs over that of one release for a known truth, returns curves over the truth, SVG."""
    layers = []
    for name, (shown, colour, dashes) in _DRAWN.items():
        rows = [
            {"x": _short(truth), "y": _short(cost)}
            for truth, cost in zip(truths, costs[name], strict=True)
            if cost <= _TOP
        ]
        layers.append(_placed(_data(rows).mark_line(color=colour, strokeDash=dashes, strokeWidth=1.8, aria=False)))
        last = rows[-1] if len(rows) == len(truths) else {"x": rows[-1]["x"], "y": rows[-1]["y"]}
        mark = _data([last | {"text": shown}]).mark_text(align="left", dx=8, fontSize=13, color=colour, aria=False)
        layers.append(_placed(mark, alt.Text("text:N")))
    return _svg(
        alt.layer(*layers).properties(width=560, height=380),
        title="What 5 % at 95 % costs, when nobody knows the truth",
        subtitle="Median mu squared, over that of one release that would do were the truth known; logarithmic axes",
    )


def _placed(chart: alt.Chart, *encodings: object) -> alt.Chart:
    across = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[10, 100_000], nice=False),
        axis=alt.Axis(values=[10, 100, 1000, 10_000, 100_000], title="the truth", format="~s"),
    )
    place = {"titleAngle": 0, "titleAlign": "left", "titleBaseline": "bottom", "titleX": -34, "titleY": -12}
    axis = alt.Axis(
        values=[1, 2, 5, 10, 20, 50, 100], title="times", format="~g", labelColor=_COLOURS["plain"], **place
    )
    up = alt.Y("y:Q", scale=alt.Scale(type="log", domain=[1, _TOP], nice=False), axis=axis)
    placed: alt.Chart = chart.encode(across, up, *encodings)
    return placed
