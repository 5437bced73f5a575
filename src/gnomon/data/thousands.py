"""Numbers with thousands separators: ``1,234,567``, ``1.234,5``, ``1 234 567``, ``1'234'567``.

`find_marks` says which mark divides thousands in a column of text. Guessing takes two signals:
every cell agrees, and one of them has two groups (``1,234,567``) or both marks (``1.234,5``).
``1.234`` alone is a number with three decimals. Where the user named the decimal mark, one group is
enough.
"""

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Marks", "find_marks", "fits_marks", "is_unclear", "plain_numbers"]

BLANKS = " \u00a0\u202f"  # a blank, a no-break space, a narrow no-break space
GROUPS = (",", ".", "'", "\u2019", *BLANKS)
CALLED = {" ": "blanks", "\u00a0": "no-break spaces", "\u202f": "no-break spaces"}


class Marks(NamedTuple):
    """What divides thousands, and what decimals, in a column."""

    group: str
    decimal: str

    def __str__(self) -> str:
        return CALLED.get(self.group, f'"{self.group}"')


def find_marks(present: Any, stated: str | None = None) -> Marks | None:
    """The marks that every cell of `present` agrees on; None where there is no evidence.

    Parameters
    ----------
    present : ChunkedArray of large_string
        Trimmed cells, null where a value is missing.
    stated : "." or ",", optional
        What divides decimals, if the user said so.
    """
    known = len(present) - present.null_count
    if not _count(present, _grouped("".join(GROUPS))):
        return None
    for decimal in (".", ",") if stated is None else (stated,):
        for group in GROUPS:
            marks = Marks(group, decimal)
            if group == decimal or _count(present, _fitting(marks)) < known:
                continue
            evidence = _certain(marks) if stated is None else _grouped(group)
            if _count(present, evidence):
                return marks
    return None


def fits_marks(present: Any, marks: Marks) -> Any:
    """Whether each cell is a number with these marks; null where a value is missing."""
    return pc.match_substring_regex(present, _fitting(marks))


def is_unclear(present: Any) -> bool:
    """Whether all cells are numbers such as ``1,234``, whose mark may divide either."""
    known = len(present) - present.null_count
    return any(
        _count(present, _fitting(marks)) == known and _count(present, _grouped(marks.group))
        for marks in (Marks(",", "."), Marks(".", ","))
    )


def plain_numbers(present: Any, marks: Marks) -> Any:
    """The cells as Python writes numbers: thousands joined, a point before decimals."""
    joined = pc.replace_substring(present, marks.group, "")
    return joined if marks.decimal == "." else pc.replace_substring(joined, marks.decimal, ".")


def _grouped(marks: str) -> str:
    """A number that begins with a group of three digits behind one of `marks`."""
    return rf"^[+-]?[0-9]{{1,3}}([{marks}][0-9]{{3}})+"


def _fitting(marks: Marks) -> str:
    """A number below a thousand, or one with all its groups."""
    group, decimal = f"[{marks.group}]", f"[{marks.decimal}]"
    return rf"^[+-]?([0-9]{{1,3}}({group}[0-9]{{3}})*({decimal}[0-9]*)?|{decimal}[0-9]+)$"


def _certain(marks: Marks) -> str:
    """Two groups, or a group and decimals."""
    group, decimal = f"[{marks.group}]", f"[{marks.decimal}]"
    return rf"^[+-]?[0-9]{{1,3}}(({group}[0-9]{{3}}){{2,}}|({group}[0-9]{{3}})+{decimal}[0-9])"


def _count(present: Any, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(present, pattern).cast(pa.int64())).as_py() or 0)
