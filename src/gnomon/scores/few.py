"""What a table of few rows cannot tell, by one rule for the page, the command and the library."""

from math import sqrt

__all__ = ["FEW_ROWS", "TRUSTED", "clear_correlation", "few_rows", "trusted"]

# From as many rows on (n − 1)/3, the usual perplexity of small tables, is 5, the smallest that
# [van der Maaten & Hinton 2008] recommend; and correlations of 0.5 are seldom chance.
FEW_ROWS = 16
TRUSTED = 15  # neighbours that a row's `trust` is about, where there are rows enough


def trusted(n: int) -> int:
    """Neighbours that `trust` is about in a table of `n` rows: at most half of the other rows.

    All other rows are the nearest on any map, so that all would be kept by construction; of half of
    them chance keeps half.
    """
    return max(1, min(TRUSTED, (n - 1) // 2))


def clear_correlation(n: int) -> float:
    """Size from which a correlation of `n` rows is seldom chance: about the 5 % limit, 2/√n.

    Above 1 for three rows, of which any correlation may be chance.
    """
    return 2 / sqrt(n)


def few_rows(n: int, *, mapped: bool) -> str:
    """What is warned of where `n` rows are few; empty where they are not."""
    if n >= FEW_ROWS:
        return ""
    said = f"{n} rows are too few to tell structure from chance"
    return f"{said}; a map takes {FEW_ROWS} rows or more." if mapped else f"{said}."
