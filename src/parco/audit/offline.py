"""Checks a ledger that `parco ledger export` wrote. One file, standard library only: read it, then run it.

`python offline.py LEDGER [FILE]...` says nothing and exits with 0 if all holds; else it says what fails first, and has
exit code 4. FILEs hold JSON: heads seen elsewhere, releases (`parco release --json`), proofs (`parco ledger prove`);
with - for LEDGER they are checked alone. docs/ledger-format.md describes the lines and the checks.
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
from pathlib import Path
from typing import Any

ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # the one encoding of ASCII text and integers


class CheckError(Exception):
    """The first thing that does not hold: the name of the check, the entry (0 for none), and what was found."""


def sha256(data: bytes) -> bytes:
    """SHA-256, as 32 bytes."""
    return hashlib.sha256(data).digest()


def salted(salt: str, text: str) -> str:
    """The digest by which an entry names a text."""
    return sha256(b"parco/text/1\x00" + bytes.fromhex(salt) + text.encode()).hex()


def climb(size: int, index: int, leaf: bytes, path: Sequence[bytes]) -> bytes:
    """The root that an inclusion path gives to leaf `index` of `size` (RFC 6962, 2.1.1); ValueError for a false one."""
    if size == 1:
        (last,) = (leaf, *path) if index == 0 else ()
        return last
    half, (*rest, top) = 1 << ((size - 1).bit_length() - 1), path
    if index < half:
        return sha256(b"\x01" + climb(half, index, leaf, rest) + top)
    return sha256(b"\x01" + top + climb(size - half, index - half, leaf, rest))


def grow(size: int, old: int, path: Sequence[bytes], whole: bytes | None) -> tuple[bytes, bytes]:
    """The old and the new root that a consistency path gives (RFC 6962, 2.1.2); `whole`: the old one, if undivided."""
    if old == size:
        (same,) = path if whole is None else (whole, *path)
        return same, same
    half, (*rest, top) = 1 << ((size - 1).bit_length() - 1), path
    if old <= half:
        before, after = grow(half, old, rest, whole)
        return before, sha256(b"\x01" + after + top)
    before, after = grow(size - half, old - half, rest, None)
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
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    return x if x % 2 == sign else P - x, y


def add(p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
    """The sum of two points of -x^2 + y^2 = 1 + D x^2 y^2; the denominators are never 0."""
    (x, y), (u, v) = p, q
    t = D * x * y * u * v % P
    return (x * v + y * u) * pow(1 + t, -1, P) % P, (y * v + x * u) * pow(1 - t, -1, P) % P


def times(scalar: int, p: tuple[int, int]) -> tuple[int, int]:
    """The point added to itself so many times."""
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
FORMS = (
    '{"accounts":[OPENED,...],"actor","contract","dataset","format":1,"measure":"MEASURE","name","order":RATIO?,'
    '"secret","seq":INT,"tag":"open","terms","time":NUM}',
    '{"accounts":[OPENED,...],"actor","contract","format":1,"reason","revised","seq":INT,"tag":"revise","terms","time":NUM}',
    '{"accounts":[CAPPED,...],"actor","format":1,"reason","seq":INT,"tag":"cap","time":NUM}',
    '{"actor","cells":INT,"charges":[CHARGE,...],"contract","format":1,"fresh":BIT,"key","mechanism":{"kind":"NOISE",'
    '"lattice":RATIO,"scale":RATIO},"private":BIT,"question","sensitivity":{"l1":RATIO,"l2_squared":RATIO},"seq":INT,'
    '"tag":"reserve","time":NUM}',
    *(f'{{"actor","format":1,"request":INT,"seq":INT,"tag":"{tag}"}}' for tag in ("start", "void", "forfeit")),
    '{"accounts":[BALANCE,...],"actor","answer","charges":[CHARGE,...],"format":1,"request":INT,"seq":INT,"tag":"settle"}',
    '{"accounts":[BALANCE,...],"actor","answer","charges":[CHARGE,...],"format":1,"mechanism":{"kind":"NOISE",'
    '"lattice":RATIO,"scale":RATIO},"request":INT,"sensitivity":{"l1":RATIO,"l2_squared":RATIO},"seq":INT,"tag":"stop"}',
    '{"actor","charges":[CHARGE,...],"format":1,"reason","seq":INT,"strays":[STRAY,...],"tag":"recover","time":NUM}',
    '{"actor","by_new":"SIG","by_old":"SIG","format":1,"new","old","reason","seq":INT,"tag":"rotate","time":NUM}',
    '{"accounts","format":1,"key","previous":"HASH"?,"root","signature":"SIG","size":INT,"tag":"head"}',
    '{"answer":"TEXT","format":1,"request":INT,"salt":"SALT","tag":"answer"}',
)


def pattern(form: str) -> re.Pattern[str]:
    """What matches the lines of a form and no others, with a group for each field."""
    form = re.sub("[{}]", r"\\\g<0>", re.sub(r'(?<=[{,])"([a-z_]+)"(?=[,}])', r'\g<0>:"HASH"', form))
    form = re.sub(r'"(\w+)":\[([A-Z]+),\.\.\.\]', r'"\1":(?P<\1>\\[(?:\2(?:,\2)*)?\\])', form)
    form = re.sub(r'"tag":"(\w+)"', r'"tag":"(?P<tag>\1)"', form)
    value = r'"(\w+)":("?)([A-Z]+)\2(\??)'
    form = re.sub(value, lambda m: f'"{m[1]}":(?:{"null|" * bool(m[4])}{m[2]}(?P<{m[1]}>{m[3]}){m[2]})', form)
    return re.compile(re.sub(r"[A-Z]{3,}", lambda kind: f"(?:{KINDS[kind[0]]})", form))


TAG = re.compile('"tag":"([a-z]+)"')
PATTERNS = {tag: pattern(form) for form in FORMS for tag in re.findall(r'"tag":"(\w+)"', form)}


def read(line: bytes, entry: int) -> re.Match[str]:
    """The fields of a line, or CheckError."""
    text = line.decode("ascii", errors="replace")
    tag = TAG.search(text)
    if tag is None or tag[1] not in PATTERNS:
        raise CheckError("parseable", entry, "the line is not a record, or of a kind that is not known here")
    if (found := PATTERNS[tag[1]].fullmatch(text)) is None:
        raise CheckError("canonical", entry, "the line is not in the one form of its kind")
    return found


def price(measure: str, order: str | None, facts: re.Match[str]) -> int | None:
    """The cost of a `reserve` in 10^-15, rounded up (docs/mathematics.md, "Costs"); None where there is no rule."""
    texts = ",".join((*facts.group("scale", "lattice", "l1", "l2_squared"), order or "[1,1]"))
    (s, t), (g, h), (a, b), (c, d), (m, n) = json.loads(f"[{texts}]")
    factor = {"gdp": (1, 1), "zcdp": (1, 2), "renyi": (m, 2 * n)}.get(measure)
    # Fractions have one form. Off the lattice two neighbours have different supports, and no epsilon holds.
    lowest = math.gcd(s, t) == math.gcd(g, h) == math.gcd(a, b) == math.gcd(c, d) == math.gcd(m, n) == 1
    if not lowest or (facts["kind"] == "gaussian") != bool(factor) or not (factor or a * h % (b * g) == 0):
        return None
    top, bottom = (factor[0] * c * t * t, factor[1] * d * s * s) if factor else (a * t, b * s)
    return -(-(10**15) * int(top) // int(bottom))


CAP, SPENT, RESERVED, EXCESS = 1, 2, 3, 4  # places in an account as `settle` lists it; of its delta, four places on
# From which state a request comes to which, and how often its charges are then added to what is reserved and spent.
STEPS = {"start": ("reserved", "started", 0, 0), "void": ("reserved", "void", -1, 0),
         "settle": ("started", "settled", -1, 1), "forfeit": ("started", "forfeited", -1, 1),
         "stop": ("started", "settled", -1, 0)}  # fmt: skip


class Ledger:
    """What the lines fed so far add up to; it has to extend the heads `outside`, which were seen elsewhere."""

    verify = staticmethod(ed25519)

    def __init__(self, outside: Sequence[Mapping[str, Any]] = ()) -> None:
        self.outside, self.roots = outside, {head["size"]: "" for head in outside}
        self.size, self.head, self.nodes, self.made = 0, "", list[bytes](), list[bytes]()
        self.keys, self.strays = list[tuple[int, str]](), dict[str, int]()  # from which entry on which key signs
        self.accounts, self.caps = dict[int, list[int]](), dict[tuple[int, int], int]()
        self.terms = dict[int, list[str | None]]()  # of an account: data set, measure, order, secret, terms, label
        self.requests = dict[int, tuple[Any, ...]]()  # state, settled by, actor, rows, and facts as `_reserve` has them
        self.contracts, self.seen = dict[str, list[int]](), set[str]()  # those in force; all, and all keys
        self.waiting = dict[int, str]()  # digests of answers to come

    def need(self, holds: object, check: str, text: str) -> None:
        """Raises CheckError, naming the entry that is being read, unless it holds."""
        if not holds:
            raise CheckError(check, self.size + 1, text)

    def feed(self, line: bytes) -> None:
        """Takes the next line, without its end."""
        found = read(line, self.size + 1)
        tag = found["tag"]
        self.need(tag == "answer" or not self.waiting, "answers", "the answer before is lost; its charge stands")
        getattr(self, f"_{tag}", self._start)(found)
        if tag in ("head", "answer"):
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
        node = self.nodes[-1]
        for left in self.nodes[-2::-1]:
            node = hashlib.sha256(b"\x01" + left + node).digest()
        return node.hex()

    def signed(self, head: Mapping[str, Any]) -> bool:
        """Whether the key of a head signed it."""
        statement = {name: value for name, value in head.items() if name != "signature"}
        return self.verify(head["key"], head["signature"], b"parco/head/1\x00" + ENCODE(statement).encode())

    def rows(self, text: str, *, key: int = 1, least: int = 1) -> list[list[Any]]:
        """The rows of a field, strictly rising by their first columns."""
        rows: list[list[Any]] = json.loads(text)
        keys = [tuple(row[:key]) for row in rows] if len(rows) != 1 else []
        self.need(len(rows) >= least and keys == sorted(set(keys)), "canonical", "its rows are not in order")
        return rows

    def move(self, charges: Iterable[Sequence[int]], reserved: int, spent: int) -> None:
        """Adds so many times each charge to what is reserved and spent."""
        for number, cost, delta in charges:
            for place, amount in ((0, cost), (4, delta)):
                self.accounts[number][RESERVED + place] += reserved * amount
                self.accounts[number][SPENT + place] += spent * amount

    def sign(self, found: re.Match[str], numbers: list[int], rows: list[list[Any]]) -> None:
        """A contract is in force on these accounts, if it lists them as they stand."""
        listed = [[n, self.terms[n][-1], self.accounts[n][CAP], self.accounts[n][CAP + 4]] for n in numbers]
        same = rows == listed and all(self.terms[n][4] == found["terms"] for n in numbers)
        new = found["contract"] not in self.seen
        self.need(same and new, "lineage", "it does not fit the contract or accounts that stand")
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
        charges, own = self.rows(found["charges"]), self.contracts.get(found["contract"], [])
        known = any(row[0] in own for row in charges) and all(row[0] in self.accounts for row in charges)
        self.need(known, "lineage", "it charges no account of a contract in force, or one that was never opened")
        for number, cost, delta in charges:
            exact = price(str(self.terms[number][1]), self.terms[number][2], found)
            self.need((cost, delta) == (exact, 0), "priced", "it is not charged what its noise and sensitivity cost")
            _, cap, spent, reserved, *_ = self.accounts[number]
            self.need(cost <= cap - spent - reserved, "capped", "an account has no room for its charge")
        self.move(charges, 1, 0)
        facts = found.group("private", "lattice", "charges", "kind", "l1", "l2_squared")
        self.requests[self.size + 1] = ("reserved", None, found["actor"], tuple(map(tuple, charges)), *facts)

    def _start(self, found: re.Match[str]) -> None:
        number, (before, after, reserved, spent) = int(found["request"]), STEPS[found["tag"]]
        state, _, *facts = self.requests.get(number, ("", None, "", ()))
        self.need((state, facts[0]) == (before, found["actor"]), "resolved once", "another's, or not to be resolved so")
        self.requests[number] = (after, self.size + 1 if after == "settled" else None, *facts)
        self.move(facts[1], reserved, spent)

    def _settle(self, found: re.Match[str]) -> None:
        self._start(found)
        _, _, _, rows, _, lattice, paid, *_, kind, l1, l2 = self.requests[int(found["request"])]
        if found["tag"] == "stop":  # a ladder of refinements: what the law costs that it reached, and no more than held
            costs = [(n, price(str(self.terms[n][1]), self.terms[n][2], found) or 1 << 63, 0) for n, *_ in rows]
            same = found.group("lattice", "kind", "l1", "l2_squared") == (lattice, kind, l1, l2)
            paid = ENCODE(costs) if same and all(one <= row for one, row in zip(costs, rows, strict=True)) else None
            self.move(costs, 0, 1)
        self.need(paid == found["charges"], "priced", "it is not charged what its noise and sensitivity cost")
        shown = ENCODE([self.accounts[row[0]] for row in rows])
        self.need(found["accounts"] == shown, "balanced", "its accounts are not what the entries add up to")
        self.waiting[int(found["request"])] = found["answer"]

    _stop = _settle

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
        if head["size"] != self.size or not self.signed(head):
            raise CheckError("signed", self.size, "it has no head, or one with a false signature")
        if head["accounts"] != sha256(ENCODE(list(self.accounts.values())).encode()).hex():
            raise CheckError("balanced", self.size, "the accounts are not those that its head signed")
        self.need(not self.waiting, "answers", "the answer before is lost; its charge stands")
        for head in (head for head in self.outside if head["root"] not in self.strays):
            key = max(one for one in self.keys if one[0] <= head["size"])[1]
            if self.roots[head["size"]] != head["root"] or head["key"] != key or not self.signed(head):
                raise CheckError("witnessed", head["size"], "the head seen outside is not extended, or another's")

    def check_proof(self, proof: Any) -> re.Match[str] | None:  # noqa: ANN401 - whatever a file holds
        """The entry that an inclusion proof shows; CheckError if that or a consistency proof does not hold."""
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            path = [base64.b64decode(step, validate=True) for step in proof["path"]]
            head, old = proof["head"], proof.get("old")
            size, root, was = head["size"], bytes.fromhex(head["root"]), bytes.fromhex((old or head)["root"])
            if old:
                shown = self.signed(old) and grow(size, old["size"], path, was) == (was, root)
            else:
                shown = climb(size, proof["position"] - 1, sha256(b"\x00" + proof["entry"].encode()), path) == root
            if shown and self.signed(head):
                return None if old else read(proof["entry"].encode(), proof["position"])
        raise CheckError("proven", 0, "a proof does not show what it says")

    def check_release(self, release: Mapping[str, Any]) -> None:
        """Checks that the rows of a release are the answer that its signed entry names."""
        receipt, evidence = release["receipt"], release["receipt"]["evidence"]
        found, request = self.check_proof(evidence["proof"]), self.requests.get(receipt["release"])
        lattice = Fraction(*json.loads(request[5])) if request else Fraction(receipt["lattice"])
        rows = [Fraction(row["value"]) / lattice for row in release["rows"]] == json.loads(evidence["answer"])["cells"]
        if not rows or not found or found["answer"] != salted(evidence["salt"], evidence["answer"]):
            raise CheckError("released", receipt["position"], "its rows are not the answer that was settled")


def walk(tree: object) -> Iterator[dict[str, Any]]:
    """Every record in a tree of JSON."""
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
        if name != "-" or not any("path" in record for record in walk(trees)):
            ledger.end()
        for record in walk(trees):
            if "path" in record:
                ledger.check_proof(record)
            if "evidence" in record.get("receipt", {}):
                ledger.check_release(record)
    except CheckError as error:
        sys.stderr.write("{}: entry {}: {}\n".format(*error.args))
        sys.exit(4)


if __name__ == "__main__":
    main()
