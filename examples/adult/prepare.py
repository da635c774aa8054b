"""Makes adult.csv out of UCI's file adult.data: a header, a person's number, gaps left empty.

    python examples/adult/prepare.py adult.data adult.csv

The file (CC BY 4.0, Becker & Kohavi 1996) is at the UCI Machine Learning Repository. It has no header and separates
with a comma and a space; a question mark is a gap. Each row is a person, who needs a number to be the protected unit.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

NAMES = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip


def prepare(source: Path, target: Path) -> None:
    """One line in, one line out; empty lines are left out."""
    with source.open(encoding="ascii") as lines, target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("person", *NAMES))
        for person, line in enumerate(filter(str.strip, lines), start=1):
            fields = [field.strip() for field in line.split(",")]
            writer.writerow((person, *("" if field == "?" else field for field in fields)))


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), Path(sys.argv[2]))
