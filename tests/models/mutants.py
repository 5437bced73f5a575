"""Model files changed at random: their bytes, or what they hold, with every checksum right."""

import copy

import numpy as np
import pca.test_pca_schema
import procrustes.test_procrustes_schema
import tsne.test_tsne_schema
from models.forging import put_together, taken_apart
from mutating import mutate

from gnomon.data.preparation import Preparation

SCALARS = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    2**31,
    2**63,
    2**70,
    -(2**70),
    0.5,
    -0.0,
    1e308,
    5e-324,
    "",
    "x",
    "x" * 1000,
    "__class__",
    "\ud800",
    [],
    {},
    [[]],
    {"$float": "nan"},
    {"$float": "inf"},
    {"$number": ["float64", "nan"]},
    {"$number": ["int8", 300]},
    {"$tuple": []},
    {"$tuple": [2, 2]},
    {"$dict": [[1, 2]]},
    {"$names": ["a"]},
    {"$model": "PCA", "state": {}},
    {"$array": "nowhere"},
]
ENTRIES = [
    0,
    -1,
    1,
    2,
    10**6,
    2**31 - 1,
    2**62,
    -(2**62),
    0.5,
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    5e-324,
]
DTYPES = ["f4", "f8", "i4", "i8", "u1", "u4", "?", "f2"]


def bases():
    """Small models of every kind, taken apart, and a run's parts as one file."""
    modules = pca.test_pca_schema, procrustes.test_procrustes_schema, tsne.test_tsne_schema
    of_pca, of_rotation, of_maps = (module.MODELS for module in modules)
    rows = tsne.test_tsne_schema.X[:40]
    small = {"perplexity": 5, "max_iter": 30}
    maps = [
        tsne.test_tsne_schema.TSNE(**small).fit(rows),
        tsne.test_tsne_schema.TSNE(**small, pca=3).fit(rows, ids=np.arange(40)),
        tsne.test_tsne_schema.TSNE(**small, method="exact", metric="manhattan").fit(rows),
        of_maps["distances"]()[0],
        tsne.test_tsne_schema.TSNE(
            **small, align_to=tsne.test_tsne_schema.TSNE(**small).fit(rows[:30])
        ).fit(rows),
    ]
    kinds = ("covariance", "standardised", "filled in", "dataframe", "partial_fit, not solved")
    models = [*(of_pca[name]() for name in kinds), *maps]
    models += [of_rotation[name]() for name in ("plain", "robust", "wider", "partial_fit, solved")]
    ready = Preparation.unlearned(("a",))
    stored = {"plain": ready.to_dict(), "arrays": ready.arrays()}
    models.append({"preparation": stored, "pca": models[0], "tsne": maps[0]})
    return [taken_apart(model) for model in models]


def nodes(value, at=()):
    """Places of everything in a tree of JSON."""
    yield at
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from nodes(value[key], (*at, key))


def find(tree, place):
    for key in place:
        tree = tree[key]
    return tree


def change_content(content, chance):
    """One value of the tree replaced, taken out, put elsewhere, or added."""
    content = copy.deepcopy(content)
    places = list(nodes(content))[1:]
    place = places[int(chance.integers(len(places)))]
    parent, key = find(content, place[:-1]), place[-1]
    kind = int(chance.integers(10))
    if kind == 0:
        del parent[key]
    elif kind == 1:
        parent[key] = copy.deepcopy(find(content, places[int(chance.integers(len(places)))]))
    elif kind == 2 and isinstance(parent, dict):
        parent["more"] = SCALARS[int(chance.integers(len(SCALARS)))]
    elif kind == 3 and isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
        parent[key] += int(chance.choice([-1, 1, 2, 1000, -1000]))
    else:
        parent[key] = copy.deepcopy(SCALARS[int(chance.integers(len(SCALARS)))])
    return content


def change_arrays(arrays, chance):
    """One array with another entry, shape, type or place."""
    name = list(arrays)[int(chance.integers(len(arrays)))]
    array = arrays[name].copy()
    kind = int(chance.integers(10))
    if kind < 5 and array.size:
        entry = ENTRIES[int(chance.integers(len(ENTRIES)))]
        with np.errstate(all="ignore"):
            array.flat[int(chance.integers(array.size))] = np.array(entry).astype(array.dtype)
    elif kind == 5:
        array = array[: int(chance.integers(len(array) + 1))] if array.ndim else array[None]
    elif kind == 6:
        array = np.concatenate([array, array]) if array.ndim else array[None]
    elif kind == 7:
        with np.errstate(all="ignore"):
            array = array.astype(DTYPES[int(chance.integers(len(DTYPES)))])
    elif kind == 8:
        array = array.reshape(-1) if chance.integers(2) else array[..., None]
    else:
        array = arrays[list(arrays)[int(chance.integers(len(arrays)))]]
    return {**arrays, name: np.ascontiguousarray(array)}


def model_mutants(seed, count):
    """`count` names and contents: a third with other bytes, the others forged."""
    known = bases()
    whole = [put_together(*base) for base in known]
    for number in range(count):
        chance = np.random.default_rng([seed, number])
        base = number % len(known)
        content, arrays = known[base]
        for _ in range(int(chance.choice([1, 2], p=[0.8, 0.2]))):
            if chance.integers(2):
                content = change_content(content, chance)
            else:
                arrays = change_arrays(arrays, chance)
        changed = mutate(whole[base], chance) if number % 3 == 0 else put_together(content, arrays)
        yield f"{base}.gnomon", changed
