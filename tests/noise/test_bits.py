"""Bits: a cipher under a key from the kernel only, never short, never shared, never copied, never given twice."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

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


KEY = bytes(range(32))
"""The key of the example vectors for AES-256 in NIST's FIPS 197, appendix C.3."""
FIPS_BLOCK, FIPS_CIPHER = "00112233445566778899aabbccddeeff", "8ea2b7ca516745bfeafc49904b496089"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The beginning of the stream under KEY, which the kernel is made to give: the cipher's images of 0, 1, 2, ..."""
    monkeypatch.setattr(os, "urandom", lambda size: KEY[:size])
    block = Cipher(algorithms.AES256(KEY), modes.ECB()).encryptor()  # noqa: S305 - the cipher itself, to compare with
    assert block.update(bytes.fromhex(FIPS_BLOCK)).hex() == FIPS_CIPHER
    return b"".join(block.update(counter.to_bytes(16)) for counter in range(1 << 15))


def test_the_stream_is_the_cipher_of_a_counter_under_the_kernels_key(known: bytes) -> None:
    assert CipherBits().words(len(known) // 8).tobytes() == known


def test_words_and_bits_are_one_stream_in_order_and_once(known: bytes) -> None:
    source, place = CipherBits(), 0
    for count in (1, 3, 64, 1000, 1, 20_000):
        words = source.words(count)
        assert words.tobytes() == known[place : place + 8 * count]
        place += 8 * count
        assert source.bits(64) == int.from_bytes(known[place : place + 8], "little")
        place += 8
    assert source.bits(4) == known[place] % 16
    assert source.bits(16) == int.from_bytes(known[place + 1 : place + 3], "little")


def test_threads_that_share_a_source_get_different_pieces(known: bytes) -> None:
    source, taken = CipherBits(), []

    def take() -> None:
        for _ in range(200):
            taken.append(source.words(16).tobytes())

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(known[i : i + 128] for i in range(0, 128 * 800, 128))


def test_two_sources_have_nothing_in_common() -> None:
    # 20,000 words: two of them are equal with probability 1e-11.
    words = np.concatenate([CipherBits().words(10_000), CipherBits().words(10_000)])
    assert len(np.unique(words)) == 20_000


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_is_refused() -> None:
    source = CipherBits()
    source.bits(8)
    child = os.fork()
    if child == 0:
        for taking in (source.bits, source.words):
            try:
                taking(8)
            except InternalError:
                continue
            os._exit(0)
        os._exit(7)
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
