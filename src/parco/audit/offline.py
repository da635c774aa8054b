"""Checks a ledger that `parco ledger export` wrote. One file, standard library only: read it, then run it.

`python offline.py LEDGER [FILE]...` says nothing and exits with 0 if all holds; else it says what fails first, and has
exit code 4, or 2 for a FILE that is none. FILEs hold JSON: heads, `parco release --json`, `parco ledger prove`; with -
for LEDGER they are checked alone. Here is Gaussian and geometric noise; all else is in `offline_life.py`, beside this.
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

ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # the one encoding of ASCII text and integers
LOAD = json.JSONDecoder().raw_decode  # of fields whose form was matched as a whole


class CheckError(Exception):
    """The first thing that does not hold: the name of the check, the entry (0 for none), and what was found."""


def sha256(data: bytes) -> bytes:
    """SHA-256, as 32 bytes."""
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


# ---- Ed25519 (RFC 8032, section 5.1), in coordinates (x, y): slow, and plain to read ----
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def point(data: bytes) -> tuple[int, int] | None:
    """The point that 32 bytes encode (5.1.3), None if they encode none."""
    sign, y = divmod(int.from_bytes(data, "little"), 2**255)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
    none = y >= P or (x * x - square) % P or (x == 0 and sign)
    return None if none else (x if x % 2 == sign else P - x, y)


def add(p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
    """The sum of two points of -x^2 + y^2 = 1 + D x^2 y^2; the denominators are never 0."""
    (x, y), (u, v) = p, q
    t = D * x * y * u * v % P
    return (x * v + y * u) * pow(1 + t, -1, P) % P, (y * v + x * u) * pow(1 - t, -1, P) % P


def times(scalar: int, p: tuple[int, int]) -> tuple[int, int]:  # the point added to itself so often
    return (0, 1) if scalar == 0 else add(times(scalar // 2, add(p, p)), p if scalar % 2 else (0, 1))


def ed25519(public: str, signature: str, message: bytes) -> bool:
    """Whether a signature over a message is that of a public key (5.1.7); both are hexadecimal."""
    key, first, second = bytes.fromhex(public), bytes.fromhex(signature)[:32], bytes.fromhex(signature)[32:]
    base, a, s = point((4 * pow(5, -1, P) % P).to_bytes(32, "little")), point(key), int.from_bytes(second, "little")
    if base is None or a is None or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(first + key + message).digest(), "little") % ORDER
    x, y = add(times(s, base), times(k, (P - a[0], a[1])))
    return (y + 2**255 * (x % 2)).to_bytes(32, "little") == first


# ---- The form of a line: capitals are kinds of values, ? allows null, ... more of them; a name alone has a HASH ----
_N, _M, _HASH = "(?:0|[1-9][0-9]{0,18})", "[1-9][0-9]{0,18}", "[0-9a-f]{64}"
KINDS = {
    "HASH": _HASH, "SIG": "[0-9a-f]{128}", "SALT": "[0-9a-f]{32}", "NUM": _N, "INT": _M, "BIT": "[01]",
    "RATIO": r"\[[1-9][0-9]{0,307},[1-9][0-9]{0,307}\]", "MEASURE": "pure|zcdp|gdp|renyi",
    "NOISE": "gaussian|two-sided-geometric", "TEXT": r'(?:[ !#-\[\]-~]++|\\["\\bfnrt]|\\u[0-9a-f]{4})*+',
    "CHARGE": rf"\[{_M},{_N},{_N}\]", "BALANCE": rf"\[{_M}(?:,{_N}){{8}}\]", "CAPPED": rf"\[{_M},{_N}\]",
    "OPENED": rf'\[{_M},"{_HASH}",{_N},{_N}\]', "STRAY": rf'\[{_M},"{_HASH}"\]',
}  # fmt: skip
NOISE = '"mechanism":{"kind":"NOISE","lattice":RATIO,"scale":RATIO}'
NORMS = '"sensitivity":{"l1":RATIO,"l2_squared":RATIO}'
FACTS = ("kind", "scale", "lattice", "l1", "l2_squared")  # what a cost depends on
FORMS = (
    '{"accounts":[OPENED,...],"actor","contract","dataset","format":1,"measure":"MEASURE","name","order":RATIO?,'
    '"secret","seq":INT,"tag":"open","terms","time":NUM}',
    '{"accounts":[OPENED,...],"actor","contract","format":1,"reason","revised","seq":INT,"tag":"revise","terms","time":NUM}',
    '{"accounts":[CAPPED,...],"actor","format":1,"reason","seq":INT,"tag":"cap","time":NUM}',
    f'{{"actor","cells":INT,"charges":[CHARGE,...],"contract","format":1,"fresh":BIT,"key",{NOISE},"private":BIT,"question",'
    f'{NORMS},"seq":INT,"tag":"reserve","time":NUM}}',
    *(f'{{"actor","format":1,"request":INT,"seq":INT,"tag":"{tag}"}}' for tag in ("start", "void", "forfeit")),
    '{"accounts":[BALANCE,...],"actor","answer","charges":[CHARGE,...],"format":1,"request":INT,"seq":INT,"tag":"settle"}',
    '{"actor","charges":[CHARGE,...],"format":1,"reason","seq":INT,"strays":[STRAY,...],"tag":"recover","time":NUM}',
    '{"actor","by_new":"SIG","by_old":"SIG","format":1,"new","old","reason","seq":INT,"tag":"rotate","time":NUM}',
    '{"accounts","format":1,"key","previous":"HASH"?,"root","signature":"SIG","size":INT,"tag":"head"}',
    '{"answer":"TEXT","format":1,"request":INT,"salt":"SALT","tag":"answer"}',
)  # fmt: skip


def pattern(form: str, kinds: Mapping[str, str] = KINDS) -> re.Pattern[str]:
    """What matches the lines of a form and no others, with a group for each field."""
    form = re.sub("[{}]", r"\\\g<0>", re.sub(r'(?<=[{,])"([a-z_]+)"(?=[,}])', r'\g<0>:"HASH"', form))
    form = re.sub(r'"(\w+)":\[([A-Z]+),\.\.\.\]', r'"\1":(?P<\1>\\[(?:\2(?:,\2)*)?\\])', form)
    form = re.sub(r'"tag":"(\w+)"', r'"tag":"(?P<tag>\1)"', form)
    value = r'"(\w+)":("?)([A-Z]+)\2(\??)'
    form = re.sub(value, lambda m: f'"{m[1]}":(?:{"null|" * bool(m[4])}{m[2]}(?P<{m[1]}>{m[3]}){m[2]})', form)
    return re.compile(re.sub(r"[A-Z]{3,}", lambda kind: f"(?:{kinds[kind[0]]})", form))


TAG = re.compile('"tag":"([a-z]+)"')
PATTERNS = {tag: pattern(form) for form in FORMS for tag in re.findall(r'"tag":"(\w+)"', form)}
LATER = re.compile('"kind":"[es]|"tag":"(amend|derive|draw|flag|leave|quota|recost|refine|schedule|stop|supersede)"')
BESIDE = "this is of a kind that offline_life.py checks, the file beside this one: run that instead"


def read(line: bytes, entry: int, patterns: Mapping[str, re.Pattern[str]] = PATTERNS) -> re.Match[str]:
    """The fields of a line, or CheckError."""
    text = line.decode("ascii", errors="replace")
    tag = TAG.search(text)
    form = patterns.get(tag[1]) if tag else None
    if form is not None and (found := form.fullmatch(text)):
        return found
    later = patterns is PATTERNS and LATER.search(text)
    if later or form is None:
        raise CheckError("parseable", entry, BESIDE if later else "the line is no record, or of a kind not known here")
    raise CheckError("canonical", entry, "the line is not in the one form of its kind")


@lru_cache(maxsize=256)  # a ledger has the same few noises again and again
def price(measure: str, order: str | None, kind: str, *ratios: str) -> int | None:
    """The cost of noise in 10^-15, rounded up (docs/mathematics.md, "Costs"); None where there is no rule."""
    (s, t), (g, h), (a, b), (c, d), (m, n) = map(json.loads, (*ratios, order or "[1,1]"))
    factor = {"gdp": (1, 1), "zcdp": (1, 2), "renyi": (m, 2 * n)}.get(measure)
    # Fractions have one form. Off the lattice two neighbours have different supports, and no epsilon holds.
    lowest = math.gcd(s, t) == math.gcd(g, h) == math.gcd(a, b) == math.gcd(c, d) == math.gcd(m, n) == 1
    if not lowest or (kind == "gaussian") != bool(factor) or not (factor or a * h % (b * g) == 0):
        return None
    top, bottom = (factor[0] * c * t * t, factor[1] * d * s * s) if factor else (a * t, b * s)
    return -(-(10**15) * int(top) // int(bottom))


LOST, UNPRICED = "the answer before is lost; its charge stands", "it is not charged what its noise and sensitivity cost"
CAP, SPENT, RESERVED, EXCESS = 1, 2, 3, 4  # places in an account as `settle` lists it; of its delta, four places on
# From which state a request comes to which, and how often its charges are then added to what is reserved and spent.
STEPS = {"start": ("reserved", "started", 0, 0), "void": ("reserved", "void", -1, 0),
         "settle": ("started", "settled", -1, 1), "forfeit": ("started", "forfeited", -1, 1),
         "stop": ("started", "settled", -1, 1)}  # fmt: skip


class Ledger:
    """What the lines fed so far add up to; it has to extend the heads `outside`, which were seen elsewhere."""

    verify = staticmethod(ed25519)
    patterns: Mapping[str, re.Pattern[str]] = PATTERNS

    def __init__(self, outside: Sequence[Mapping[str, Any]] = ()) -> None:
        self.outside, self.roots = outside, {head["size"]: "" for head in outside}
        self.size, self.head, self.nodes, self.made = 0, "", list[bytes](), list[bytes]()
        self.keys, self.strays = list[tuple[int, str]](), dict[str, int]()  # from which entry on which key signs
        self.accounts, self.caps = dict[int, list[int]](), dict[tuple[int, int], int]()
        self.terms = dict[int, list[str | None]]()  # of an account: data set, measure, order, secret, terms, label
        self.requests = dict[int, tuple[Any, ...]]()  # state, settled by, actor, rows, private, lattice, charges
        # Contracts in force; all contracts, and all keys; digests of answers to come.
        self.contracts, self.seen, self.waiting = dict[str, list[int]](), set[str](), dict[int, str]()

    def need(self, holds: object, check: str, text: str, entry: int | None = None) -> None:
        """Raises CheckError, naming the entry (by default the one that is being read), unless it holds."""
        if not holds:
            raise CheckError(check, self.size + 1 if entry is None else entry, text)

    def feed(self, line: bytes) -> None:
        """Takes the next line, without its end."""
        found = read(line, self.size + 1, self.patterns)
        self.need(not self.waiting or found["tag"] == "answer", "answers", LOST)
        getattr(self, f"_{found['tag']}")(found)
        if found["tag"] in ("head", "answer"):
            return
        self.need(int(found["seq"]) == self.size + 1, "canonical", "it stands in another entry's place")
        self.made, count = [sha256(b"\x00" + line)], self.size
        while count & 1:
            self.made.append(sha256(b"\x01" + self.nodes.pop() + self.made[-1]))
            count >>= 1
        self.nodes.append(self.made[-1])
        self.size += 1
        if self.size in self.roots:
            self.roots[self.size] = self.root()

    def root(self) -> str:
        """The root over all entries so far."""
        return reduce(lambda node, left: sha256(b"\x01" + left + node), self.nodes[-2::-1], self.nodes[-1]).hex()

    def signed(self, head: Mapping[str, Any]) -> bool:
        """Whether the key of a head signed it."""
        statement = {name: value for name, value in head.items() if name != "signature"}
        return self.verify(head["key"], head["signature"], b"parco/head/1\x00" + ENCODE(statement).encode())

    def rows(self, text: str, *, key: int = 1, least: int = 1) -> list[Any]:
        """The rows of a field, strictly rising by their first columns."""
        rows: list[Any] = LOAD(text)[0]
        keys = [tuple(row[:key]) for row in rows] if len(rows) != 1 else []
        self.need(len(rows) >= least and keys == sorted(set(keys)), "canonical", "its rows are not in order")
        return rows

    def move(self, charges: Iterable[Sequence[int]], reserved: int, spent: int) -> None:
        """Adds so many times each charge to what is reserved and spent."""
        for number, *amounts in charges:
            for place, amount in zip((0, 4), amounts, strict=True):
                self.accounts[number][RESERVED + place] += reserved * amount
                self.accounts[number][SPENT + place] += spent * amount

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
            self.terms |= {n: [*terms, row[1]] for n, row in zip(numbers, rows, strict=True)}
            self.accounts |= {n: [n, row[2], 0, 0, 0, row[3], 0, 0, 0] for n, row in zip(numbers, rows, strict=True)}
        same = all(self.terms[n][:-1] == terms for n in numbers) and len({row[1] for row in rows}) == len(rows)
        self.need(same and (terms[1] == "renyi") == (terms[2] is not None), "lineage", "its terms do not fit")
        self.sign(found, numbers, rows)

    def _revise(self, found: re.Match[str]) -> None:
        self.sign(found, self.contracts.pop(found["revised"], []), self.rows(found["accounts"]))

    def _cap(self, found: re.Match[str]) -> None:
        rows = self.rows(found["accounts"])
        self.need(all(row[0] in self.accounts for row in rows), "lineage", "it moves the cap of an unknown account")
        for number, cap in rows:
            _, old, spent, reserved, *_ = self.accounts[number]
            self.need(cap >= old or spent + reserved <= cap, "capped", "a cap falls below what is spent and reserved")
            self.accounts[number][CAP] = self.caps[self.size + 1, number] = cap

    def _reserve(self, found: re.Match[str]) -> None:
        self.need(found["key"] not in self.seen, "keyed once", "its key belongs to an earlier request")
        self.seen.add(found["key"])
        charges = self.set_aside(found["contract"], found)
        facts = (found["actor"], tuple(map(tuple, charges)), *found.group("private", "lattice", "charges"))
        self.requests[self.size + 1] = ("reserved", None, *facts)

    def set_aside(self, contract: str, facts: re.Match[str], often: int = 1) -> list[list[int]]:
        """Reserves so often what a request with these facts is charged; a delta is what keys were selected at."""
        charges, own = self.rows(facts["charges"]), self.contracts.get(contract, [])
        known = any(row[0] in own for row in charges) and all(row[0] in self.accounts for row in charges)
        self.need(known, "lineage", "it charges no account of a contract in force, or one that was never opened")
        for number, cost, delta in charges:
            self.check_cost(number, cost, facts)
            _, cap, spent, reserved, _, delta_cap, delta_spent, delta_reserved, _ = self.accounts[number]
            room = often * cost <= cap - spent - reserved and often * delta <= delta_cap - delta_spent - delta_reserved
            self.need(room, "capped", "an account has no room for its charge")
        self.move(charges, often, 0)
        return charges

    def check_cost(self, number: int, cost: int, facts: re.Match[str]) -> None:
        """Whether an account was charged what noise with these facts costs in its measure."""
        terms = (str(self.terms[number][1]), self.terms[number][2])
        self.need(cost == price(*terms, *facts.group(*FACTS)), "priced", UNPRICED)

    def _start(self, found: re.Match[str]) -> None:
        number, (before, after, reserved, spent) = int(found["request"]), STEPS[found["tag"]]
        state, _, *facts = self.requests.get(number, ("", None, "", ()))
        self.need((state, facts[0]) == (before, found["actor"]), "resolved once", "another's, or not to be resolved so")
        self.requests[number] = (after, self.size + 1 if after == "settled" else None, *facts)
        self.move(facts[1], reserved, spent)

    _void = _forfeit = _start

    def _settle(self, found: re.Match[str]) -> None:
        self._start(found)
        *_, rows, _, _, paid = self.requests[int(found["request"])]
        self.need(paid == found["charges"], "priced", UNPRICED)
        shown = ENCODE([self.accounts[row[0]] for row in rows])
        self.need(found["accounts"] == shown, "balanced", "its accounts are not what the entries add up to")
        self.waiting[int(found["request"])] = found["answer"]

    def _recover(self, found: re.Match[str]) -> None:
        roots, charges = [root for _, root in self.rows(found["strays"], key=2)], self.rows(found["charges"], least=0)
        fresh = not self.strays.keys() & set(roots) and all(row[0] in self.accounts for row in charges)
        self.need(fresh, "amendments", "it answers for a head that was answered for, or charges an unknown account")
        self.strays |= dict.fromkeys(roots, self.size + 1)
        self.move(charges, 0, 1)
        for account, delta in ((self.accounts[row[0]], delta) for row in charges for delta in (0, 4)):
            over = account[SPENT + delta] + account[RESERVED + delta] - account[CAP + delta]
            account[EXCESS + delta] = max(account[EXCESS + delta], over)

    def _rotate(self, found: re.Match[str]) -> None:
        fields, self.keys = json.loads(found.string), self.keys or [(1, found["old"])]
        fresh = found["old"] == self.keys[-1][1] and found["new"] not in [key for _, key in self.keys]
        signatures = [(found[name], fields.pop(f"by_{name}")) for name in ("old", "new")]
        both = all(self.verify(key, one, b"parco/rotate/1\x00" + ENCODE(fields).encode()) for key, one in signatures)
        self.need(both and fresh, "amendments", "it is not signed by a new key and the one before")
        self.keys.append((self.size + 1, found["new"]))

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
        size, signed = self.size, head["size"] == self.size and self.signed(head)
        self.need(signed, "signed", "it has no head, or one with a false signature", size)
        self.need(head["accounts"] == accounts, "balanced", "the accounts are not those that its head signed", size)
        self.need(not self.waiting, "answers", LOST)
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
                return None if old else read(proof["entry"].encode(), proof["position"], self.patterns)
        raise CheckError("proven", 0, "a proof does not show what it says")

    def check_release(self, release: Mapping[str, Any]) -> None:
        """Checks that the rows of a release are the answer that its signed entry names."""
        receipt, evidence = release["receipt"], release["receipt"]["evidence"]
        found, request = self.check_proof(evidence["proof"]), self.requests.get(receipt["release"])
        lattice = Fraction(*json.loads(request[5])) if request else Fraction(receipt["lattice"])
        rows = [Fraction(row["value"]) / lattice for row in release["rows"]] == json.loads(evidence["answer"])["cells"]
        same = rows and found and found["answer"] == salted(evidence["salt"], evidence["answer"])
        self.need(same, "released", "its rows are not the answer that was settled", receipt["position"])

    def check_record(self, record: Mapping[str, Any]) -> None:
        """Checks a record of a FILE, if it is a proof or a release."""
        if "path" in record:
            self.check_proof(record)
        if "evidence" in record.get("receipt", {}):
            self.check_release(record)
        self.need(record.get("tag") != "report", "parseable", BESIDE, 0)


def walk(tree: object) -> Iterator[dict[str, Any]]:
    """Every record in a tree of JSON."""
    yield from [tree] if isinstance(tree, dict) else []
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from walk(part)


def main(kind: type[Ledger] = Ledger, usage: str | None = __doc__) -> None:
    name, *others = sys.argv[1:] or sys.exit(usage)
    try:
        trees = [json.loads(b"[%s]" % Path(one).read_bytes().strip().replace(b"}\n{", b"},{")) for one in others]
        ledger = kind([record for record in walk(trees) if record.get("tag") == "head"])
        for line in Path(name).read_bytes().removesuffix(b"\n").split(b"\n") if name != "-" else ():
            ledger.feed(line)
        if name != "-" or not any("path" in record or "lines" in record for record in walk(trees)):
            ledger.end()
        for record in walk(trees):
            ledger.check_record(record)
    except (CheckError, OSError, ValueError) as error:
        is_check = isinstance(error, CheckError)
        sys.stderr.write("{}: entry {}: {}\n".format(*error.args) if is_check else f"{error}\n")
        sys.exit(4 if is_check else 2)


if __name__ == "__main__":
    main()
