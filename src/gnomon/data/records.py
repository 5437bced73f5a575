"""Where the records of a delimited text end, byte by byte, as pyarrow sees it.

A quote is special at the beginning of a field and within a field that began with one; anywhere
else it is a letter, as in ``5" pipe``. A newline, a return, or both in a row end a line.
`gnomon.data.csv_blocks` finds records of ordinary texts faster, by counting quotes.
"""

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.data.lines import NEWLINE, QUOTE, RETURN

__all__ = ["RecordFinder"]

# What the last byte was: the end of a line or of a field, a letter of a plain or of a quoted field,
# the quote at the end of the latter; or a return after some record, after none, or within quotes.
LINE, FIELD, PLAIN, QUOTED, CLOSED, RETURNED, BLANK, QUOTED_RETURN = range(8)


class RecordFinder:
    """Ends of records in a text that comes in chunks and begins on `line`."""

    def __init__(self, delimiter: str, line: int) -> None:
        self.delimiter = ord(delimiter)
        self.now = np.array([LINE, line, 0], np.int64)  # state, line, line of the last quote

    @property
    def line(self) -> int:
        """The line that the next byte is on."""
        return int(self.now[1])

    @property
    def quoted_from(self) -> int:
        """The line on which the present quote was opened; 0 outside of quotes."""
        return int(self.now[2]) if self.now[0] in (QUOTED, QUOTED_RETURN) else 0

    def find(
        self, chunk: NDArray[np.uint8], at: int, *, last: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The bytes after the records of a chunk that begins at byte `at`, and their last lines."""
        most = np.count_nonzero(chunk == NEWLINE) + np.count_nonzero(chunk == RETURN) + 2
        ends, lines = np.empty(most, np.int64), np.empty(most, np.int64)
        found = _find(chunk, at, self.delimiter, self.now, ends, lines)
        if last and self.now[0] in (FIELD, PLAIN, CLOSED, RETURNED):  # it ends with the file
            ends[found], lines[found] = at + chunk.size, self.now[1]
            found += 1
        return ends[:found], lines[:found]


@kernel
def _find(
    chunk: NDArray[np.uint8],
    at: int,
    delimiter: int,
    now: NDArray[np.int64],
    ends: NDArray[np.int64],
    lines: NDArray[np.int64],
) -> int:
    """Write down the records of `chunk` and where it leaves off; how many there are."""
    state, line, opened = now[0], now[1], now[2]
    found = 0
    for i in range(chunk.size):
        byte = chunk[i]
        if state >= RETURNED:  # a newline belongs to the return before it
            if state == RETURNED:
                ends[found], lines[found] = at + i + (byte == NEWLINE), line
                found += 1
            line += 1
            state = QUOTED if state == QUOTED_RETURN else LINE
            if byte == NEWLINE:
                continue
        if state == QUOTED:
            if byte == QUOTE:
                state = CLOSED
            elif byte == RETURN:
                state = QUOTED_RETURN
            elif byte == NEWLINE:
                line += 1
        elif byte == NEWLINE:
            if state != LINE:
                ends[found], lines[found] = at + i + 1, line
                found += 1
            line += 1
            state = LINE
        elif byte == RETURN:
            state = BLANK if state == LINE else RETURNED
        elif byte == delimiter:
            state = FIELD
        elif byte == QUOTE and state != PLAIN:
            if state != CLOSED:  # after which it is one letter of two
                opened = line
            state = QUOTED
        else:
            state = PLAIN
    now[0], now[1], now[2] = state, line, opened
    return found
