"""What a picture holds: its words, its curves, and whatever it would fetch."""

from __future__ import annotations

import re
from xml.etree import ElementTree

__all__ = ["curves", "fetched", "words"]

_SVG = "{http://www.w3.org/2000/svg}"
_POINTS_MIN = 10


def words(svg: str) -> list[str]:
    """All text, in the order of drawing."""
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{_SVG}text")]  # noqa: S314 - ours


def curves(svg: str) -> list[list[float]]:
    """The coordinates of each path of many points, in pixels of its panel."""
    paths = (node.get("d", "") for node in ElementTree.fromstring(svg).iter(f"{_SVG}path"))  # noqa: S314 - ours
    found = ([float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path)] for path in paths)
    return [numbers for numbers in found if len(numbers) >= 2 * _POINTS_MIN]


def fetched(svg: str) -> list[str]:
    """What a viewer would load or run: links, images, style sheets, scripts, addresses other than the name spaces'."""
    plain = re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg)
    return re.findall(r"<(?:script|image|style|link|use|foreignObject)\b|href=|url\(|@import|https?:", plain)
