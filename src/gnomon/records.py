"""Results that are not arrays: frozen, readable, and ready for JSON and notebooks."""

import dataclasses
import html
from typing import Any

import numpy as np


class Record:
    """Base of the frozen dataclasses that Gnomon returns.

    A subclass defines its readable form by `lines`: pairs of a name and a sentence. Everything else
    (`str`, notebooks, `to_dict`) follows.
    """

    def lines(self) -> list[tuple[str, str]]:
        """Name and value of each line of the readable form."""
        return [(name, str(value)) for name, value in self.to_dict().items()]

    def title(self) -> str:
        """First line of the readable form."""
        return type(self).__name__

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, ready for ``json.dumps``."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: plain(getattr(self, field.name)) for field in fields}

    def __str__(self) -> str:
        lines = self.lines()
        width = max((len(name) for name, _ in lines), default=0)
        return "\n".join([self.title(), *(f"  {name:<{width}}  {text}" for name, text in lines)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self.lines()
        )
        return f"<table><caption>{html.escape(self.title())}</caption>{rows}</table>"


def plain(value: Any) -> Any:
    """Convert arrays to lists, NumPy scalars to Python's, records to dictionaries."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
