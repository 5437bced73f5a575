"""What a model file holds of a TSNE: the run as it stands, P, and what new rows are placed by.

A map that was given as `init` is kept as its positions. Of one that was given as `align_to`, the
places and the keys of its rows are kept (`FormerMap`): enough to align to it again, not to place
rows on it. Of a PCA that was given as `pca`, the parameter keeps the number of components; the
model itself is `pca_`. A function that was given as a schedule is kept as the stages that it said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.models.fields import (
    Array,
    Csr,
    DictOf,
    Either,
    Field,
    Fields,
    Flag,
    Member,
    Names,
    Nothing,
    Real,
    RecordOf,
    Sizes,
    Text,
    TupleOf,
    UnfitError,
    Whole,
)
from gnomon.neighbors.search import SearchField
from gnomon.pca import PCA
from gnomon.pca.pca_schema import components_field
from gnomon.tsne.aligned import MapAlignment, Shared
from gnomon.tsne.descent import State, Stop
from gnomon.tsne.left_out import LeftOutRows
from gnomon.tsne.map import MOST_AXES, Map, make_map
from gnomon.tsne.map_certificate import MapCertificate
from gnomon.tsne.novelty import novelty_field
from gnomon.tsne.schedule import MOST_LOWERED, Schedule
from gnomon.tsne.truncation import Truncation
from gnomon.typing import Floats64

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

__all__ = [
    "FIELDS",
    "FormerMap",
    "pack_parameters",
    "restore_map",
    "unpack",
    "unpack_parameters",
]

MOST_NODES = 2**27  # of a mesh; the largest that a descent lays has half as many
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class FormerMap:
    """A map that another one was aligned to, without what placed its rows."""

    embedding_: NDArray[Any] = field(repr=False)
    _keys: NDArray[Any] = field(repr=False)


class Keys(Field):
    """What rows are recognised by: two hashes, or ids of any kind."""

    def __init__(self, rows: str) -> None:
        self.hashes, self.rows = Array("u8", rows, 2), rows

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """One for each row."""
        if getattr(value, "ndim", 0) == 2:
            return self.hashes.unpack(value, sizes)
        return Array("b i u f U m M", self.rows, nan=True).unpack(value, sizes)


class MapField(Field):
    """The map that new rows are placed on: what it holds beside the other attributes."""

    def pack(self, value: Any) -> Any:
        """Two numbers."""
        return {"dof": value.dof, "spacing": value.spacing}

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """The stored values; `restore_map` makes a map of them."""
        return Fields({"dof": Real(1e-6, 1e6), "spacing": Real(TINY, 1e30)}).unpack(value, sizes)


class PCAField(Field):
    """A PCA of this table's columns, to as many as the named size `components` is."""

    def __init__(self, components: str) -> None:
        self.components = Array("f4 f8", components, "d")

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """A fitted one."""
        if not isinstance(value, PCA) or "components_" not in vars(value):
            raise UnfitError("should be a fitted PCA")
        self.components.unpack(value.components_, sizes)
        return value


class FormerAuxiliary(PCAField):
    """The components of a PCA: drafts of format 3 held the whole of it."""

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """The components alone."""
        return super().unpack(value, sizes)._model()


class MeshCells(Field):
    """Sizes of the meshes, by their spacing."""

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """None larger than a descent would lay."""
        if not isinstance(value, dict):
            raise UnfitError("should be a table of sizes")
        for spacing, cells in value.items():
            Real(TINY, 1e30).unpack(spacing, sizes)
            if not isinstance(cells, tuple) or len(cells) != sizes["axes"]:
                raise UnfitError("should be a size for each axis")
            for count in cells:
                Whole(1, MOST_NODES).unpack(count, sizes)
            if np.prod([2.0 * count for count in cells]) > MOST_NODES:
                raise UnfitError("should fit into memory")
        return value


def _check_run(state: State) -> None:
    """The mesh's loops trust the bounds, and renumbering trusts the order."""
    if not np.array_equal(np.sort(state.order), np.arange(len(state.order))):
        raise UnfitError("its run has an order that is none")
    inside = (state.Y.min(axis=0) >= state.low) & (state.Y.max(axis=0) <= state.high)
    if not inside.all() or state.Y.dtype != state.velocity.dtype:
        raise UnfitError("its run has points outside of its bounds")


WIDEST = 1e18  # of a map: squares of its distances must exist in float32
POINTS = Array("f4 f8", "n", "axes", low=-WIDEST, high=WIDEST)
RUN = RecordOf(
    State,
    {
        "iteration": Whole(),
        "Y": POINTS,
        "velocity": POINTS,
        "order": Array("i8", "n"),
        "low": Array("f8", "axes", low=-WIDEST),
        "high": Array("f8", "axes", high=WIDEST),
        "lowered": Whole(0, MOST_LOWERED),
        "rested": Whole(),
        "kl": Real(),
        "objective": Real(),
        "best_objective": Real(),
        "best_iteration": Whole(),
        "ended": Either.none_or(Member(Stop)),
    },
    without=("forces",),
    check=_check_run,
)


