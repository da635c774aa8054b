"""Guesses of the Gaussian profile's solutions: close over the whole range, and never trusted."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from parco.privacy import gaussian, gaussian_guess

CLOSE = Fraction(1, 10**12)


def drawn(count: int, seed: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Triples of mu^2, epsilon and delta over mu 1e-9..1e4, epsilon 0..1e8, delta 1e-300..1-1e-12."""
    draw = random.Random(seed)
    triples = []
    for place in range(count):
        mu = 10 ** draw.uniform(-9, 4)
        epsilon = 0.0 if place % 10 == 0 else 10 ** draw.uniform(-9, 8)
        near_one, small = 1 - Fraction(10 ** draw.uniform(-12, -0.3)), Fraction(10 ** draw.uniform(-300, -0.01))
        shallow = Fraction(min(mu, 0.9) * 10 ** draw.uniform(-3, -0.4))
        triples.append((Fraction(mu) ** 2, Fraction(epsilon), (near_one, small, shallow)[place % 3]))
    return triples


def test_a_guess_of_epsilon_is_close_wherever_there_is_one() -> None:
    found = 0
    for mu_squared, _, delta in drawn(150, seed=1):
        truth, near = gaussian.epsilon_lower(mu_squared, delta), gaussian_guess.epsilon_near(mu_squared, delta)
        if near is None:
            assert truth == 0
        else:
            found += 1
            assert abs(near - truth) <= CLOSE * max(truth, mu_squared / 2)
    assert found > 60


def test_a_guess_of_mu_is_close() -> None:
    for _, epsilon, delta in drawn(150, seed=2):
        truth, near = gaussian.mu_squared_lower(epsilon, delta), gaussian_guess.mu_near(epsilon, delta)
        assert near is not None
        assert abs(near**2 - truth) <= CLOSE * truth


def test_where_doubles_end_there_is_no_guess() -> None:
    assert gaussian_guess.epsilon_near(Fraction(10) ** 700, Fraction(1, 10**6)) is None
    assert gaussian_guess.epsilon_near(Fraction(1), Fraction(99, 100)) is None
    assert gaussian_guess.mu_near(Fraction(0), Fraction(1, 10**400)) is None


WRONG = [None, Fraction(1, 10**9), Fraction(999, 1000), Fraction(10**9)]


@pytest.mark.parametrize("factor", WRONG, ids=str)
def test_the_solution_does_not_depend_on_the_guess(factor: Fraction | None, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        (Fraction(1, 10**8), Fraction(1, 10**6)),
        (Fraction(2), Fraction(1, 10**30)),
        (Fraction(900), Fraction(9, 10)),
    ]
    solved = [gaussian.epsilon_upper(mu_squared, delta) for mu_squared, delta in cases]
    inverse = [gaussian.mu_squared_lower(epsilon, delta) for epsilon, (_, delta) in zip(solved, cases, strict=True)]
    for name in ("epsilon_near", "mu_near"):
        good = getattr(gaussian_guess, name)
        monkeypatch.setattr(
            gaussian_guess,
            name,
            lambda first, delta, good=good: factor and good(first, delta) and factor * good(first, delta),
        )
    assert [gaussian.epsilon_upper(mu_squared, delta) for mu_squared, delta in cases] == solved
    assert [
        gaussian.mu_squared_lower(epsilon, delta) for epsilon, (_, delta) in zip(solved, cases, strict=True)
    ] == inverse


def test_a_solution_takes_three_profiles_not_eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for a step of Newton's method, one on each side of the root: what makes a solution ten times faster."""
    counted, profile = [0], gaussian.profile_and_slope

    def counting(mu_squared: Fraction, epsilon: Fraction) -> object:
        counted[0] += 1
        return profile(mu_squared, epsilon)

    monkeypatch.setattr(gaussian, "profile_and_slope", counting)
    for mu_squared in (Fraction(1, 100), Fraction(1), Fraction(50)):
        epsilon = gaussian.epsilon_upper(mu_squared, Fraction(1, 10**6))
        gaussian.mu_squared_lower(epsilon, Fraction(1, 10**6))
    assert counted[0] == 18
