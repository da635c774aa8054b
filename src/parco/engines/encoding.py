"""CSV files in another encoding than UTF-8, written once more in UTF-8 for the time of one release.

A database that decodes by itself stops at the first character it does not know, and so would tell of one row. Here
nothing stops: what is no character becomes bytes that are no UTF-8, and its line is dropped like any other.
"""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from parco.engines.source import Source

__all__ = ["readable"]

_BYTES = 1 << 20


@contextmanager
def readable(source: Source) -> Iterator[Source]:
    """The source with files in UTF-8: its own, or copies in a folder that only we can read, gone afterwards."""
    if source.format != "csv" or source.dialect.encoding == "utf-8":
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="parco-") as folder:
        copies = [Path(folder) / f"{place}.csv" for place in range(len(source.files))]
        for file, copy in zip(source.files, copies, strict=True):
            _rewrite(file, copy, source.dialect.encoding)
        yield replace(source, files=tuple(copies))


def _rewrite(file: Path, copy: Path, encoding: str) -> None:
    decoder = codecs.getincrementaldecoder(encoding)(errors="surrogatepass" if encoding == "utf-16" else "strict")
    with file.open("rb") as stream, copy.open("wb") as written:
        while block := stream.read(_BYTES):
            # Half of a surrogate pair, which UTF-16 can hold, becomes bytes that are no UTF-8.
            written.write(decoder.decode(block).encode("utf-8", "surrogatepass"))