def _check_schedule(schedule: Schedule) -> None:
    """Steps are divided by the exaggeration."""
    for stages, low, high in (
        (schedule.exaggeration_stages, TINY, np.inf),
        (schedule.momentum_stages, 0.0, 1.0),
    ):
        if stages is None:
            continue
        starts, values = stages.T
        ascending = starts.size > 0 and starts[0] == 0 and (np.diff(starts) > 0).all()
        if not ascending or values.min() < low or values.max() > high:
            raise UnfitError("its schedule has stages that are none")


SCHEDULE = RecordOf(
    Schedule,
    {
        "mass": Real(1.0, 1e300),
        "early_exaggeration": Real(TINY, 1e300),
        "exaggeration": Real(TINY, 1e300),
        "learning_rate": Either.none_or(Real(TINY, 1e300)),
        "early_iter": Whole(),
        "anneal_iter": Whole(),
        "momentum": Real(0.0, 1.0),
        "tolerance": Real(0.0, 1.0),
        "usual_iter": Whole(),
        "n_iter_without_progress": Whole(),
        "min_grad_norm": Real(),
        "exaggeration_stages": Either.none_or(
            Array("f8", "exaggeration_stages", 2, finite=True, low=0.0)
        ),
        "momentum_stages": Either.none_or(Array("f8", "momentum_stages", 2, finite=True, low=0.0)),
    },
    check=_check_schedule,
)
SHARED = RecordOf(
    Shared,
    {
        "new": Array("i8", "shared", low=0),
        "old": Array("i8", "shared", low=0),
        "places": Array("f4 f8", "shared", "axes", finite=True),
    },
)
ALIGNMENT = RecordOf(
    MapAlignment,
    {
        "shared": Whole(),
        "only_new": Whole(),
        "only_former": Whole(),
        "rotation": Array("f8", "axes", "axes"),
        "scale": Real(),
        "reflected": Flag(),
        "movement": Real(),
        "movement_unaligned": Real(),
    },
)
CERTIFICATE = RecordOf(
    MapCertificate,
    {
        "kl_divergence": Real(),
        "exact_kl": Either.none_or(Real()),
        "exact_kl_error": Real(),
        "exact_kl_rows": Whole(),
        "force_error": Real(),
        "sampled": Whole(),
        "recall": Real(),
        "probed": Whole(),
        "neighbors": Text(),
        "repulsion": Text(),
        "coarsened": Flag(),
        "n_iter": Whole(),
        "stop_reason": Text(),
        "reduced": Text(),
    },
)
TRUNCATION = RecordOf(
    Truncation,
    {
        "rows": Array("i8", "compared", low=0),
        "entropy": Array("f8", "compared"),
        "change": Csr("compared", "n"),
        "share": Real(0.0, 1.0),
    },
)

LEFT_OUT = RecordOf(
    LeftOutRows,
    {
        "fitted": Array("i8", "n", low=0),
        "indices": Array("i4", "left_out", "near", low=0),
        "distances": Array("f8", "left_out", "near", finite=True, low=0.0),
    },
)
AUXILIARY = Either((Nothing(), FormerAuxiliary("auxiliary"), components_field("auxiliary", "d")))

FIELDS = Fields(
    {
        "n_features_in_": Whole(1, size="d"),
        "feature_names_in_": Names("d"),
        "embedding_": Array("f4 f8", "rows", "axes", low=-WIDEST, high=WIDEST),
        "_n_features_out": Whole(1, size="axes"),
        "kl_divergence_": Real(),
        "n_iter_": Whole(),
        "stop_reason_": Text(),
        "learning_rate_": Real(),
        "timings_": DictOf(Real()),
        "affinities_": Csr("n"),
        "certificate_": CERTIFICATE,
        "alignment_": Either.none_or(ALIGNMENT),
        "pca_": Either.none_or(PCAField("reduced")),
        "_reduced": Text(),
        "_search": Either.none_or(SearchField("n", "reduced")),
        "_found": TupleOf((Text(), Real(0.0, 1.0), Whole())),
        "_typical": Either.none_or(Array("f8", "n", finite=False)),
        "_novelty": Either.none_or(novelty_field(AUXILIARY)),
        "_map": Either.none_or(MapField()),
        "_truncation": Either.none_or(TRUNCATION),
        "_sample_weight": Either.none_or(Array("f8", "n", finite=True, low=1.0)),
        "_keys": Keys("rows"),
        "_left_out": Either.none_or(LEFT_OUT),
        "_shared": Either.none_or(SHARED),
        "_seed": Whole(0, 2**31),
        "_schedule": SCHEDULE,
        "_mesh_cells": MeshCells(),
        "_state": RUN,
        "_stop": Member(Stop),
        "_run": Text(),
    }
)
FORMER = Fields(
    {"embedding": Array("f4 f8", "former", "axes", finite=True), "keys": Keys("former")}
)


