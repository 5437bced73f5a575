"""A delimited text that is larger than memory, as pieces of whole records, with their lines.

1. Bytes come in chunks, decompressed if they are gz. Byte order marks go; UTF-16 and Windows-1252
   become UTF-8.
2. A chunk is cut after its last whole record: after a newline with an even number of quotes before
   it. Where a quote is a letter of a plain field (``5" pipe``), counting is not enough, and the
   slow reader of `gnomon.data.lines` finds the records. What is left begins the next piece.
3. A piece is seen to be text without NUL, in UTF-8. If it is not, everything is read again as
   Windows-1252, which is how `gnomon.data.dialect.as_utf8` reads a text in memory.
"""

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gnomon.data.file_content import byte_chunks, first_bytes
from gnomon.data.lines import (
    NEWLINE,
    QUOTE,
    RETURN,
    BrokenRecordError,
    Survey,
    line_of_byte,
    read_records,
    survey,
)
from gnomon.data.refusals import FileError
from gnomon.typing import Octets

__all__ = ["OtherEncodingError", "TextPiece", "text_chunks", "text_pieces"]

UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
MOST_BYTES = 2**28  # of one record


class TextPiece(NamedTuple):
    """Whole records in UTF-8, the line that they begin on, and what bytes occur in them."""

    data: Octets
    line: int
    seen: Survey


class OtherEncodingError(Exception):
    """A text that is not UTF-8: the line that shows it, and the byte."""

    def __init__(self, line: int, byte: int) -> None:
        super().__init__(line, byte)
        self.line, self.byte = line, byte


def text_chunks(
    path: Path, name: str, not_utf8: OtherEncodingError | None = None
) -> tuple[Iterator[bytes], list[str]]:
    """The bytes of a text without byte order mark, and what had to be assumed about them.

    UTF-16 is turned into UTF-8. `not_utf8` says that the text is neither: it is read as
    Windows-1252.
    """
    chunks = byte_chunks(path, name)
    head = first_bytes(chunks, len(UTF8_MARK))
    if head.startswith(UTF16_MARKS):
        return _from_utf16(_chain(head, chunks), name), ["text is UTF-16"]
    if head.startswith(UTF8_MARK):
        return _chain(head[len(UTF8_MARK) :], chunks), []
    if not_utf8 is not None:
        note = f"text is read as Windows-1252: line {not_utf8.line} is not UTF-8"
        return _from_windows(_chain(head, chunks), name, not_utf8), [note]
    return _chain(head, chunks), []


def _chain(head: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield head
    yield from chunks


def _from_utf16(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError:
        raise FileError(f"{name} is damaged UTF-16.", "Save it as UTF-8.") from None


def _from_windows(
    chunks: Iterable[bytes], name: str, not_utf8: OtherEncodingError
) -> Iterator[bytes]:
    try:
        for chunk in chunks:
            yield chunk.decode("cp1252").encode("utf-8")
    except UnicodeDecodeError:
        raise FileError(
            f"{name}, line {not_utf8.line}: byte 0x{not_utf8.byte:02X} is not UTF-8.",
            "Save it as UTF-8.",
        ) from None


def text_pieces(
    chunks: Iterable[bytes], name: str, delimiter: str, line: int
) -> Iterator[TextPiece]:
    """The records of a text whose first byte is on `line`, about a chunk of them at a time."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        end = _whole_records(np.frombuffer(rest, np.uint8), delimiter, name)
        if end:
            piece = _checked(rest[:end], name, line)
            rest = rest[end:]
            yield piece
            line += line_of_byte(piece.data, piece.data.size) - 1
        elif len(rest) > MOST_BYTES:
            raise FileError(
                f"{name}, line {line}: a quote is opened and never closed, or there is a record of "
                f"more than {MOST_BYTES:,} bytes.",
                "Close the quote, or double it if it is part of the text.",
            )
    if rest:
        yield _checked(rest, name, line)


def _whole_records(data: Octets, delimiter: str, name: str) -> int:
    """How many bytes of `data`, which begins with a record, are whole records."""
    ends = np.flatnonzero(data == NEWLINE)
    if not ends.size:
        ends = np.flatnonzero(data[:-1] == RETURN)  # the last may have its newline in what follows
    quotes = np.flatnonzero(data == QUOTE)
    if quotes.size:
        before = np.where(quotes > 0, data[quotes - 1], NEWLINE)[::2]
        if not np.isin(before, (ord(delimiter), NEWLINE, RETURN, QUOTE)).all():
            return _slowly(data, delimiter, name)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(ends[-1]) + 1 if ends.size else 0


def _slowly(data: Octets, delimiter: str, name: str) -> int:
    """How many bytes of `data` are whole records, found record by record.

    The last one may continue in the next piece.
    """
    last = before = 0
    try:
        for record in read_records(data, delimiter):
            before, last = last, record.end
    except BrokenRecordError as error:
        raise FileError(f"{name} cannot be read as CSV ({error}).") from None
    return before


def _checked(text: bytes, name: str, line: int) -> TextPiece:
    data = np.frombuffer(text, np.uint8)
    seen = survey(data)
    if seen.nul:
        line += line_of_byte(data, text.index(0)) - 1
        raise FileError(
            f"{name}, line {line}: there is a NUL byte.",
            "The file is damaged, or it is no text; text in UTF-16 must be saved as UTF-8.",
        )
    if not seen.ascii:
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise OtherEncodingError(
                line + line_of_byte(data, error.start) - 1, text[error.start]
            ) from None
    return TextPiece(data, line, seen)
