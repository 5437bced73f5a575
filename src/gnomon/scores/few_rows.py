"""Limits of tables with few rows: one rule for the page, the command and the library."""

from math import sqrt

__all__ = ["FEW_ROWS", "TRUSTED", "clear_correlation", "few_rows_warning", "trusted"]

# From this many rows on, (n − 1)/3, the default perplexity of small tables, is at least 5, the
# smallest that [van der Maaten & Hinton 2008] recommend; and correlations of 0.5 are rarely chance.
FEW_ROWS = 16
TRUSTED = 15  # neighbours of a row's `trust`, if there are enough rows: by definition


def trusted(n: int) -> int:
    """Number of neighbours of `trust` in a table of `n` rows: at most half of the other rows.

    All other rows are neighbours on any map, so all would be kept by construction; of half of
    them, half are kept by chance.
    """
    return max(1, min(TRUSTED, (n - 1) // 2))


def clear_correlation(n: int) -> float:
    """Size above which a correlation of `n` rows is rarely chance: about the 5 % limit, 2/√n.

    Above 1 for three rows: any correlation of three rows may be chance.
    """
    return 2 / sqrt(n)


def few_rows_warning(n: int, *, mapped: bool) -> str:
    """Warning text if `n` rows are few; otherwise empty."""
    if n >= FEW_ROWS:
        return ""
    said = f"{n} rows are too few to tell structure from chance"
    return f"{said}; a map takes {FEW_ROWS} rows or more." if mapped else f"{said}."
