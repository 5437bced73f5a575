"""The array types.

The names state the type of the numbers; `Vector` and `Matrix` also the number of axes, which
type checkers do not check.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Floats",
    "Floats32",
    "Floats64",
    "Indices",
    "Indices32",
    "Matrix",
    "Octets",
    "Table",
    "Unsigned32",
    "Vector",
]

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.floating[Any]]  # float32 or float64
Floats32: TypeAlias = NDArray[np.float32]
Floats64: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = Floats64  # one axis
Matrix: TypeAlias = Floats64  # two axes
Indices: TypeAlias = NDArray[np.int64]
Indices32: TypeAlias = NDArray[np.int32]
Unsigned32: TypeAlias = NDArray[np.uint32]  # indices inside of kernels
Octets: TypeAlias = NDArray[np.uint8]
Table: TypeAlias = Any  # an array or a CSR array, whose type stubs share no indexing
