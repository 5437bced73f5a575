"""The whole job, top to bottom: a table in, components and their certificate out.

This is the flow of ARCHITECTURE.md as far as it is built. The command line calls `run`; each step
is an estimator or function that can be used alone.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from gnomon.data.prepare import choose_scale
from gnomon.data.samples import Sample
from gnomon.pca import PCA

__all__ = ["Result", "run"]


@dataclass(frozen=True)
class Result:
    """What a run found.

    Attributes
    ----------
    table : Sample
        What was read.
    pca : PCA
        The fitted model.
    scores : array (n, k)
        The rows in the components' frame.
    seconds : dict
        Time of each stage.
    """

    table: Sample
    pca: PCA
    scores: NDArray[Any]
    seconds: dict[str, float]


def run(
    table: Sample,
    *,
    n_components: Any = None,
    standardize: bool | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    told: Callable[[str, float, Any], None] = lambda stage, seconds, what: None,
) -> Result:
    """Run every stage on `table`, telling `told(stage, seconds, what)` as each one ends.

    Parameters
    ----------
    table : Sample
        From `gnomon.samples.load`.
    n_components, seed, n_jobs
        As in `PCA`.
    standardize : bool, optional
        None lets `gnomon.data.prepare.choose_scale` decide.
    """
    seconds: dict[str, float] = {}

    def stage(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - start
        told(name, seconds[name], result)
        return result

    scale = stage("scale", lambda: choose_scale(table.X, standardize))
    pca = PCA(n_components, standardize=scale.standardize, random_state=seed, n_jobs=n_jobs)
    stage("pca", lambda: pca.fit(table.X))
    scores = stage("scores", lambda: pca.transform(table.X))
    return Result(table, pca, scores, seconds)
