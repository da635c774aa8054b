"""Entries: one encoding, closed tags and fields, no free text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from parco import canonical
from parco.errors import InternalError, LedgerFormatError, VerificationError
from parco.ledger.entries import (
    Capped,
    Charge,
    Entry,
    Forfeit,
    MechanismFacts,
    Refine,
    Reserve,
    SensitivityFacts,
    Stray,
    Void,
    decode,
    encode,
    held,
    rotation_statement,
    secret_commitment,
)

from .build import (
    amend,
    cap,
    draw,
    flag,
    leave,
    mark,
    opening,
    recost,
    recover,
    refine,
    reserve,
    revise,
    rotate,
    schedule,
    settle,
    start,
    stop,
    supersede,
)

EVERY: list[Entry] = [
    opening(),
    revise(),
    cap(),
    reserve(),
    refine(),
    start(),
    settle(),
    stop(),
    Void(seq=4, actor=mark("ana"), request=2),
    Forfeit(seq=4, actor=mark("ana"), request=2),
    recover(),
    replace(recover(), charges=(), strays=tuple(Stray(size, "ab"[size % 2] * 64) for size in (8, 9))),
    rotate(),
    schedule(),
    schedule(questions="qqr", more="s"),
    draw(),
    leave(),
    amend(),
    amend(text=None),
    supersede(9, 2, 5),
    supersede(9, 2, None),
    recost(9, (2, 160, 1), (5, 160, 1), added=240),
    recost(9, (2, 40, 1), added=-120, factor=Fraction(1), corrects=8),
    flag(),
]


@pytest.mark.parametrize("entry", EVERY, ids=lambda entry: type(entry).__name__)
def test_write_read_write(entry: Entry) -> None:
    data = encode(entry)
    assert decode(data) == entry
    assert encode(decode(data)) == data


def test_the_bytes_of_format_1_never_change() -> None:
    """Golden bytes: changing them orphans every ledger in the world."""
    ana = mark("ana")
    assert encode(start()) == f'{{"actor":"{ana}","format":1,"request":2,"seq":3,"tag":"start"}}'.encode()
    assert mark(encode(opening()).decode()) == "925a87d5c0a391fbc66637d95113e498ff9d12d451f77075d4b26931b818b74a"
    assert mark(encode(reserve()).decode()) == "4d8ebd278ae832e6d37eb1b5530455f3593f2a46529af93043dcff4f38dcc102"
    assert mark(encode(refine()).decode()) == "34a0c020988fe0b646f26440190051b78d128518a78e54c1447f4ba1a202d812"
    assert mark(encode(settle()).decode()) == "0779967c179317e480dd31eb6a3719c64ced900cf4136bb677987b3d8ced6699"
    assert mark(encode(stop()).decode()) == "65c6da23b9ae119a54d0e0ebc744632e565c03fc079f27891b8f350b83e59be7"
    assert mark(encode(recover()).decode()) == "a47896e3fb0295d2e73194b8a0ccb8d4235e12461414ad9022dbd8178a6ce399"
    assert encode(amend()) == (
        f'{{"actor":"{ana}","entry":1,"field":"title","format":1,"reason":"{mark("why")}","seq":2,"tag":"amend",'
        f'"text":"{mark("text")}","time":9}}'.encode()
    )
    assert encode(supersede(9, 2, None)) == (
        f'{{"actor":"{ana}","by":null,"format":1,"reason":"{mark("why")}","request":2,"seq":9,"tag":"supersede",'
        f'"time":9}}'.encode()
    )
    assert encode(recost(9, (2, 40, 1), added=-120, factor=Fraction(1), corrects=8)) == (
        f'{{"actor":"{ana}","added":[[1,-120,0]],"corrects":8,"factor":[1,1],"format":1,'
        f'"mechanism":"two-sided-geometric","reason":"{mark("why")}","seq":9,"tag":"recost","time":9,'
        f'"totals":[[2,1,40,1]]}}'.encode()
    )
    assert encode(flag()) == (
        f'{{"actor":"{ana}","entry":1,"format":1,"reason":"{mark("why")}","seq":2,"tag":"flag","time":9}}'.encode()
    )
    assert mark(encode(rotate()).decode()) == "f6dd025f1bf444548932568f433f722f1b13d605c20bcfb87c6f0fcb3195d9ee"
    assert mark(encode(schedule()).decode()) == "96c809c1f8cb2a87ddb8510ba60eed0b5ebc190dcd6ed012b7bb9b6b105a4361"
    assert mark(encode(draw()).decode()) == "0f1812c844fe7a94654dca07afd937d54976a08ff9194e17c14fa88654d009dc"
    assert (
        encode(leave())
        == (
            f'{{"actor":"{ana}","format":1,"reason":"{mark("why")}","schedule":2,"seq":3,"tag":"leave","time":9}}'
        ).encode()
    )
    assert (
        encode(cap())
        == (
            f'{{"accounts":[[1,200]],"actor":"{ana}","format":1,"reason":"{mark("why")}","seq":2,"tag":"cap","time":7}}'
        ).encode()
    )
    assert (
        encode(revise())
        == (
            f'{{"accounts":[[1,"{mark("whole")}",100,10]],"actor":"{ana}","contract":"{mark("c2")}","format":1,'
            f'"reason":"{mark("why")}","revised":"{mark("c")}","seq":2,"tag":"revise","terms":"{mark("terms")}","time":7}}'
        ).encode()
    )


def test_resolving_entries_carry_no_time() -> None:
    """How long a data access took may depend on the data."""
    for entry in EVERY:
        timed = "time" in canonical.decode(encode(entry))
        assert timed == (type(entry).__name__ not in ("Start", "Settle", "Stop", "Void", "Forfeit"))


@pytest.mark.parametrize(
    "change", [{"seq": 3}, {"old": mark("x")}, {"new": mark("x")}, {"reason": mark("x")}, {"time": 9}], ids=str
)
def test_a_rotation_is_signed_whole_but_for_its_signatures(change: dict[str, Any]) -> None:
    signed = rotation_statement(rotate())
    assert rotation_statement(replace(rotate(), **change)) != signed
    assert rotation_statement(replace(rotate(), by_old="0" * 128)) == signed


@pytest.mark.parametrize(
    "bad",
    [
        replace(reserve(), actor="ana"),
        replace(reserve(), question="How many?"),
        replace(reserve(), key=mark("k").upper()),
        replace(reserve(), mechanism=MechanismFacts("laplace", Fraction(1), Fraction(1))),
        replace(reserve(), mechanism=MechanismFacts("gaussian", Fraction(0), Fraction(1))),
        replace(reserve(), sensitivity=SensitivityFacts(Fraction(0), Fraction(1))),
        replace(reserve(), mechanism=MechanismFacts("gaussian", Fraction(10**308), Fraction(1))),
        replace(reserve(), mechanism=SensitivityFacts(Fraction(1), Fraction(1))),  # type: ignore[arg-type]
        replace(stop(), sensitivity=MechanismFacts("gaussian", Fraction(1), Fraction(1))),  # type: ignore[arg-type]
        replace(reserve(), cells=0),
        replace(reserve(), cells=True),
        replace(reserve(), charges=()),
        replace(reserve(), charges=(Charge(2, 1), Charge(1, 1))),
        replace(reserve(), charges=(Charge(1, 1), Charge(1, 1))),
        replace(reserve(), charges=(Charge(1, -1),)),
        replace(reserve(), charges=(Charge(1, 2**63),)),
        replace(reserve(), fresh=1),  # type: ignore[arg-type]
        replace(reserve(), time=1.5),  # type: ignore[arg-type]
        replace(reserve(), seq=0),
        replace(opening(), measure="laplace"),
        replace(revise(), reason="why"),
        replace(cap(), reason="why"),
        replace(cap(), accounts=()),
        replace(amend(), field="contract"),
        replace(amend(), text="text"),
        replace(flag(), entry=0),
        replace(supersede(9, 2, 5), by=0),
        replace(recost(9, (2, 1, 0), added=1), totals=()),
        replace(recost(9, (2, 1, 0), added=1), added=()),
        replace(recost(9, (2, 1, 0), added=1), mechanism="laplace"),
        recost(9, (5, 1, 0), (2, 1, 0), added=1),
        recost(9, (2, 1, 0), (2, 1, 0), added=1),
        recost(9, (2, -1, 0), added=1),
        recost(9, (2, 1, 0), added=-(2**63)),
        recost(9, (2, 1, 0), added=1, factor=Fraction(0)),
        replace(cap(), accounts=(Capped(2, 1), Capped(1, 1))),
        cap(to=-1),
        cap(to=2**63),
        schedule(questions="", more=""),
        replace(schedule(), name="weekly"),
        replace(schedule(), steps=(replace(schedule().steps[0], questions=()),)),
        replace(schedule(), steps=(replace(schedule().steps[0], cells=0),)),
        replace(draw(), step=0),
        replace(draw(), schedule=True),
        replace(leave(), reason="why"),
    ],
)
def test_the_encoder_refuses_what_is_no_number_tag_or_digest(bad: Entry) -> None:
    with pytest.raises(InternalError):
        encode(bad)


def _bent(change: Callable[[dict[str, Any]], object], entry: Entry | None = None) -> bytes:
    record = canonical.decode(encode(entry or reserve()))
    change(record)
    return canonical.encode(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.update(note="hello"), "entry 2: fields missing or unknown: note"),
        (lambda record: record.pop("cells"), "entry 2: fields missing or unknown: cells"),
        (lambda record: record.update(fresh=True), "entry 2: field 'fresh'"),
        (lambda record: record.update(fresh=2), "entry 2: field 'fresh'"),
        (lambda record: record["mechanism"].update(scale=[14, 6]), "entry 2: field 'mechanism'"),
        (lambda record: record["mechanism"].update(scale=[7]), "entry 2: field 'mechanism'"),
        (lambda record: record["mechanism"].update(seed=1), "entry 2: field 'mechanism'"),
        (lambda record: record.update(charges=[[1, 40]]), "entry 2: field 'charges'"),
        (lambda record: record.update(charges={}), "entry 2: field 'charges'"),
        (lambda record: record.update(question="x"), "entry 2: field 'question'"),
        (lambda record: record.update(seq="2"), "an entry: field 'seq'"),
    ],
)
def test_the_reader_refuses_other_records(change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        decode(_bent(change))


def test_unknown_tags_and_formats_are_refused() -> None:
    for tag in ("transfer", 7, None, ["open"]):
        with pytest.raises(LedgerFormatError, match=r"entry 2 has a tag .*upgrade"):
            decode(_bent(lambda record, tag=tag: record.update(tag=tag)))  # type: ignore[misc]
    with pytest.raises(LedgerFormatError, match=r"format 2; .* reads format 1"):
        decode(_bent(lambda record: record.update(format=2)))
    with pytest.raises(LedgerFormatError):
        decode(_bent(lambda record: record.update(format=True)))


def test_a_number_is_known_by_its_type() -> None:
    """One is read before, and remembered; true equals it in Python, and is none."""
    decode(_bent(lambda record: record["mechanism"].update(scale=[1, 1])))
    with pytest.raises(VerificationError, match="entry 2: field 'mechanism'"):
        decode(_bent(lambda record: record["mechanism"].update(scale=[True, 1])))


@pytest.mark.parametrize("entry", EVERY, ids=lambda entry: type(entry).__name__)
def test_what_is_held_is_what_the_whole_entry_says(entry: Entry) -> None:
    if isinstance(entry, Reserve | Refine):
        assert held(encode(entry)) == (entry.seq, entry.actor, entry.charges)
    else:
        with pytest.raises(VerificationError):
            held(encode(entry))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(charges=[[1, 40]]),
        lambda record: record.update(charges=[[1, -40, 0]]),
        lambda record: record.update(charges=[[2, 40, 0], [1, 40, 0]]),
        lambda record: record.update(actor="ana"),
        lambda record: record.update(seq=True),
        lambda record: record.pop("charges"),
    ],
)
def test_a_damaged_charge_is_not_held(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(VerificationError):
        held(_bent(change))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
def test_no_charge_is_held_by_other_bytes(data: bytes) -> None:
    with pytest.raises(VerificationError):
        held(data)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"\xff", b'{"a":1.0}', encode(reserve()) + b"\n"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(VerificationError):
        decode(data)


def test_the_commitment_binds_the_secret() -> None:
    assert secret_commitment(b"a" * 32) != secret_commitment(b"b" * 32)
    assert secret_commitment(b"a" * 32) != mark("a" * 32)
