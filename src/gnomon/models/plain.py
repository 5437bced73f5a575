"""Conversion of values to JSON with named arrays, and back, bit for bit.

JSON has no arrays, tuples, infinities, NumPy numbers or models: each is an object with
one key that begins with "$". Numbers in arrays are never converted to text. Arrays in Fortran
order keep their order, since products may round differently in another; an array that is
referenced twice is stored once.
"""

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataTypeError
from gnomon.models.fields import UnfitError
from gnomon.models.registry import class_named, name_of

__all__ = ["Packed", "pack", "unpack_value"]

DTYPES = frozenset(
    [
        "bool",
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
        "float16",
        "float32",
        "float64",
    ]
)
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "SFC64")
DATES = re.compile(r"(datetime|timedelta)64\[(Y|M|W|D|h|m|s|ms|us|ns)\]")
LARGEST_CODE = 0x10FFFF  # largest code point of a character
MOST_LEVELS = 50  # deepest nesting of values; ours have about ten levels

Arrays = dict[str, NDArray[Any]]


class Packed:
    """Arrays by name, collected while values are converted to JSON."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._seen: dict[int, tuple[str, Any]] = {}  # keeps the object alive: ids are reused

    def add(self, array: NDArray[Any], at: str) -> str:
        """Add an array under its path in the tree; the same object only once."""
        if id(array) not in self._seen:
            self._seen[id(array)] = at, array
            values = array.T if _is_fortran(array) else array
            little = values.dtype.newbyteorder("<")
            self.arrays[at] = np.ascontiguousarray(values, little).reshape(values.shape)
        return self._seen[id(array)][0]


def _is_fortran(array: NDArray[Any]) -> bool:
    return array.flags.f_contiguous and not array.flags.c_contiguous


def pack(value: Any, packed: Packed, at: str = "") -> Any:
    """Convert `value` to JSON; its arrays go into `packed`. `at` is its path."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic):
        return _pack_scalar(value, at)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, packed, at)
    if isinstance(value, (list, tuple)):
        items = [pack(item, packed, f"{at}/{i}") for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, dict):
        return _pack_dict(value, packed, at)
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return _pack_generator(value, packed, at)
    name = name_of(value)
    if name is not None:
        return {"$model": name, "state": pack(value._to_state(), packed, at)}
    if hasattr(value, "__array__"):  # a column of a dataframe
        return _pack_array(np.asarray(value), packed, at)
    raise _unstorable(f"a {type(value).__name__}", at)


def _pack_scalar(value: np.generic, at: str) -> Any:
    if value.dtype.name not in DTYPES:
        raise _unstorable(f"a NumPy {value.dtype.name}", at)
    plain = value.item()
    if isinstance(plain, float) and not math.isfinite(plain):
        plain = str(plain)
    return {"$number": [value.dtype.name, plain]}


def _pack_array(array: NDArray[Any], packed: Packed, at: str) -> Any:
    kind = array.dtype.kind
    if array.dtype.name in DTYPES:
        node: dict[str, Any] = {"$array": packed.add(array, at)}
        return {**node, "order": "F"} if _is_fortran(array) else node
    if kind == "U" and array.dtype.itemsize:
        codes = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        codes = codes.view("<u4").reshape(*array.shape, array.dtype.itemsize // 4)
        return {"$text": packed.add(codes, at)}
    if kind in "mM" and DATES.fullmatch(array.dtype.name):
        ticks = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).view("<i8")
        return {"$dates": packed.add(ticks, at), "dtype": array.dtype.name}
    if kind == "O" and all(isinstance(item, str) for item in array.flat) and array.ndim == 1:
        return {"$names": array.tolist()}
    raise _unstorable(f"an array of dtype {array.dtype}", at)


def _pack_dict(value: dict[Any, Any], packed: Packed, at: str) -> Any:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: pack(item, packed, f"{at}/{key}".strip("/")) for key, item in value.items()}
    return {
        "$dict": [
            [pack(key, packed, f"{at}/key{i}"), pack(item, packed, f"{at}/item{i}")]
            for i, (key, item) in enumerate(value.items())
        ]
    }


def _pack_generator(value: Any, packed: Packed, at: str) -> Any:
    legacy = isinstance(value, np.random.RandomState)
    state = value.get_state(legacy=False) if legacy else value.bit_generator.state
    if state["bit_generator"] not in GENERATORS:
        raise _unstorable(f"the generator {state['bit_generator']}", at)
    return {"$generator": pack(state, packed, at), "legacy": legacy}


def _unstorable(what: str, at: str) -> DataTypeError:
    return DataTypeError(
        f"A model file holds numbers, text and arrays of them; `{at}` is {what}. Replace it by "
        "plain values with `set_params`."
    )


def unpack_value(node: Any, arrays: Arrays, depth: int = 0) -> Any:
    """Restore the value that `pack` converted; UnfitError for anything that `pack` never writes."""
    if depth > MOST_LEVELS:
        raise UnfitError("it is nested too deeply")
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if isinstance(node, list):
        return [unpack_value(item, arrays, depth + 1) for item in node]
    special = [key for key in node if key.startswith("$")]
    if not special:
        return {key: unpack_value(item, arrays, depth + 1) for key, item in node.items()}
    if len(special) > 1 or special[0] not in _READERS:
        raise UnfitError(f"it holds an unknown kind of value, {special[0][:40]!r}")
    return _READERS[special[0]](node, arrays, depth + 1)


def _array(node: Any, arrays: Arrays, _: int) -> NDArray[Any]:
    array = _named(node["$array"], arrays)
    return array.T if node.get("order") == "F" else array


def _named(name: Any, arrays: Arrays) -> NDArray[Any]:
    if not isinstance(name, str) or name not in arrays:
        raise UnfitError(f"it names an array that is missing, {str(name)[:80]!r}")
    return arrays[name]


def _text(node: Any, arrays: Arrays, _: int) -> NDArray[Any]:
    codes = _named(node["$text"], arrays)
    if codes.dtype != np.uint32 or codes.ndim < 1 or not codes.shape[-1]:
        raise UnfitError("its text is not made of characters")
    if codes.max(initial=0) > LARGEST_CODE:
        raise UnfitError("its text holds characters that do not exist")
    joined = np.ascontiguousarray(codes).view(f"<U{codes.shape[-1]}")
    return joined.reshape(codes.shape[:-1])


def _dates(node: Any, arrays: Arrays, _: int) -> NDArray[Any]:
    ticks, dtype = _named(node["$dates"], arrays), node.get("dtype")
    if ticks.dtype != np.int64 or not isinstance(dtype, str) or not DATES.fullmatch(dtype):
        raise UnfitError("its dates are not dates")
    return ticks.view(dtype)


def _names(node: Any, _: Arrays, __: int) -> NDArray[Any]:
    names = node["$names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnfitError("its names are not text")
    found = np.empty(len(names), object)
    found[:] = names
    return found


def _number(node: Any, _: Arrays, __: int) -> Any:
    pair = node["$number"]
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
        raise UnfitError("it holds a number without a type")
    if pair[0] not in DTYPES or isinstance(pair[1], (list, dict)):
        raise UnfitError("it holds a number of an unknown type")
    try:
        return np.dtype(pair[0]).type(pair[1])
    except (TypeError, ValueError, OverflowError):
        raise UnfitError(f"it holds a number that is not a {pair[0]}") from None


def _float(node: Any, _: Arrays, __: int) -> float:
    if node["$float"] not in ("inf", "-inf", "nan"):
        raise UnfitError("it holds an invalid number")
    return float(node["$float"])


def _tuple(node: Any, arrays: Arrays, depth: int) -> tuple[Any, ...]:
    if not isinstance(node["$tuple"], list):
        raise UnfitError("it holds a tuple that is not a list")
    return tuple(unpack_value(item, arrays, depth) for item in node["$tuple"])


def _dict(node: Any, arrays: Arrays, depth: int) -> dict[Any, Any]:
    try:
        pairs = [(key, item) for key, item in node["$dict"]]
        return {
            unpack_value(key, arrays, depth): unpack_value(item, arrays, depth)
            for key, item in pairs
        }
    except (TypeError, ValueError):
        raise UnfitError("it holds an invalid dictionary") from None


def _generator(node: Any, arrays: Arrays, depth: int) -> Any:
    state = unpack_value(node["$generator"], arrays, depth)
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if name not in GENERATORS:
        raise UnfitError("its random generator is unknown")
    source = getattr(np.random, name)(0)
    try:
        source.state = state
        position = state["state"].get("pos", 0) if name == "MT19937" else 0
        if not 0 <= int(position) <= 624:  # NumPy would read out of bounds
            raise ValueError
        if node.get("legacy"):
            legacy = np.random.RandomState(source)
            legacy.set_state(state)
            return legacy
    except (TypeError, LookupError, ValueError, AttributeError, OverflowError):
        raise UnfitError("the state of its random generator is invalid") from None
    return np.random.Generator(source)


def _model(node: Any, arrays: Arrays, depth: int) -> Any:
    name = node["$model"]
    kind = class_named(name) if isinstance(name, str) else None
    if kind is None:
        raise UnfitError(f"it holds a {str(name)[:40]!r}, which this version cannot load")
    state = unpack_value(node.get("state"), arrays, depth)
    if not isinstance(state, dict):
        raise UnfitError(f"the state of its {name} is invalid")
    return kind._from_state(state)


_READERS = {
    "$array": _array,
    "$text": _text,
    "$dates": _dates,
    "$names": _names,
    "$number": _number,
    "$float": _float,
    "$tuple": _tuple,
    "$dict": _dict,
    "$generator": _generator,
    "$model": _model,
}
