"""C08: an accountant's state could not be written, or came back different, and a resumed run started from zero."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from parco.errors import RequestError
from parco.privacy.composition import compose
from parco.privacy.schedule import Schedule, ScheduledRelease
from tests.cases.schedules import encloses, epsilon, sampled

_CHILD = """
import sys
from pathlib import Path
from parco.privacy.composition import compose
from parco.privacy.schedule import Schedule
found = compose(Schedule.parse(Path(sys.argv[1]).read_text())).epsilon("1e-5")
print(found.lower, found.upper)
"""


def steps(times: int) -> dict[str, object]:
    return sampled("1/60", "1.3", times)


def test_a_schedule_goes_on_in_another_process_with_the_same_digits(tmp_path: Path) -> None:
    saved = tmp_path / "steps.json"
    saved.write_text(Schedule.of([steps(600)]).text(), encoding="utf-8")
    longer = Schedule.parse(saved.read_text(encoding="utf-8")).plus(ScheduledRelease.read(steps(300)))
    saved.write_text(longer.text(), encoding="utf-8")
    child = [sys.executable, "-c", _CHILD, str(saved)]
    printed = subprocess.run(child, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    at_once = compose(Schedule.of([steps(900)])).epsilon("1e-5")
    assert [Fraction(text) for text in printed] == [at_once.lower, at_once.upper]
    assert encloses(at_once, "1.891518511666562")


def test_parts_do_not_add_up_to_the_whole_at_the_same_delta() -> None:
    first, rest = epsilon(steps(600), delta="1e-5"), epsilon(steps(300), delta="1e-5")
    assert encloses(first, "1.535558031403656")
    assert encloses(rest, "1.088123289126730")
    assert first.lower + rest.lower > epsilon(steps(900), delta="1e-5").upper


@pytest.mark.parametrize("fault", ["unknown", "truncated", "nan", "twice"])
def test_a_damaged_file_is_refused_and_not_repaired(fault: str) -> None:
    text = Schedule.of([steps(600)]).text()
    damaged = {
        "unknown": json.dumps([steps(600) | {"clip": "1"}]),
        "truncated": text[:-20],
        "nan": text.replace('"1.3"', "NaN"),
        "twice": text.replace('"times": 600', '"times": 600, "times": 1'),
    }[fault]
    assert damaged != text
    with pytest.raises(RequestError):
        Schedule.parse(damaged)
