"""The net holds the sampler, and no planted fault slips through it."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray

from parco.noise.bits import BitSource, CipherBits
from parco.noise.chance import Chance, Exponential, Rational, bernoulli_mask
from parco.noise.laws import Law
from parco.noise.vector import draw_array
from tests.noise import net, oracle
from tests.noise.tapes import Stream

KINDS = pytest.mark.parametrize("kind", oracle.KINDS)


def streams(name: str) -> net.Bits:
    """Sources that differ from each other but not from run to run: a fault that is caught once is caught always."""
    numbers = count()
    return lambda: Stream(f"{name} {next(numbers)}")


@KINDS
def test_the_sampler_passes(kind: type[Law]) -> None:
    # Fails a right sampler with probability 3e-6.
    assert net.caught(kind, draw_array, CipherBits) == set()


@KINDS
def test_the_sample_sizes_are_those_of_the_level_and_the_power(kind: type[Law]) -> None:
    assert 350_000 < net.sample_size(kind) < 650_000


@KINDS
@pytest.mark.parametrize("factor", [1 - net.DEFICIT, 1 + net.DEFICIT])
def test_a_scale_off_by_one_per_cent_is_caught(kind: type[Law], factor: Fraction) -> None:
    def sampler(law: Law, number: int, bits: BitSource) -> NDArray[np.int64]:
        return draw_array(kind(law.scale * factor), number, bits)

    assert "scale" in net.caught(kind, sampler, streams("scale"))


@KINDS
def test_a_missing_sign_is_caught(kind: type[Law]) -> None:
    def sampler(law: Law, number: int, bits: BitSource) -> NDArray[np.int64]:
        return np.abs(draw_array(law, number, bits))

    assert {"sign", "shape", "far"} == net.caught(kind, sampler, streams("sign")) - {"repeats"}


@KINDS
def test_a_key_that_is_used_twice_is_caught(kind: type[Law], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(size)))
    assert net.caught(kind, draw_array, CipherBits) == {"repeats"}


class Reusing(Stream):
    """A stream that hands out each of its blocks twice."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._again: NDArray[np.int64] | None = None

    def words(self, count: int) -> NDArray[np.int64]:
        again, self._again = self._again, None
        if again is not None and len(again) == count:
            return again
        self._again = super().words(count)
        return self._again


@KINDS
def test_a_block_that_is_used_twice_is_caught(kind: type[Law]) -> None:
    numbers = count()
    assert "repeats" in net.caught(kind, draw_array, lambda: Reusing(f"reusing {next(numbers)}"))


@KINDS
def test_a_law_cut_off_at_six_standard_deviations_is_caught_by_chosen_tapes_alone(kind: type[Law]) -> None:
    def sampler(law: Law, number: int, bits: BitSource) -> NDArray[np.int64]:
        # Cut off where the law's own tail is that of six standard deviations of a Gaussian.
        end = law.guess(9.87e-10)
        return np.clip(draw_array(law, number, bits), -end, end)

    assert net.caught(kind, sampler, streams("cut off")) == {"far"}


# Coins. With p = 1/2 and 1 % less of it: the size is ((4.89 + 3.09) (1/2)/(1/200))^2, rounded up.

COINS: list[tuple[Chance, Chance]] = [
    (Rational(Fraction(1, 2)), Rational(Fraction(99, 200))),
    (Exponential(Fraction(7, 10)), Exponential(Fraction(71005, 10**5))),
]
COIN_SIZE = 640_000


def coin_deviation(chance: Chance, mask: NDArray[np.bool_]) -> float:
    share = chance.floor(64) / 2**64
    return float((mask.mean() - share) / (share * (1 - share) / len(mask)) ** 0.5)


@pytest.mark.parametrize(("chance", "less"), COINS)
def test_coins_pass_and_one_per_cent_less_is_caught(chance: Chance, less: Chance) -> None:
    assert abs(coin_deviation(chance, bernoulli_mask(chance, COIN_SIZE, CipherBits()))) < net.TWO_SIDED
    assert abs(coin_deviation(chance, bernoulli_mask(less, COIN_SIZE, Stream("coin")))) > net.TWO_SIDED
