"""Checks a ledger with all that can happen around a release. Needs the standard library, and two files beside this one:
`offline.py`, and `offline_prices.py` for what choices and streams of checks cost.

`python offline_life.py LEDGER [FILE]...` means what `python offline.py LEDGER [FILE]...` does, for any ledger: also for
one with refinements, ladders, schedules, corrections, derived data, quotas, releases that choose among candidates, and
streams of checks. FILEs may also hold frozen reports (`parco report --freeze`); docs/ledger-format.md describes all.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from parco.audit import offline, offline_prices
else:  # run alone: the other files are in the same folder
    sys.path.append(str(Path(__file__).parent))
    import offline
    import offline_prices

# ---- The forms of lines (see offline.py) ----
_N, _M, _HASH = offline.KINDS["NUM"], offline.KINDS["INT"], offline.KINDS["HASH"]
KINDS = offline.KINDS | {
    "NOISE": "gaussian|two-sided-geometric|exponential|sparse-vector", "NAMED": f'"{_HASH}"',
    "TOTAL": rf"\[{_M},{_M},{_N},{_N}\]",
    "ADDED": rf"\[{_M},(?:-{_M}|{_N}),(?:-{_M}|{_N})\]", "FIELD": "actor|key|note|question|reason|title",
}  # fmt: skip
FACTS, NOISE, NORMS = offline.FACTS, offline.NOISE, offline.NORMS
FIXED = ("cells", "charges", *FACTS)  # what a step of a schedule fixes
REQUEST = '{"actor","cells":INT,"charges":[CHARGE,...],"contract","format":1,'
STEP = offline.pattern(f'{{"cells":INT,"charges":[CHARGE,...],{NOISE},"questions":[NAMED,...],{NORMS}}}', KINDS)
KINDS["STEPS"] = re.sub(r"\?P<\w+>", "?:", STEP.pattern)
FORMS = (
    *offline.FORMS,
    f'{REQUEST}"fresh":BIT,"key",{NOISE},"private":BIT,"question","schedule":INT,{NORMS},"seq":INT,"step":INT,"tag":"draw",'
    '"time":NUM}',
    f'{REQUEST}"key",{NOISE},"parent":INT,"private":BIT,"question",{NORMS},"seq":INT,"tag":"refine","time":NUM}}',
    f'{{"accounts":[BALANCE,...],"actor","answer","charges":[CHARGE,...],"format":1,{NOISE},"request":INT,'
    f'"scales":[RATIO,...],{NORMS},"seq":INT,"tag":"stop"}}',
    '{"actor","contract","format":1,"name","seq":INT,"steps":[STEPS,...],"tag":"schedule","time":NUM}',
    '{"actor","format":1,"reason","schedule":INT,"seq":INT,"tag":"leave","time":NUM}',
    '{"accounts":[CAPPED,...],"actor","format":1,"members":[NAMED,...],"name","reason","seq":INT,"tag":"quota","time":NUM}',
    '{"actor","dataset","format":1,"parents":[NAMED,...],"reason","seq":INT,"tag":"derive","time":NUM}',
    '{"actor","entry":INT,"field":"FIELD","format":1,"reason","seq":INT,"tag":"amend","text":"HASH"?,"time":NUM}',
    '{"actor","by":INT?,"format":1,"reason","request":INT,"seq":INT,"tag":"supersede","time":NUM}',
    '{"actor","added":[ADDED,...],"corrects":INT?,"factor":RATIO?,"format":1,"mechanism":"NOISE","reason","seq":INT,'
    '"tag":"recost","time":NUM,"totals":[TOTAL,...]}',
    '{"actor","entry":INT,"format":1,"reason","seq":INT,"tag":"flag","time":NUM}',
)  # fmt: skip
PATTERNS = {tag: offline.pattern(form, KINDS) for form in FORMS for tag in re.findall(r'"tag":"(\w+)"', form)}


def read(line: bytes, entry: int) -> re.Match[str]:
    """The fields of a line, or CheckError."""
    return offline.read(line, entry, PATTERNS)


# ---- What a ladder costs that stopped apart ----
def apart(measure: str, order: str | None, kind: str, *ratios: str, scales: Sequence[Sequence[int]]) -> int | None:
    """The cost of cells with these scales in 10^-15, rounded up; without scales, of all with one; None without a rule.

    A unit moves K = L1^2/L2^2 of them by B = L2^2/L1 each: that of the K sharpest (docs/mathematics.md, "Vectors of
    different precisions").
    """
    alike = offline.price(measure, order, kind, *ratios)
    if alike is None or not scales:
        return alike
    _, _, l1, l2_squared = (Fraction(*json.loads(ratio)) for ratio in ratios)
    cells, each, alpha = l1**2 / l2_squared, l2_squared / l1, Fraction(*json.loads(order or "[1,1]"))
    if cells.denominator != 1:
        return None
    factor = {"gdp": Fraction(1), "zcdp": Fraction(1, 2), "renyi": alpha / 2}.get(measure)
    costs = [each / Fraction(*one) if factor is None else factor * (each / Fraction(*one)) ** 2 for one in scales]
    return math.ceil(10**15 * sum(sorted(costs, reverse=True)[: int(cells)]))


GRADED = ("gaussian", "two-sided-geometric")  # what can be made sharper, or left coarser than was planned
ALIKE = ("question", "private", "cells", "kind", "l1", "l2_squared")  # what a refinement has of what it refines


class Ledger(offline.Ledger):
    """What the lines fed so far add up to, with all that can happen around a release."""

    patterns = PATTERNS

    def __init__(self, outside: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(outside)
        self.newest, self.ancestors = (0, ""), dict[str, set[int]]()  # data set opened last; whom one descends from
        self.laws, self.refinements = dict[int, tuple[str, ...]](), dict[int, int]()  # see _reserve and _refine
        self.ladders, self.stopped = set[int](), set[int]()  # requests that may stop early, and that did
        # Of a request on an account: what a recost stated, cost, delta and its entry; what it costs, where that was not
        # charged; and the same of those that no recost covers.
        self.totals, self.due = dict[tuple[int, int], tuple[int, int, int]](), dict[tuple[int, int], int]()
        self.owed = dict[tuple[int, int], int]()
        self.schedules = dict[int, tuple[str, str, int | None]]()  # data set, name, ended by
        self.steps = dict[tuple[int, int], tuple[tuple[str, ...], int | None]]()  # what is fixed, drawn by
        self.drawn = dict[int, tuple[int, int]]()  # the step that a request drew
        self.streams = dict[int, int]()  # of an account, the last request that has it to itself while it is open

    def _open(self, found: re.Match[str]) -> None:
        before = len(self.accounts)
        super()._open(found)
        self.newest = (self.size + 1, found["dataset"]) if len(self.accounts) > before else self.newest

    def _derive(self, found: re.Match[str]) -> None:
        parents, known = self.rows(found["parents"], key=64, least=0), {terms[0] for terms in self.terms.values()}
        fits = self.newest == (self.size, found["dataset"]) and known - {found["dataset"]} >= set(parents)
        self.need(fits, "lineage", "the entry before did not open its data set, or a parent was never signed")
        own = {number for number, terms in self.terms.items() if terms[0] in parents}
        self.ancestors[found["dataset"]] = own.union(*(self.ancestors.get(parent, ()) for parent in parents))

    def _quota(self, found: re.Match[str]) -> None:
        """A fair share of what accounts hold, and no part of any guarantee: who is over it is not asked here."""
        rows, _ = self.rows(found["accounts"], least=0), self.rows(found["members"], key=64)
        self.need(all(row[0] in self.accounts for row in rows), "lineage", "it limits an unknown account")

    def set_aside(self, contract: str, facts: re.Match[str], often: int = 1) -> list[list[int]]:
        """The same; data that descend from others charge those, too, and what is drawn was set aside before."""
        charges = super().set_aside(contract, facts, 0 if facts.re is PATTERNS["draw"] else often)
        due = self.ancestors.get(str(self.terms[self.contracts[contract][0]][0]), set())
        told = "an account that its data set descends from is not charged"
        self.need(due <= {row[0] for row in charges}, "lineage", told)
        plain = facts.re is PATTERNS["reserve"] or not any(row[2] for row in charges)
        self.need(plain, "priced", "a delta is charged where no keys are selected")
        return charges

    def check_stop(self, request: int, number: int, cost: int, facts: re.Match[str]) -> None:
        """Whether a ladder was charged what the law costs that it reached, where cells stopped apart that of each."""
        terms = (str(self.terms[number][1]), self.terms[number][2])
        due = apart(*terms, *facts.group(*FACTS), scales=json.loads(facts["scales"]))
        self.need(due is not None and cost <= due, "priced", offline.UNPRICED)
        if due is not None and cost < due:
            self.owed[request, number] = self.due[request, number] = due

    def check_cost(self, number: int, cost: int, facts: re.Match[str]) -> None:
        """Whether an account was charged what these facts cost there, beyond what was paid for what they refine.

        That of choices and streams is rounded up, by at most one part in 2^40 and a unit. What a request was charged
        too little is owed until a recost makes up for it; a step of a schedule costs nothing before it is drawn.
        """
        terms = (str(self.terms[number][1]), self.terms[number][2])
        choice = facts["kind"] in ("exponential", "sparse-vector")
        due = (offline_prices.least if choice else offline.price)(*terms, *facts.group(*FACTS))
        if due is not None and "parent" in facts.re.groupindex:
            due -= offline.price(*terms, facts["kind"], *self.laws[int(facts["parent"])][:4]) or 0
        holds = due is not None and cost <= due + ((due >> 40) + 1 if choice else 0)
        self.need(holds, "priced", offline.UNPRICED)
        if due is not None and cost < due and facts.re is not STEP:
            self.owed[self.size + 1, number] = self.due[self.size + 1, number] = due

    def _reserve(self, found: re.Match[str]) -> None:
        super()._reserve(found)
        self.laws[self.size + 1] = found.group(*FACTS[1:], *ALIKE)
        own, stream = {row[0] for row in self.requests[self.size + 1][3]}, found["kind"] == "sparse-vector"
        near = {self.streams[number] for number in own & self.streams.keys()}
        if stream:
            near = {number for number, one in self.requests.items() if own & {row[0] for row in one[3]}}
            self.streams |= dict.fromkeys(own, self.size + 1)
        others = [number for number in near - {self.size + 1} if self.requests[number][0] in ("reserved", "started")]
        self.need(not others, "alone", "a stream has its accounts to itself while it is open, and here it has not")
        if found.re is PATTERNS["reserve"]:
            self.ladders.add(self.size + 1)

    def _stop(self, found: re.Match[str]) -> None:
        """A ladder that was reserved whole ended early: it is charged what the law costs that it reached.

        As a request that had reserved that alone, so that what it gives back is free again.
        """
        number, paid = int(found["request"]), self.rows(found["charges"])
        state, _, actor, held, private, lattice, _ = self.requests.get(number, ("", None, "", (), "", "", ""))
        self.need(number in self.ladders and state == "started", "resolved once", "its request is no ladder that runs")
        scale, *law, kind = (self.laws[number][place] for place in (0, 1, 2, 3, 7))
        top, finest = (Fraction(*json.loads(one)) for one in (found["scale"], scale))
        cells = json.loads(found["scales"])
        each = [Fraction(*one) for one in cells] or [top]
        told = not cells or (len(each) == int(self.laws[number][6]) and min(each) < max(each) == top)
        coarser = told and min(each) >= finest and all(math.gcd(*one) == 1 for one in cells)
        same = found.group("lattice", "l1", "l2_squared", "kind") == (*law, kind) and kind in GRADED
        own = [row[0] for row in paid] == [row[0] for row in held] and not any(row[2] for row in (*held, *paid))
        more = own and any(row[1] > before[1] for row, before in zip(paid, held, strict=True))
        self.need(coarser and same and own and not more, "priced", "it stops where its ladder does not lie")
        recosted = any((number, row[0]) in self.totals for row in held)
        self.need(not recosted, "priced", "it was recosted while it ran, and is charged whole")
        self.move(held, -1, 0)
        self.move(paid, 1, 0)
        self.requests[number] = (state, None, actor, tuple(map(tuple, paid)), private, lattice, found["charges"])
        for account, cost, _ in paid:
            for known in (self.due, self.owed):
                known.pop((number, account), None)
            self.check_stop(number, account, cost, found)
        self._settle(found)
        self.stopped.add(number)

    def _refine(self, found: re.Match[str]) -> None:
        """An answer is refined once, by less noise of its own kind, and no older one than the last lost past."""
        parent, lost = int(found["parent"]), max(self.strays.values(), default=0)
        state, _, _, rows, *_ = self.requests.get(parent, ("", None, "", ()))
        free = self.requests.get(self.refinements.get(parent, 0), ("void",))[0] in ("void", "forfeited")
        whole = state == "settled" and parent not in self.stopped
        self.need(whole and free and parent > lost, "refined once", "it refines what it may not")
        scale, lattice, _, _, *alike = self.laws[parent]
        sharper = Fraction(*json.loads(found["scale"])) < Fraction(*json.loads(scale))
        law = found["kind"] == "gaussian" or (found["kind"] in GRADED and found["lattice"] == lattice)
        paying = [row[0] for row in rows] == [row[0] for row in json.loads(found["charges"])]
        same = alike == list(found.group(*ALIKE)) and law and paying and sharper
        self.need(same, "refined once", "it refines what it may not")
        self._reserve(found)
        self.refinements[parent] = self.size + 1

    def _schedule(self, found: re.Match[str]) -> None:
        self.need(found["name"] not in self.seen, "scheduled", "its name belongs to an earlier schedule")
        self.seen.add(found["name"])
        kinds = [(steps, json.loads(steps["questions"])) for steps in STEP.finditer(found["steps"])]
        for steps, questions in kinds:
            self.set_aside(found["contract"], steps, len(questions))
        asked = [(question, *steps.group(*FIXED)) for steps, questions in kinds for question in questions]
        self.steps |= {(self.size + 1, number): (facts, None) for number, facts in enumerate(asked, start=1)}
        dataset = str(self.terms[self.contracts[found["contract"]][0]][0])
        self.schedules[self.size + 1] = (dataset, found["name"], None)

    def _draw(self, found: re.Match[str]) -> None:
        place, facts = (int(found["schedule"]), int(found["step"])), found.group("question", *FIXED)
        holds = self.steps.get(place) == (facts, None) and self.schedules[place[0]][2] is None
        self.need(holds, "scheduled", "it is no open step of a schedule in force, as it was signed")
        self._reserve(found)
        self.steps[place], self.drawn[self.size + 1] = (facts, self.size + 1), place

    def _leave(self, found: re.Match[str]) -> None:
        number = int(found["schedule"])
        dataset, name, ended = self.schedules.get(number, ("", "", 0))
        self.need(ended is None, "scheduled", "there is no such schedule in force")
        for (schedule, _), ((_, _, charges, *_), drawn) in self.steps.items():
            self.move(json.loads(charges), -(schedule == number and drawn is None), 0)
        self.schedules[number] = (dataset, name, self.size + 1)

    def _void(self, found: re.Match[str]) -> None:
        """The step that was drawn is open again, and its schedule, if that is in force, holds the charge as before."""
        self._start(found)
        number = int(found["request"])
        if place := self.drawn.get(number):
            self.steps[place] = (self.steps[place][0], None)
            self.move(self.requests[number][3], self.schedules[place[0]][2] is None, 0)

    def _amend(self, found: re.Match[str]) -> None:
        self.need(int(found["entry"]) <= self.size, "amendments", "it is about an entry that is yet to come")

    _flag = _amend

    def _supersede(self, found: re.Match[str]) -> None:
        numbers = (int(found["request"]), int(found["by"] or found["request"]))
        answered = all(self.requests.get(number, ("",))[0] == "settled" for number in numbers)
        self.need(answered, "amendments", "it puts an answer in the place of another, and one of them is none")

    def _recost(self, found: re.Match[str]) -> None:
        """Each total against what was charged and stated before, their differences against what is added."""
        added, (p, q) = dict[int, list[int]](), json.loads(found["factor"] or "[0,1]")
        since = int(found["corrects"] or self.size) > max(self.strays.values(), default=0)
        for number, account, *total in self.rows(found["totals"], key=2):
            state, _, _, rows, *_ = self.requests.get(number, ("", None, "", ()))
            same = state in ("started", "settled", "forfeited") and self.laws[number][7] == found["mechanism"]
            # What was not charged there is below what was.
            first = {row[0]: row[1:] for row in rows if same}.get(account, (total[0] + 1, 0))
            *before, stated = self.totals.get((number, account), (*first, 0))
            low, falls = (any(map(int.__lt__, total, one)) for one in (first, before))
            exact = math.gcd(p, q) == 1 and (not p or total[0] == -(-p * first[0] // q)) and total != before
            corrects = not falls or (since and str(stated) == found["corrects"])
            self.need(exact and corrects and not low, "priced", "a total is not its factor's, or below another")
            self.totals[number, account] = (*total, self.size + 1)
            added[account] = [a + b - c for a, b, c in zip(added.get(account, (0, 0)), total, before, strict=True)]
            due = self.due.get((number, account), 0)
            if total[0] < due:  # also where a correction took back too much
                self.owed[number, account] = due
            else:
                self.owed.pop((number, account), None)
        rows = [[number, *added[number]] for number in sorted(added)]
        told = "what it adds is not the difference of its totals"
        self.need(found["added"] == offline.ENCODE(rows), "priced", told)
        self.charge(rows)

    def charge(self, rows: Iterable[Sequence[int]]) -> None:
        """Spends whether there is room or not: the excess covers it, and falls with what is taken back."""
        self.move(rows, 0, 1)
        for account, place, amount in ((self.accounts[n], 4 * i, row[i]) for n, *row in rows for i in (0, 1)):
            over = account[offline.SPENT + place] + account[offline.RESERVED + place] - account[offline.CAP + place]
            account[offline.EXCESS + place] = max(0 if amount < 0 else account[offline.EXCESS + place], over)

    def end(self) -> None:
        super().end()
        self.need(not self.owed, "priced", offline.UNPRICED, min(self.owed, default=(0, 0))[0])

    def check_record(self, record: Mapping[str, Any]) -> None:
        if record.get("tag") == "report":
            type(self)().check_report(record)
        else:
            super().check_record(record)

    def check_report(self, report: Mapping[str, Any]) -> None:
        """Feeds the lines that a frozen report holds, and checks its head, texts, accounts and signature."""
        for line in report["lines"]:
            self.feed(line.encode())
        self.end()
        encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
        unsigned = {name: value for name, value in report.items() if name != "signature"}
        message, lines = b"parco/report/1\x00" + encode(unsigned).encode(), "".join(report["lines"])
        texts = report["texts"].items()
        kept = all(offline.salted(one["salt"], one["text"]) == name and name in lines for name, one in texts)
        self.need(kept, "kept", "a text is not the one that its entries name")
        accounts = [account for one in report["data"] for account in one["accounts"]]
        same = sorted(accounts) == list(self.accounts.values()) and encode(report["head"]) == self.head
        self.need(same, "balanced", "its accounts or its head are not those of the ledger in it")
        self.need(self.verify(self.keys[-1][1], report["signature"], message), "signed", "its signature is false")


if __name__ == "__main__":
    offline.main(Ledger, __doc__)
