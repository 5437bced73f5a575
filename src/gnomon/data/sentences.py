"""Sentences of the library with what the file calls its columns and rows."""

import re

from gnomon.data.refusals import quoted
from gnomon.data.table import Table

__all__ = ["with_names"]


def with_names(text: str, table: Table) -> str:
    """A sentence of `PCA`, which counts columns and rows, with what the file calls them."""

    def column(found: re.Match[str]) -> str:
        return found[1] + quoted(table.columns[int(found[2])])

    text = re.sub(r"^(Column )(\d+)(?= varies )", column, text)
    text = re.sub(r"(\(first: )(\d+)(?=\) cannot be standardised)", column, text)
    row = re.match(r"Row (\d+) is ", text)
    if row is None:
        return text
    where = table.places.of(int(row[1]))
    return f"{where[0].upper()}{where[1:]} is {text[row.end() :]}"
