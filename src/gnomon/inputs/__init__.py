"""Tables and parameters as callers give them: checked, and converted to arrays of numbers."""

from gnomon.inputs.bad_values import (
    NOTHING_BAD,
    Found,
    column_name,
    find_bad_values,
    refuse_bad_values,
    refuse_found,
)
from gnomon.inputs.conversion import as_numpy
from gnomon.inputs.csr import is_sparse
from gnomon.inputs.parameters import (
    check_choice,
    check_integer,
    check_real,
    check_weights,
    random_generator,
)
from gnomon.inputs.table_checks import about_table, as_table, check_table

__all__ = [
    "NOTHING_BAD",
    "Found",
    "about_table",
    "as_numpy",
    "as_table",
    "check_choice",
    "check_integer",
    "check_real",
    "check_table",
    "check_weights",
    "column_name",
    "find_bad_values",
    "is_sparse",
    "random_generator",
    "refuse_bad_values",
    "refuse_found",
]
