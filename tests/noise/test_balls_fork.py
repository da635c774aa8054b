"""A fork while another thread computes with balls: the child must not wait for a thread that it does not have."""

from __future__ import annotations

import os
import threading
import time
from fractions import Fraction

import pytest

from parco.balls import ctx_precision, precision
from parco.noise.intervals import half_width_steps
from parco.noise.laws import RoundedGaussian

SECONDS = 20.0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_computes_although_a_thread_of_its_parent_held_the_lock() -> None:
    before = ctx_precision()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with precision(1000):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        right = ctx_precision() == before and half_width_steps(RoundedGaussian(Fraction(10)), Fraction(95, 100)) == 20
        os._exit(0 if right else 1)
    try:
        assert _exit_code(child) == 0
    finally:
        done.set()
        thread.join()


def _exit_code(child: int) -> int:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")