def pack_parameters(model: "TSNE") -> dict[str, Any]:
    """The parameters that may be fitted models or functions, as a file holds them."""
    former, align_to = None, model.align_to
    if align_to is not None:
        former = {"embedding": align_to.embedding_, "keys": align_to._keys}
    schedule = model._schedule
    return {
        "init": getattr(model.init, "embedding_", model.init),
        "align_to": former,
        "pca": getattr(model.pca, "n_components_", model.pca),
        "exaggeration": _as_stages(model.exaggeration, schedule.exaggeration_stages),
        "momentum": _as_stages(model.momentum, schedule.momentum_stages),
    }


def _as_stages(value: Any, stages: Floats64 | None) -> Any:
    """A schedule as plain numbers: a function as the stages that it said."""
    if stages is None or not (callable(value) or isinstance(value, (list, tuple))):
        return value
    lengths = [*np.diff(stages[:, 0]).astype(int).tolist(), 1]
    return [list(stage) for stage in zip(lengths, stages[:, 1].tolist(), strict=True)]


def unpack_parameters(parameters: Any) -> Any:
    """Parameters in the form that `TSNE` takes."""
    former = parameters.get("align_to") if isinstance(parameters, dict) else None
    if former is None:
        return parameters
    found = FORMER.unpack(former, {})
    return {**parameters, "align_to": FormerMap(found["embedding"], found["keys"])}


def unpack(attributes: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The fitted attributes, checked against each other and against the parameters."""
    sizes: Sizes = {}
    if isinstance(attributes, dict) and attributes.get("pca_") is None:
        sizes["reduced"] = attributes.get("n_features_in_", 0)
    optional = frozenset({"feature_names_in_", "_typical", "_novelty", "_left_out"})
    found = FIELDS.unpack(attributes, sizes, optional=optional)
    _check_rows_of_fit(found.setdefault("_left_out", None), sizes)
    if parameters.get("n_components") != sizes["axes"]:
        raise UnfitError("its map has another number of dimensions than n_components says")
    _check_ways_to_place(found, parameters)
    truncation = found["_truncation"]
    if truncation is not None and truncation.rows.max(initial=0) >= sizes["n"]:
        raise UnfitError("its map compares rows that are not there")
    shared, former = found["_shared"], parameters.get("align_to")
    if (shared is None) != (former is None):
        raise UnfitError("its map is aligned to nothing")
    if shared is not None and (
        shared.new.max(initial=0) >= sizes["n"]
        or shared.old.max(initial=0) >= len(former.embedding_)  # type: ignore[union-attr]
    ):
        raise UnfitError("its map shares rows that are not there")
    exact = parameters.get("method") == "exact"
    if (found["_state"].Y.dtype == np.float64) != exact:
        raise UnfitError("its run is of another precision than its method")
    return found


def restore_map(model: "TSNE") -> Map | None:
    """The map of a model that was just loaded."""
    stored: Any = model._map
    if stored is None:
        return None
    places, left_out = model.embedding_, model._left_out
    places = places if left_out is None else places[left_out.fitted]
    return make_map(model, places, stored["dof"], stored["spacing"])


def _check_rows_of_fit(left_out: LeftOutRows | None, sizes: Sizes) -> None:
    """All rows are those of the fit and those that were left out, which have rows near them."""
    if left_out is None:
        if sizes["rows"] != sizes["n"]:
            raise UnfitError("its map has other rows than its run")
        return
    fitted = left_out.fitted
    if sizes["rows"] != sizes["n"] + sizes["left_out"] or (np.diff(fitted) <= 0).any():
        raise UnfitError("its map left out rows that are not there")
    if fitted.max(initial=0) >= sizes["rows"]:
        raise UnfitError("its map was made of rows that are not there")
    if sizes["near"] < 1 or left_out.indices.max(initial=0) >= sizes["n"]:
        raise UnfitError("its map places rows by rows that are not there")


def _check_ways_to_place(found: dict[str, Any], parameters: Mapping[str, Any]) -> None:
    """New rows need distances: from a search, or given by the user."""
    if parameters.get("affinity") == "precomputed":
        found |= {"_typical": None, "_novelty": None, "_map": None}
        return
    judge = found.get("_novelty")
    placeless = found["_state"].Y.shape[1] > MOST_AXES
    if judge is None or found.get("_typical") is None or (found["_map"] is None) != placeless:
        raise UnfitError("its map cannot place new rows")
    if judge.residual_limit is not None and found["pca_"] is None and judge.auxiliary is None:
        raise UnfitError("its map has no components to measure residuals by")
    if (found["_search"] is None) != (parameters.get("metric") == "precomputed"):
        raise UnfitError("its map has no rows to search in")
