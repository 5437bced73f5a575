"""Saved, loaded, and compared to the last bit."""

import dataclasses
import io

import numpy as np
import scipy.sparse as sp

from gnomon.models.file import read_model, save


def there_and_back(model, tmp_path, name="m.gnomon"):
    path = tmp_path / name
    save(model, path, force=True)
    with path.open("rb") as file:
        return read_model(io.BytesIO(file.read()), str(path))


def assert_same(a, b, at="model"):
    """Equal in type, shape, memory order and bits, attribute by attribute."""
    assert type(a) is type(b), (at, type(a), type(b))
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, at
        assert a.shape == b.shape, at
        assert a.flags.f_contiguous == b.flags.f_contiguous, at
        same = a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
        assert same, at
    elif sp.issparse(a):
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part), f"{at}.{part}")
    elif isinstance(a, dict):
        assert list(a) == list(b), at
        for key in a:
            assert_same(a[key], b[key], f"{at}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), at
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{at}[{i}]")
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            name = field.name
            assert_same(getattr(a, name), getattr(b, name), f"{at}.{name}")
    elif isinstance(a, float):
        assert a == b or (np.isnan(a) and np.isnan(b)), at
    elif isinstance(a, (np.random.Generator, np.random.RandomState)):
        assert a.random(5).tolist() == b.random(5).tolist(), at
    elif hasattr(a, "__dict__") and type(a).__module__.startswith("gnomon."):
        mine, yours = vars(a), vars(b)
        assert mine.keys() == yours.keys(), (at, mine.keys() ^ yours.keys())
        for key in mine:
            if key not in ("_index", "_field", "_known"):  # made when they are needed
                assert_same(mine[key], yours[key], f"{at}.{key}")
    else:
        assert a == b, at
