"""The one encoding of whatever is hashed: JSON with sorted keys, no spaces, NFC text, integers, no floats.

Two equal values have equal bytes, whoever writes them. `decode` accepts exactly the bytes `encode` writes, so that
nothing can be stored in two forms. Standard library only: the offline verifier follows the same rules.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any

from parco.errors import InternalError, VerificationError

__all__ = ["decode", "digest", "encode", "encode_plain", "salted_digest"]


def _no_float(_: str) -> object:
    raise ValueError


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_DECODER = json.JSONDecoder(parse_float=_no_float, parse_constant=_no_float)


def encode(value: object) -> bytes:
    """For every tree of dict, list, tuple, str, int, bool and None, returns its only encoding, or raises InternalError.

    Text is brought to Unicode form NFC; keys are sorted by code point. Floats are refused: their text depends on who
    prints them.
    """
    return _ENCODER.encode(_normal(value)).encode()


def decode(data: bytes) -> Any:  # noqa: ANN401 - a JSON tree
    """Returns the value whose encoding is exactly `data`, or raises VerificationError."""
    try:
        value = _DECODER.decode(data.decode())
        # Whatever is not ASCII would show in the encoding, so that ASCII text needs no Unicode form.
        canonical = (_ENCODER.encode(value).encode() if data.isascii() else encode(value)) == data
    except (ValueError, RecursionError, InternalError):
        canonical = False
    if not canonical:
        raise VerificationError(
            "stored bytes are not in canonical form: the file was written or changed by other means"
        )
    return value


def encode_plain(value: object) -> bytes:
    """`encode` of a tree that holds ASCII text and integers alone; of any other it is not canonical."""
    return _ENCODER.encode(value).encode()


def digest(value: object) -> str:
    """SHA-256 of the encoding, as 64 hexadecimal digits."""
    return hashlib.sha256(encode(value)).hexdigest()


def salted_digest(salt: bytes, text: str) -> str:
    """A commitment to `text`: without the salt nothing about it can be guessed; once the salt is erased, never again.

    The label keeps these digests apart from every other use of SHA-256 in parco.
    """
    return hashlib.sha256(b"parco/text/1\x00" + salt + text.encode()).hexdigest()


def _normal(value: object) -> object:
    if isinstance(value, str):
        # ASCII text is in form NFC.
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, list | tuple):
        return [_normal(item) for item in value]
    if isinstance(value, dict):
        normal = {
            key if isinstance(key, str) and key.isascii() else _key(key): _normal(item) for key, item in value.items()
        }
        if len(normal) != len(value):
            raise InternalError("two keys of a record are the same text in Unicode form NFC")
        return normal
    raise InternalError(f"a {type(value).__name__} has no canonical form")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InternalError("keys of a canonical record are text")
    return unicodedata.normalize("NFC", key)
