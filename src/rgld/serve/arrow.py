"""Arrow streams: how large a stream is in memory, before it is read.

In: the bytes of a stream. Out: its number of rows, or a `RequestError`. A stream may hold compressed buffers, and 200
KB of them can stand for gigabytes: such a stream is refused. (`bodies.py` unpacks a body in gzip, up to a limit.)

The format: messages, each with its length, metadata (a flatbuffer) and a body. A flatbuffer table begins with the
distance back to its list of fields, which gives the place of each field in the table, 0 for one that is left out.
"""

import struct
from typing import NamedTuple

from .problems import RequestError

CONTINUATION = 0xFFFFFFFF
"""What a message begins with; streams of old releases begin with its length."""
MESSAGE_KIND, MESSAGE_HEADER, MESSAGE_BODY_LENGTH = 1, 2, 3
DICTIONARY_BATCH, RECORD_BATCH = 2, 3
DICTIONARY_DATA = 1
BATCH_LENGTH, BATCH_COMPRESSION = 0, 3
"""Kinds of messages, and the places of fields in the lists of their tables, as Arrow's Message.fbs has them."""


class _Table(NamedTuple):
    """A table of a flatbuffer."""

    content: memoryview
    at: int

    def field(self, number: int) -> int:
        """Return where a field is; 0 if it is left out."""
        fields = self.at - self._read("<i", self.at)
        place = 4 + 2 * number
        if place >= self._read("<H", fields):
            return 0
        distance = self._read("<H", fields + place)
        return self.at + distance if distance else 0

    def number(self, number: int, kind: str) -> int:
        at = self.field(number)
        return self._read(kind, at) if at else 0

    def table(self, number: int) -> "_Table":
        at = self.field(number)
        return _Table(self.content, at + self._read("<I", at))

    def _read(self, kind: str, at: int) -> int:
        if at < 0:  # struct would count from the end
            raise struct.error("before the start")
        found: int = struct.unpack_from(kind, self.content, at)[0]
        return found


def count_rows(body: bytes) -> int:
    """Return the number of rows of a stream; raise if it is damaged or holds compressed buffers."""
    try:
        return _count_rows(memoryview(body))
    except (struct.error, ValueError):
        raise RequestError(
            400, "Expected an Arrow stream, got something that cannot be read as one: write it again."
        ) from None


def _count_rows(body: memoryview) -> int:
    n_rows, at = 0, 0
    while at < len(body):
        (length,) = struct.unpack_from("<I", body, at)
        at += 4
        if length == CONTINUATION:
            (length,) = struct.unpack_from("<I", body, at)
            at += 4
        if not length:  # the end of the stream
            break
        metadata = body[at : at + length]
        message = _Table(metadata, struct.unpack_from("<I", metadata)[0])
        kind, body_length = message.number(MESSAGE_KIND, "<B"), message.number(MESSAGE_BODY_LENGTH, "<q")
        if kind in (DICTIONARY_BATCH, RECORD_BATCH):
            batch = message.table(MESSAGE_HEADER)
            batch = batch.table(DICTIONARY_DATA) if kind == DICTIONARY_BATCH else batch
            if batch.field(BATCH_COMPRESSION):
                raise RequestError(
                    415,
                    "Expected an Arrow stream without compression, got compressed buffers: send it in gzip instead.",
                )
            n_rows += batch.number(BATCH_LENGTH, "<q") if kind == RECORD_BATCH else 0
        if body_length < 0:
            raise ValueError("a negative length")
        at += length + body_length
    return n_rows
