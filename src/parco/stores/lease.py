"""How long a reservation waits for its start, by clocks that never jump.

A lease counts on the monotonic clock of the boot that gave it. There it ends after its seconds, and with that boot,
since whoever held it has ended too. Another host cannot read that clock: it may end the lease once it has itself seen
the reservation for as many seconds on its own. So no lease ends too early, whatever any wall clock says; one that ends
late costs nothing but patience.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from parco.errors import RequestError
from parco.stores.owner import boot_now, boot_of, host_name

__all__ = ["SECONDS_MAX", "Lease", "Watch", "granted"]

SECONDS_MAX = 366 * 86_400


@dataclass(frozen=True)
class Lease:
    """`given` counts microseconds on the monotonic clock of this boot of this host; it holds for `seconds`."""

    host: str
    boot: str
    given: int
    seconds: int


def granted(seconds: int) -> Lease:
    """A lease of that many whole seconds, from now; RequestError for a length that is none."""
    if type(seconds) is not int or not 1 <= seconds <= SECONDS_MAX:
        raise RequestError(f"a lease is a whole number of seconds from 1 to {SECONDS_MAX}")
    return Lease(host_name(), boot_of(boot_now()), _microseconds(), seconds)


@dataclass
class Watch:
    """When this store first saw a reservation of another host, on its own clock."""

    seen: dict[tuple[int, Lease], int] = field(default_factory=dict)

    def is_over(self, request: int, lease: Lease) -> bool:
        """For every reservation still open, whether its lease has certainly ended."""
        if lease.host == host_name():
            return lease.boot != boot_of(boot_now()) or _has_passed(lease.given, lease.seconds)
        return _has_passed(self.seen.setdefault((request, lease), _microseconds()), lease.seconds)


def _has_passed(since: int, seconds: int) -> bool:
    return _microseconds() - since >= seconds * 1_000_000


def _microseconds() -> int:
    """Since boot, suspension included where the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1000
