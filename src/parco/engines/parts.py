"""The part a unit is in: a keyed hash of the unit's text, compared with the part's range.

    coin = the first 60 bits of SHA-256(key | unit)

The key is derived from the data set's secret for this use alone, so the coin depends on nothing else: not on the data,
its version, the question or the bounding order, and a unit's part never changes. The coin stays hexadecimal text of
fixed length, whose order is that of the numbers: the comparison is exact on every engine, and no cast can fail.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp, parse_one

from parco.contract.division import COIN_BITS, coin_range

__all__ = ["in_part"]

_DIGITS = COIN_BITS // 4
_COIN = f"SUBSTRING(SHA256(CONCAT_WS('|', :key, unit)), 1, {_DIGITS})"


def in_part(parts: Mapping[str, Fraction], part: str, *, secret: bytes) -> list[exp.Expression]:
    """Conditions that hold for the rows, with their unit as text in `unit`, of exactly the units in the part."""
    key = exp.Literal.string(hmac.new(secret, b"parco/parts", hashlib.sha256).hexdigest())
    coin = parse_one(_COIN, dialect="duckdb").transform(
        lambda node: key.copy() if isinstance(node, exp.Placeholder) else node
    )
    low, high = coin_range(parts, part)
    conditions: list[exp.Expression] = []
    if low > 0:
        conditions.append(exp.GTE(this=coin.copy(), expression=_hex(low)))
    if high < 2**COIN_BITS:
        conditions.append(exp.LT(this=coin.copy(), expression=_hex(high)))
    return conditions


def _hex(coin: int) -> exp.Expression:
    return exp.Literal.string(f"{coin:0{_DIGITS}x}")
