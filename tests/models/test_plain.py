import json

import numpy as np
import pytest
from models.same import assert_same

from gnomon.errors import DataTypeError
from gnomon.models.fields import UnfitError
from gnomon.models.plain import Packed, pack, unpack_value

RNG = np.random.default_rng(0)


def there_and_back(value):
    packed = Packed()
    node = json.loads(json.dumps(pack(value, packed), allow_nan=False))
    return unpack_value(node, packed.arrays)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**70),
        0.1,
        -0.0,
        5e-324,
        float("inf"),
        float("-inf"),
        float("nan"),
        "",
        "☃ \x00 \u2028 \ud800",
        [],
        (),
        {},
        [1, (2, [3.5])],
        {"a": {"b": (None,)}},
        {1.5: (2, 3), "x": 1},
        {"$array": "not one"},
        np.float32(0.1),
        np.int64(7),
        np.True_,
        np.float64("nan"),
        np.uint64(2**64 - 1),
    ],
    ids=repr,
)
def test_values_come_back_as_they_were(value):
    assert_same({"v": there_and_back(value)}, {"v": value})


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (4, 5), (0, 3), (2, 3, 4)])
def test_arrays_come_back_bit_for_bit(dtype, shape):
    array = np.frombuffer(RNG.bytes(8 * 24), np.uint8)[: np.prod(shape, dtype=int)]
    array = array.astype(dtype).reshape(shape)
    assert_same(there_and_back(array), array)


def test_orders_of_memory_are_kept_and_strides_and_bytes_put_in_order():
    array = np.arange(12.0).reshape(3, 4)
    assert_same(there_and_back(np.asfortranarray(array)), np.asfortranarray(array))
    assert_same(there_and_back(array[:, ::2]), np.ascontiguousarray(array[:, ::2]))
    assert_same(there_and_back(array.astype(">f8")), array)


def test_an_array_that_stands_in_two_places_is_stored_once():
    array, packed = np.arange(5.0), Packed()
    node = pack({"a": array, "b": [array], "c": array.copy()}, packed)
    assert len(packed.arrays) == 2
    back = unpack_value(node, packed.arrays)
    assert back["a"] is back["b"][0]


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "", "ÿ☃"]),
        np.array([["x"], ["yy"]]),
        np.array(["α", "β"], object),
        np.arange(3).astype("datetime64[ns]"),
        np.array(["NaT", "2020-01-01"], "datetime64[D]"),
        np.arange(3).astype("timedelta64[s]"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_text_and_dates_come_back(array):
    assert_same(there_and_back(array), array)


@pytest.mark.parametrize("source", ["PCG64", "PCG64DXSM", "MT19937", "SFC64"])
def test_generators_go_on_where_they_were(source):
    generator = np.random.Generator(getattr(np.random, source)(3))
    generator.integers(5, size=7, dtype=np.int32)  # half a number is kept back
    assert_same(there_and_back(generator), generator)


def test_the_old_generator_goes_on_where_it_was():
    generator = np.random.RandomState(3)
    generator.standard_normal(3)  # one of a pair is kept back
    back = there_and_back(generator)
    assert back.standard_normal(5).tolist() == generator.standard_normal(5).tolist()


@pytest.mark.parametrize(
    "value",
    [
        lambda: 1,
        object(),
        {1, 2},
        b"bytes",
        1j,
        np.array([1j]),
        np.array([object()]),
        np.array([b"x"]),
        np.zeros(2, "f4,i4"),
        range(3),
        type,
        np.random.Generator(np.random.Philox(1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_is_refused_and_placed(value):
    with pytest.raises(DataTypeError, match=r"`p/metric` is .*set_params"):
        pack({"p": {"metric": value}}, Packed())


NONSENSE = {
    "unknown kind": {"$eval": "1"},
    "two kinds": {"$tuple": [], "$float": "inf"},
    "array that is not there": {"$array": "b"},
    "array without a name": {"$array": ["a"]},
    "text of floats": {"$text": "a"},
    "dates of floats": {"$dates": "a", "dtype": "datetime64[ns]"},
    "dates of another kind": {"$dates": "i", "dtype": "O"},
    "names that are numbers": {"$names": [1]},
    "number of another type": {"$number": ["object", 1]},
    "number that is a list": {"$number": ["int64", [1]]},
    "number without a type": {"$number": 1},
    "integer too large": {"$number": ["int8", 1000]},
    "float that is code": {"$float": "__import__('os')"},
    "tuple that is text": {"$tuple": "abc"},
    "dictionary that is text": {"$dict": "ab"},
    "dictionary with lists as keys": {"$dict": [[[1], 2]]},
    "unknown generator": {"$generator": {"bit_generator": "os"}},
    "generator without a state": {"$generator": {"bit_generator": "PCG64"}},
    "generator that is text": {"$generator": "PCG64"},
    "unknown class": {"$model": "os.system", "state": {}},
    "class by its path": {"$model": "gnomon.pca.PCA", "state": {}},
    "class that is a list": {"$model": ["PCA"], "state": {}},
    "model without a state": {"$model": "PCA"},
    "model with a list": {"$model": "PCA", "state": [1]},
    "model with an empty state": {"$model": "PCA", "state": {}},
}


@pytest.mark.parametrize("name", NONSENSE)
def test_what_nobody_writes_is_refused(name):
    arrays = {"a": np.zeros(3), "i": np.zeros(3, np.int64)}
    with pytest.raises(UnfitError):
        unpack_value(NONSENSE[name], arrays)


def test_a_generator_that_would_read_beyond_its_numbers_is_refused():
    state = np.random.MT19937(0).state
    for position in (-1, 625, 10**6):
        packed = Packed()
        state["state"]["pos"] = position
        node = {"$generator": pack(state, packed), "legacy": False}
        with pytest.raises(UnfitError, match="generator"):
            unpack_value(node, packed.arrays)


def test_text_beyond_the_last_character_is_refused():
    with pytest.raises(UnfitError, match="do not exist"):
        unpack_value({"$text": "t"}, {"t": np.array([[0x110000]], np.uint32)})


def test_depths_without_end_are_refused():
    node = []
    for _ in range(200):
        node = [node]
    with pytest.raises(UnfitError, match="nested"):
        unpack_value(node, {})
