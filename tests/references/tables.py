"""Reads the tables of this folder."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent


def read(name: str) -> tuple[list[str], list[str], NDArray[Any]]:
    """Row names, column names and values of ``name.csv``.

    Values are float64 if every cell is a number; otherwise objects, numbers as floats and the
    others as text.
    """
    with (HERE / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    values = [[_number(cell) for cell in line[1:]] for line in lines]
    text = any(isinstance(cell, str) for line in values for cell in line)
    return [line[0] for line in lines], header[1:], np.array(values, object if text else float)


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell
