"""Makes a year of a library's members: one file a week, each with all who had joined by then.

    python examples/weekly/prepare.py weeks 52

The members are made up, so there is nobody to protect; the file of a week is the data set's version of that week, as a
nightly export would leave it. Each week's file begins as the one before ended: the data grow.
"""

from __future__ import annotations

import csv
import random
import sys
from datetime import date, timedelta
from pathlib import Path

BRANCHES = ("harbour", "hill", "station")
JOIN_A_WEEK = 40


def prepare(folder: Path, weeks: int) -> None:
    """Files 2025-W01.csv, 2025-W02.csv, …"""
    folder.mkdir(parents=True, exist_ok=True)
    chance, members = random.Random(2025), list[tuple[str, str, str]]()  # noqa: S311 - nobody's data
    for week in range(1, weeks + 1):
        monday = date.fromisocalendar(2025, week, 1)
        for _ in range(JOIN_A_WEEK + chance.randrange(JOIN_A_WEEK)):
            day = monday + timedelta(days=chance.randrange(7))
            members.append((f"m{len(members) + 1}", day.isoformat(), chance.choice(BRANCHES)))
        with (folder / f"2025-W{week:02d}.csv").open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(("member", "joined", "branch"))
            writer.writerows(members)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), int(sys.argv[2]))
