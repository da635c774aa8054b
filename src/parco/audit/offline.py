"""Checks a ledger that `parco ledger export` wrote. One file, standard library only: read it, then run it.

`python offline.py LEDGER [FILE]...` says nothing and exits with 0 if all holds; else it says what fails first, and has
exit code 4. FILEs hold heads seen elsewhere, releases and proofs, as JSON; with - for LEDGER they are checked alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

LOAD = json.JSONDecoder().raw_decode  # of fields whose form was matched as a whole
ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode  # the one encoding


class CheckError(Exception):
    """The first thing that does not hold: the name of the check, the entry (0 for none), and what was found."""


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def salted(salt: str, text: str) -> str:  # the digest by which an entry names a text
    return sha256(b"parco/text/1\x00" + bytes.fromhex(salt) + text.encode()).hex()


def climb(size: int, index: int, path: Sequence[bytes], seed: bytes | None, *, leaf: bool) -> tuple[bytes, bytes]:
    """The roots over entries up to `index` and over all `size` that a path gives, or ValueError (RFC 6962, 2.1)."""
    if index == size - 1 and (size == 1 or not leaf):  # seed: the leaf of an inclusion, or the root of a whole subtree
        (same,) = path if seed is None else (seed, *path)
        return same, same
    half, (*rest, top) = 1 << ((size - 1).bit_length() - 1), path
    if index < half:
        before, after = climb(half, index, rest, seed, leaf=leaf)
        return before, sha256(b"\x01" + after + top)
    before, after = climb(size - half, index - half, rest, seed if leaf else None, leaf=leaf)
    return sha256(b"\x01" + top + before), sha256(b"\x01" + top + after)


def ed25519(public: str, signature: str, message: bytes) -> bool:
    """Whether a public key signed a message (RFC 8032, 5.1.7), in coordinates (x, y): slow, and plain to read."""
    p, order = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
    d = -121665 * pow(121666, -1, p) % p

    def point(data: bytes) -> tuple[int, int] | None:  # that 32 bytes encode (5.1.3), None if they encode none
        sign, y = divmod(int.from_bytes(data, "little"), 2**255)
        square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        x = pow(square, (p + 3) // 8, p)
        x = x if (x * x - square) % p == 0 else x * pow(2, (p - 1) // 4, p) % p
        return None if y >= p or (x * x - square) % p or (x == 0 and sign) else (x if x % 2 == sign else p - x, y)

    def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:  # -x^2 + y^2 = 1 + d x^2 y^2: never over 0
        (x, y), (u, v) = a, b
        t = d * x * y * u * v % p
        return (x * v + y * u) * pow(1 + t, -1, p) % p, (y * v + x * u) * pow(1 - t, -1, p) % p

    def times(scalar: int, a: tuple[int, int]) -> tuple[int, int]:  # a point added to itself
        return (0, 1) if scalar == 0 else add(times(scalar // 2, add(a, a)), a if scalar % 2 else (0, 1))

    key, first, second = bytes.fromhex(public), bytes.fromhex(signature)[:32], bytes.fromhex(signature)[32:]
    base, a, s = point((4 * pow(5, -1, p) % p).to_bytes(32, "little")), point(key), int.from_bytes(second, "little")
    if base is None or a is None or s >= order:
        return False
    k = int.from_bytes(hashlib.sha512(first + key + message).digest(), "little") % order
    x, y = add(times(s, base), times(k, (p - a[0], a[1])))
    return (y + 2**255 * (x % 2)).to_bytes(32, "little") == first


# ---- The form of a line: capitals are kinds of values, ? allows null, ... more of them; a name alone has a HASH ----
_N, _M, _HASH = "(?:0|[1-9][0-9]{0,18})", "[1-9][0-9]{0,18}", "[0-9a-f]{64}"
KINDS = {
    "HASH": _HASH, "SIG": "[0-9a-f]{128}", "SALT": "[0-9a-f]{32}", "NUM": _N, "INT": _M, "BIT": "[01]",
    "RATIO": r"\[[1-9][0-9]{0,307},[1-9][0-9]{0,307}\]", "MEASURE": "pure|zcdp|gdp|renyi", "QUESTION": f'"{_HASH}"',
    "TEXT": r'(?:[ !#-\[\]-~]++|\\["\\bfnrt]|\\u[0-9a-f]{4})*+', "NOISE": "gaussian|two-sided-geometric",
    "CHARGE": rf"\[{_M},{_N},{_N}\]", "BALANCE": rf"\[{_M}(?:,{_N}){{8}}\]", "CAPPED": rf"\[{_M},{_N}\]",
    "OPENED": rf'\[{_M},"{_HASH}",{_N},{_N}\]', "STRAY": rf'\[{_M},"{_HASH}"\]', "TOTAL": rf"\[{_M},{_M},{_N},{_N}\]",
    "ADDED": rf"\[{_M},(?:-{_M}|{_N}),(?:-{_M}|{_N})\]",
    "NAMED": f'"{_HASH}"', "FIELD": "actor|key|note|question|reason|title",
}  # fmt: skip
FACTS = ("kind", "scale", "lattice", "l1", "l2_squared")  # what a cost depends on
FIXED = ("cells", "charges", *FACTS)  # what a step of a schedule fixes
NOISE = '"mechanism":{"kind":"NOISE","lattice":RATIO,"scale":RATIO}'
NORMS = '"sensitivity":{"l1":RATIO,"l2_squared":RATIO}'
STEPS = f'{{"cells":INT,"charges":[CHARGE,...],{NOISE},"questions":[QUESTION,...],{NORMS}}}'
FORMS = (
    '{"accounts":[OPENED,...],"actor","contract","dataset","format":1,"measure":"MEASURE","name","order":RATIO?,'
    '"secret","seq":INT,"tag":"open","terms","time":NUM}',
    '{"accounts":[OPENED,...],"actor","contract","format":1,"reason","revised","seq":INT,"tag":"revise","terms","time":NUM}',
    '{"accounts":[CAPPED,...],"actor","format":1,"reason","seq":INT,"tag":"cap","time":NUM}',
    '{"accounts":[CAPPED,...],"actor","format":1,"members":[NAMED,...],"name","reason","seq":INT,"tag":"quota","time":NUM}',
    '{"actor","dataset","format":1,"parents":[NAMED,...],"reason","seq":INT,"tag":"derive","time":NUM}',
    *(f'{{"actor","cells":INT,"charges":[CHARGE,...],"contract","format":1,"fresh":BIT,"key",{NOISE},"private":BIT,"question",'
      f'{place}{NORMS},"seq":INT,{tag}","time":NUM}}'
      for place, tag in (("", '"tag":"reserve'), ('"schedule":INT,', '"step":INT,"tag":"draw'))),
    '{"actor","contract","format":1,"name","seq":INT,"steps":[STEPS,...],"tag":"schedule","time":NUM}',
    '{"actor","format":1,"reason","schedule":INT,"seq":INT,"tag":"leave","time":NUM}',
    *(f'{{"actor","format":1,"request":INT,"seq":INT,"tag":"{tag}"}}' for tag in ("start", "void", "forfeit")),
    '{"accounts":[BALANCE,...],"actor","answer","charges":[CHARGE,...],"format":1,"request":INT,"seq":INT,"tag":"settle"}',
    '{"actor","charges":[CHARGE,...],"format":1,"reason","seq":INT,"strays":[STRAY,...],"tag":"recover","time":NUM}',
    '{"actor","by_new":"SIG","by_old":"SIG","format":1,"new","old","reason","seq":INT,"tag":"rotate","time":NUM}',
    '{"actor","entry":INT,"field":"FIELD","format":1,"reason","seq":INT,"tag":"amend","text":"HASH"?,"time":NUM}',
    '{"actor","by":INT?,"format":1,"reason","request":INT,"seq":INT,"tag":"supersede","time":NUM}',
    '{"actor","added":[ADDED,...],"corrects":INT?,"factor":RATIO?,"format":1,"mechanism":"NOISE","reason","seq":INT,'
    '"tag":"recost","time":NUM,"totals":[TOTAL,...]}',
    '{"actor","entry":INT,"format":1,"reason","seq":INT,"tag":"flag","time":NUM}',
    '{"accounts","format":1,"key","previous":"HASH"?,"root","signature":"SIG","size":INT,"tag":"head"}',
    '{"answer":"TEXT","format":1,"request":INT,"salt":"SALT","tag":"answer"}',
)  # fmt: skip
REFINE = FORMS[3].replace('"fresh":BIT,', "").replace('"priv', '"parent":INT,"priv').replace("reserve", "refine")


def pattern(form: str) -> re.Pattern[str]:
    """What matches the lines of a form and no others, with a group for each field."""
    form = re.sub("[{}]", r"\\\g<0>", re.sub(r'(?<=[{,])"([a-z_]+)"(?=[,}])', r'\g<0>:"HASH"', form))
    form = re.sub(r'"(\w+)":\[([A-Z]+),\.\.\.\]', r'"\1":(?P<\1>\\[(?:\2(?:,\2)*)?\\])', form)
    form = re.sub(r'"tag":"(\w+)"', r'"tag":"(?P<tag>\1)"', form)
    value = r'"(\w+)":("?)([A-Z]+)\2(\??)'
    form = re.sub(value, lambda m: f'"{m[1]}":(?:{"null|" * bool(m[4])}{m[2]}(?P<{m[1]}>{m[3]}){m[2]})', form)
    return re.compile(re.sub(r"[A-Z]{3,}", lambda kind: f"(?:{KINDS[kind[0]]})", form))


STEP = pattern(STEPS)
KINDS["STEPS"] = re.sub(r"\?P<\w+>", "?:", STEP.pattern)
PATTERNS = {tag: pattern(form) for form in (*FORMS, REFINE) for tag in re.findall(r'"tag":"(\w+)"', form)}


def read(line: bytes, entry: int) -> re.Match[str]:  # the fields of a line, or CheckError
    text = line.decode("ascii", errors="replace")
    tag = text.partition('"tag":"')[2].partition('"')[0]
    if tag not in PATTERNS:
        raise CheckError("parseable", entry, "the line is not a record, or of a kind that is not known here")
    if (found := PATTERNS[tag].fullmatch(text)) is None:
        raise CheckError("canonical", entry, "the line is not in the one form of its kind")
    return found


@lru_cache(maxsize=256)  # a ledger has the same few noises again and again
def price(measure: str, order: str | None, kind: str, *ratios: str) -> int | None:
    """The cost of a `reserve` in 10^-15, rounded up (docs/mathematics.md, "Costs"); None where there is no rule."""
    (s, t), (g, h), (a, b), (c, d), (m, n) = map(json.loads, (*ratios, order or "[1,1]"))
    factor = {"gdp": (1, 1), "zcdp": (1, 2), "renyi": (m, 2 * n)}.get(measure)
    # Fractions have one form. Off the lattice two neighbours have different supports, and no epsilon holds.
    lowest = math.gcd(s, t) == math.gcd(g, h) == math.gcd(a, b) == math.gcd(c, d) == math.gcd(m, n) == 1
    if not lowest or (kind == "gaussian") != bool(factor) or not (factor or a * h % (b * g) == 0):
        return None
    top, bottom = (factor[0] * c * t * t, factor[1] * d * s * s) if factor else (a * t, b * s)
    return -(-(10**15) * int(top) // int(bottom))


ALIKE = ("question", "private", "cells", "kind", "l1", "l2_squared")  # what a refinement has of what it refines
LOST, UNPRICED = "the answer before is lost; its charge stands", "it is not charged what its noise and sensitivity cost"
CAP, SPENT, RESERVED, EXCESS = 1, 2, 3, 4  # places in an account as `settle` lists it; of its delta, four places on
# From which state a request comes to which, and how often its charges are then added to what is reserved and spent.
ENDS = {"start": ("reserved", "started", 0, 0), "void": ("reserved", "void", -1, 0),
        "settle": ("started", "settled", -1, 1), "forfeit": ("started", "forfeited", -1, 1)}  # fmt: skip


class Ledger:
    """What the lines fed so far add up to; it has to extend the heads `outside`, which were seen elsewhere."""

    verify = staticmethod(ed25519)

    def __init__(self, outside: Sequence[Mapping[str, Any]] = ()) -> None:
        self.outside, self.roots = outside, {head["size"]: "" for head in outside}
        self.size, self.head, self.nodes, self.made = 0, "", list[bytes](), list[bytes]()
        self.keys, self.strays = list[tuple[int, str]](), dict[str, int]()  # from which entry on which key signs
        self.accounts, self.caps = dict[int, list[int]](), dict[tuple[int, int], int]()
        self.terms = dict[int, list[str | None]]()  # of an account: data set, measure, order, secret, terms, label
        self.requests, self.refinements = dict[int, tuple[Any, ...]](), dict[int, int]()  # see _reserve and _refine
        # Of a request on an account: what a recost stated, cost, delta and its entry; what no charge or recost covers.
        self.totals, self.owed = dict[tuple[int, int], tuple[int, int, int]](), dict[tuple[int, int], Any]()
        self.contracts, self.seen = dict[str, list[int]](), set[str]()  # those in force; all, and all keys
        self.waiting, self.schedules = dict[int, str](), dict[int, Any]()  # answers to come; data set, name, ended by
        self.steps, self.drawn = dict[tuple[int, int], Any](), dict[int, tuple[int, int]]()  # facts, drawn by; draws
        self.newest, self.ancestors = (0, ""), dict[str, set[int]]()  # data set opened last; whom one descends from

    def need(self, holds: object, check: str, text: str, entry: int | None = None) -> None:  # or CheckError
        if not holds:
            raise CheckError(check, self.size + 1 if entry is None else entry, text)

    def feed(self, line: bytes) -> None:  # the next one, without its end
        found = read(line, self.size + 1)
        tag, size, nodes = found["tag"], self.size + 1, self.nodes
        self.need(tag == "answer" or not self.waiting, "answers", LOST)
        getattr(self, f"_{tag}", self._start)(found)
        if tag in ("head", "answer"):
            return
        self.need(int(found["seq"]) == size, "canonical", "it stands in another entry's place")
        made, count = [sha256(b"\x00" + line)], size - 1
        while count & 1:
            made.append(sha256(b"\x01" + nodes.pop() + made[-1]))
            count >>= 1
        nodes.append(made[-1])
        self.made, self.size = made, size
        if size in self.roots:
            self.roots[size] = self.root()

    def root(self) -> str:  # over all entries so far
        return reduce(lambda node, left: sha256(b"\x01" + left + node), self.nodes[-2::-1], self.nodes[-1]).hex()

    def signed(self, head: Mapping[str, Any]) -> bool:  # by its own key
        statement = {name: value for name, value in head.items() if name != "signature"}
        return self.verify(head["key"], head["signature"], b"parco/head/1\x00" + ENCODE(statement).encode())

    def rows(self, text: str, *, key: int = 1, least: int = 1) -> list[Any]:  # rising by their first columns
        rows: list[Any] = LOAD(text)[0]
        keys = [tuple(row[:key]) for row in rows] if len(rows) != 1 else []
        self.need(len(rows) >= least and keys == sorted(set(keys)), "canonical", "its rows are not in order")
        return rows

    def move(self, charges: Iterable[Sequence[int]], reserved: int, spent: int) -> None:  # adds each so many times
        for number, place, amount in ((row[0], 4 * delta, row[1 + delta]) for row in charges for delta in (0, 1)):
            self.accounts[number][RESERVED + place] += reserved * amount
            self.accounts[number][SPENT + place] += spent * amount

    def set_aside(
        self, contract: str, facts: re.Match[str], often: int, paid: Sequence[int] = ()
    ) -> tuple[list[list[Any]], list[int]]:
        """Reserves so often what the noise of `facts` costs beyond `paid`; the charges, and the whole costs."""
        charges, own = self.rows(facts["charges"]), self.contracts.get(contract, [])
        charged, due = {row[0] for row in charges}, self.ancestors.get(str(self.terms[own[0]][0]) if own else "", set())
        known = charged.intersection(own) and due <= charged <= self.accounts.keys()
        self.need(known, "lineage", "it charges no account of a contract in force, unknown ones, or not all ancestors")
        costs = [price(str(self.terms[row[0]][1]), self.terms[row[0]][2], *facts.group(*FACTS)) or 0 for row in charges]
        more = [new - old for new, old in zip(costs, paid or [0] * len(costs), strict=True)]
        for (number, cost, delta), exact in zip(charges, more, strict=True):
            self.need(exact > 0 and cost <= exact and delta == 0, "priced", UNPRICED)
            self.owed |= {(self.size + 1, number): exact} if cost != exact else {}  # until a recost makes up for it
            _, cap, spent, reserved, *_ = self.accounts[number]
            self.need(often * cost <= cap - spent - reserved, "capped", "an account has no room for its charge")
        self.move(charges, often, 0)
        return charges, costs

    def charge(self, rows: Iterable[Sequence[int]]) -> None:
        """Spends whether there is room or not: the excess covers it, and falls with what is taken back."""
        self.move(rows, 0, 1)
        for account, place, amount in ((self.accounts[n], 4 * i, row[i]) for n, *row in rows for i in (0, 1)):
            over = account[SPENT + place] + account[RESERVED + place] - account[CAP + place]
            account[EXCESS + place] = max(0 if amount < 0 else account[EXCESS + place], over)

    def sign(self, found: re.Match[str], numbers: list[int], rows: list[list[Any]]) -> None:
        """A contract is in force on these accounts, if it lists them as they stand."""
        listed = [[n, self.terms[n][-1], self.accounts[n][CAP], self.accounts[n][CAP + 4]] for n in numbers]
        same = rows == listed and all(self.terms[n][4] == found["terms"] for n in numbers)
        self.need(same and found["contract"] not in self.seen, "lineage", "it does not fit the contract or accounts")
        self.contracts[found["contract"]] = numbers
        self.seen.add(found["contract"])

    def _open(self, found: re.Match[str]) -> None:
        rows, terms = self.rows(found["accounts"]), list(found.group("dataset", "measure", "order", "secret", "terms"))
        numbers = [number for number, known in self.terms.items() if known[0] == terms[0]]
        if not numbers:
            numbers = [len(self.accounts) + place for place in range(1, len(rows) + 1)]
            self.newest = (self.size + 1, found["dataset"])
            self.terms |= {n: [*terms, row[1]] for n, row in zip(numbers, rows, strict=True)}
            self.accounts |= {n: [n, row[2], 0, 0, 0, row[3], 0, 0, 0] for n, row in zip(numbers, rows, strict=True)}
        same = all(self.terms[n][:-1] == terms for n in numbers) and len({row[1] for row in rows}) == len(rows)
        self.need(same and (terms[1] == "renyi") == (terms[2] is not None), "lineage", "its terms do not fit")
        self.sign(found, numbers, rows)

    def _revise(self, found: re.Match[str]) -> None:
        self.sign(found, self.contracts.pop(found["revised"], []), self.rows(found["accounts"]))

    def _derive(self, found: re.Match[str]) -> None:
        parents, known = self.rows(found["parents"], key=64, least=0), {terms[0] for terms in self.terms.values()}
        fits = self.newest == (self.size, found["dataset"]) and known - {found["dataset"]} >= set(parents)
        self.need(fits, "lineage", "the entry before did not open its data set, or a parent was never signed")
        own = {number for number, terms in self.terms.items() if terms[0] in parents}
        self.ancestors[found["dataset"]] = own.union(*(self.ancestors.get(parent, ()) for parent in parents))

    def _quota(self, found: re.Match[str]) -> None:  # a fair share of what accounts hold: not a part of any guarantee
        rows, _ = self.rows(found["accounts"], least=0), self.rows(found["members"], key=64)
        self.need(all(row[0] in self.accounts for row in rows), "lineage", "it limits an unknown account")

    def _cap(self, found: re.Match[str]) -> None:
        rows = self.rows(found["accounts"])
        self.need(all(row[0] in self.accounts for row in rows), "lineage", "it moves the cap of an unknown account")
        for number, cap in rows:
            _, old, spent, reserved, *_ = self.accounts[number]
            self.need(cap >= old or spent + reserved <= cap, "capped", "a cap falls below what is spent and reserved")
            self.accounts[number][CAP] = self.caps[self.size + 1, number] = cap

    def _reserve(self, found: re.Match[str], paid: Sequence[int] = ()) -> None:
        self.need(found["key"] not in self.seen, "keyed once", "its key belongs to an earlier request")
        self.seen.add(found["key"])
        charges, costs = self.set_aside(found["contract"], found, found["tag"] != "draw", paid)  # a draw's is set aside
        facts = (found["actor"], tuple(map(tuple, charges)), *found.group("private", "lattice", "charges"), costs)
        self.requests[self.size + 1] = ("reserved", None, *facts, *found.group("scale", *ALIKE))

    def _refine(self, found: re.Match[str]) -> None:
        parent, lost = int(found["parent"]), max(self.strays.values(), default=0)
        state, _, _, rows, _, lattice, _, costs, scale, *alike = self.requests.get(parent, ("", *"       ", "[1,1]"))
        free = self.requests.get(self.refinements.get(parent, 0), ("void",))[0] in ("void", "forfeited")
        old, new = (Fraction(*json.loads(ratio)) for ratio in (scale, found["scale"]))
        same = alike == list(found.group(*ALIKE)) and (found["kind"] == "gaussian" or found["lattice"] == lattice)
        paying = state == "settled" and [row[0] for row in rows] == [row[0] for row in json.loads(found["charges"])]
        once = free and parent > lost and same and paying and new < old
        self.need(once, "refined once", "it refines what it may not")
        self._reserve(found, costs)
        self.refinements[parent] = self.size + 1

    def _schedule(self, found: re.Match[str]) -> None:
        self.need(found["name"] not in self.seen, "scheduled", "its name belongs to an earlier schedule")
        self.seen.add(found["name"])
        kinds = [(steps, json.loads(steps["questions"])) for steps in STEP.finditer(found["steps"])]
        for steps, questions in kinds:
            self.set_aside(found["contract"], steps, len(questions))
        asked = [(question, *steps.group(*FIXED)) for steps, questions in kinds for question in questions]
        self.steps |= {(self.size + 1, number): (facts, None) for number, facts in enumerate(asked, start=1)}
        self.schedules[self.size + 1] = (self.terms[self.contracts[found["contract"]][0]][0], found["name"], None)

    def _draw(self, found: re.Match[str]) -> None:
        place, facts = (int(found["schedule"]), int(found["step"])), found.group("question", *FIXED)
        holds = self.steps.get(place) == (facts, None) and self.schedules[place[0]][2] is None
        self.need(holds, "scheduled", "it is no open step of a schedule in force, as it was signed")
        self._reserve(found)
        self.steps[place], self.drawn[self.size + 1] = (facts, self.size + 1), place

    def _leave(self, found: re.Match[str]) -> None:
        *known, ended = self.schedules.get(number := int(found["schedule"]), (0,))
        self.need(ended is None, "scheduled", "there is no such schedule in force")
        for (schedule, _), ((_, _, charges, *_), drawn) in self.steps.items():
            self.move(json.loads(charges), -(schedule == number and drawn is None), 0)
        self.schedules[number] = (*known, self.size + 1)

    def _start(self, found: re.Match[str]) -> None:
        number, (before, after, reserved, spent) = int(found["request"]), ENDS[found["tag"]]
        state, _, *facts = self.requests.get(number, ("", None, "", ()))
        holds = (state, facts[0]) == (before, found["actor"])
        self.need(holds, "resolved once", "another actor's, or not to be resolved so")
        if after == "void" and (place := self.drawn.get(number)):  # the step's schedule, if in force, holds its charge
            self.steps[place], reserved = (self.steps[place][0], None), -bool(self.schedules[place[0]][2])
        self.requests[number] = (after, self.size + 1 if after == "settled" else None, *facts)
        self.move(facts[1], reserved, spent)

    def _settle(self, found: re.Match[str]) -> None:
        self._start(found)
        _, _, _, rows, _, _, paid, *_ = self.requests[int(found["request"])]
        self.need(paid == found["charges"], "priced", UNPRICED)
        shown = ENCODE([self.accounts[row[0]] for row in rows])
        self.need(found["accounts"] == shown, "balanced", "its accounts are not what the entries add up to")
        self.waiting[int(found["request"])] = found["answer"]

    def _recover(self, found: re.Match[str]) -> None:
        roots, charges = [root for _, root in self.rows(found["strays"], key=2)], self.rows(found["charges"], least=0)
        fresh = not self.strays.keys() & set(roots) and all(row[0] in self.accounts for row in charges)
        self.need(fresh, "amendments", "it answers for a head that was answered for, or charges an unknown account")
        self.strays |= dict.fromkeys(roots, self.size + 1)
        self.charge(charges)

    def _rotate(self, found: re.Match[str]) -> None:
        fields, self.keys = json.loads(found.string), self.keys or [(1, found["old"])]
        fresh = found["old"] == self.keys[-1][1] and found["new"] not in [key for _, key in self.keys]
        signatures = [(found[name], fields.pop(f"by_{name}")) for name in ("old", "new")]
        both = all(self.verify(key, one, b"parco/rotate/1\x00" + ENCODE(fields).encode()) for key, one in signatures)
        self.need(both and fresh, "amendments", "it is not signed by a new key and the one before")
        self.keys.append((self.size + 1, found["new"]))

    def _amend(self, found: re.Match[str]) -> None:
        self.need(int(found["entry"]) <= self.size, "amendments", "it is about an entry that is yet to come")

    _flag = _amend

    def _supersede(self, found: re.Match[str]) -> None:
        numbers = (int(found["request"]), int(found["by"] or found["request"]))
        answered = all(self.requests.get(number, ("",))[0] == "settled" for number in numbers)
        self.need(answered, "amendments", "it puts an answer in the place of another, and one of them is none")

    def _recost(self, found: re.Match[str]) -> None:
        added, (p, q) = dict[int, list[int]](), json.loads(found["factor"] or "[0,1]")
        since = int(found["corrects"] or self.size) > max(self.strays.values(), default=0)
        for number, account, *total in self.rows(found["totals"], key=2):
            state, _, _, rows, *_, kind, _, _ = self.requests.get(number, ("", None, "", (), "", "", ""))
            own = rows if kind == found["mechanism"] and state in ("started", "settled", "forfeited") else ()
            first = {row[0]: row[1:] for row in own}.get(account, (total[0] + 1, 0))  # what was not charged fails
            *before, stated = self.totals.get((number, account), (*first, 0))
            low, falls = (any(map(int.__lt__, total, one)) for one in (first, before))
            exact = math.gcd(p, q) == 1 and (not p or total[0] == -(-p * first[0] // q)) and total != before
            corrects = not falls or (since and str(stated) == found["corrects"])
            self.need(exact and corrects and not low, "priced", "a total is not its factor's, or below another")
            self.totals[number, account] = (*total, self.size + 1)
            added[account] = [a + b - c for a, b, c in zip(added.get(account, (0, 0)), total, before, strict=True)]
            if total[0] >= self.owed.get((number, account), 0):
                self.owed.pop((number, account), None)
        rows = [[number, *added[number]] for number in sorted(added)]
        self.need(found["added"] == ENCODE(rows), "priced", "what it adds is not the difference of its totals")
        self.charge(rows)

    def _head(self, found: re.Match[str]) -> None:
        previous, self.keys = sha256(self.head.encode()).hex() if self.head else None, self.keys or [(1, found["key"])]
        same, self.head = 0 < self.size == int(found["size"]) and self.root() == found["root"], found.string
        self.need(same, "rooted", "an entry since the last head is not as it was signed")
        holds = previous == found["previous"] and self.keys[-1][1] == found["key"]
        self.need(holds, "signed", "an earlier head was changed or left out, or another key signs")

    def _answer(self, found: re.Match[str]) -> None:
        digest = salted(found["salt"], json.loads(f'"{found["answer"]}"'))
        self.need(self.waiting.pop(int(found["request"]), "") == digest, "answers", "its answer is not the one settled")

    def end(self) -> None:
        """Checks the last head, which answers for those before it, and what can only be said of the whole."""
        head = json.loads(self.head or '{"size":-1}')
        accounts = sha256(ENCODE(list(self.accounts.values())).encode()).hex()
        signed = head["size"] == self.size and self.signed(head)
        self.need(signed, "signed", "it has no head, or one with a false signature", self.size)
        same = head["accounts"] == accounts
        self.need(same, "balanced", "the accounts are not those that its head signed", self.size)
        self.need(not self.waiting, "answers", LOST)
        self.need(not self.owed, "priced", UNPRICED, min(self.owed, default=(0, 0))[0])
        for head in (head for head in self.outside if head["root"] not in self.strays):
            key = max(one for one in self.keys if one[0] <= head["size"])[1]
            same = self.roots[head["size"]] == head["root"] and head["key"] == key and self.signed(head)
            self.need(same, "witnessed", "the head seen outside is not extended, or another's", head["size"])

    def check_proof(self, proof: Any) -> re.Match[str] | None:  # noqa: ANN401 - whatever a file holds
        """The entry that an inclusion proof shows; CheckError if that or a consistency proof does not hold."""
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            path = [base64.b64decode(step, validate=True) for step in proof["path"]]
            head, old, leaf = proof["head"], proof.get("old"), sha256(b"\x00" + proof.get("entry", "").encode())
            size, root, was = head["size"], bytes.fromhex(head["root"]), bytes.fromhex((old or head)["root"])
            if old:
                shown = self.signed(old) and climb(size, old["size"] - 1, path, was, leaf=False) == (was, root)
            else:
                shown = climb(size, proof["position"] - 1, path, leaf, leaf=True)[1] == root
            if shown and self.signed(head):
                return None if old else read(proof["entry"].encode(), proof["position"])
        raise CheckError("proven", 0, "a proof does not show what it says")

    def check_release(self, release: Mapping[str, Any]) -> None:
        """Checks that the rows of a release are the answer that its signed entry names."""
        receipt, evidence = release["receipt"], release["receipt"]["evidence"]
        found, request = self.check_proof(evidence["proof"]), self.requests.get(receipt["release"])
        lattice = Fraction(*json.loads(request[5])) if request else Fraction(receipt["lattice"])
        rows = [Fraction(row["value"]) / lattice for row in release["rows"]] == json.loads(evidence["answer"])["cells"]
        same = rows and found and found["answer"] == salted(evidence["salt"], evidence["answer"])
        self.need(same, "released", "its rows are not the answer that was settled", receipt["position"])

    def check_report(self, report: Mapping[str, Any]) -> None:
        """Feeds the lines that a frozen report holds, and checks its head, texts, accounts and signature."""
        for line in report["lines"]:
            self.feed(line.encode())
        self.end()
        unsigned = {name: value for name, value in report.items() if name != "signature"}
        message, lines = b"parco/report/1\x00" + ENCODE(unsigned).encode(), "".join(report["lines"])
        kept = all(salted(one["salt"], one["text"]) == name and name in lines for name, one in report["texts"].items())
        self.need(kept, "kept", "a text is not the one that its entries name")
        accounts = [account for one in report["data"] for account in one["accounts"]]
        same = sorted(accounts) == list(self.accounts.values()) and ENCODE(report["head"]) == self.head
        self.need(same, "balanced", "its accounts or its head are not those of the ledger in it")
        self.need(self.verify(self.keys[-1][1], report["signature"], message), "signed", "its signature is false")


def walk(tree: object) -> Iterator[dict[str, Any]]:  # every record in a tree of JSON
    yield from [tree] if isinstance(tree, dict) else []
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from walk(part)


def main() -> None:
    name, *others = sys.argv[1:] or sys.exit(__doc__)
    trees = [json.loads(b"[" + Path(other).read_bytes().strip().replace(b"}\n{", b"},{") + b"]") for other in others]
    ledger = Ledger([record for record in walk(trees) if record.get("tag") == "head"])
    try:
        for line in Path(name).read_bytes().removesuffix(b"\n").split(b"\n") if name != "-" else ():
            ledger.feed(line)
        if name != "-" or not any("path" in record or "lines" in record for record in walk(trees)):
            ledger.end()
        for record in walk(trees):
            if record.get("tag") == "report":
                Ledger().check_report(record)
            if "path" in record:
                ledger.check_proof(record)
            if "evidence" in record.get("receipt", {}):
                ledger.check_release(record)
    except CheckError as error:
        sys.stderr.write("{}: entry {}: {}\n".format(*error.args))
        sys.exit(4)


if __name__ == "__main__":
    main()
