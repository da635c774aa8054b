"""Bits: from the kernel only, never short, never shared, never copied."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable

import pytest

from parco.errors import InternalError
from parco.noise.bits import CipherBits

# Each check of a frequency fails a good generator with probability below 1e-6: five standard deviations.
DEVIATIONS = 5


def test_every_count_is_kept_to_and_used_up() -> None:
    source = CipherBits()
    for count in (1, 7, 8, 9, 64, 128, 40_000):
        values = [source.bits(count) for _ in range(50)]
        assert all(0 <= value < 1 << count for value in values)
        # The highest bit is set in some and clear in others: 50 equal ones have probability 2^-49.
        assert len({value >> (count - 1) for value in values}) == 2


def test_single_bits_are_fair_and_words_do_not_repeat() -> None:
    source, number = CipherBits(), 40_000
    ones = sum(source.bits(1) for _ in range(number))
    assert abs(ones - number / 2) < DEVIATIONS * (number / 4) ** 0.5
    words = {source.bits(64) for _ in range(5_000)} | {CipherBits().bits(64) for _ in range(1_000)}
    assert len(words) == 6_000


def test_bits_of_one_block_are_handed_out_in_order_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: bytes(i % 251 for i in range(size)))
    source = CipherBits()
    assert [source.bits(8) for _ in range(4)] == [0, 1, 2, 3]
    assert source.bits(4) == 0
    assert source.bits(16) == 0x0506


def test_a_forked_child_is_refused() -> None:
    source = CipherBits()
    source.bits(8)
    child = os.fork()
    if child == 0:
        try:
            source.bits(8)
        except InternalError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert 0 <= source.bits(8) < 256


def test_a_short_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"\x00" * (size - 1))
    with pytest.raises(InternalError):
        CipherBits().bits(64)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(copying: Callable[[object], object]) -> None:
    with pytest.raises(InternalError):
        copying(CipherBits())


def test_no_bits_at_all_is_refused() -> None:
    with pytest.raises(InternalError):
        CipherBits().bits(0)
