"""Time ours against peers in alternating runs, on a machine that may not be quiet.

1. Everybody runs once untimed: kernels compile, libraries start their threads, pages are mapped.
2. A pair is one run of ours and one of each peer. Who goes first alternates from pair to pair.
3. One fixed matrix product is timed before and after each pair. Where it moved by more than
   `NOISE`-fold somebody else was using the machine: the pair is discarded, counted, and run again,
   up to `ATTEMPTS` times as many pairs as wanted.
4. The ratio of a pair is the fastest peer's time over ours. The ratio of a row is the median of
   these, its spread their quartiles: a slow minute then hits both sides of a ratio.
"""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PAIRS = 7
PAIRS_WHEN_LONG = 3
LONG_SECONDS = 30.0
NOISE = 1.5
ATTEMPTS = 3
# OpenMP workers spin after their work and would slow whoever runs next; they sleep by then.
SETTLE_SECONDS = 0.2

Run = Callable[[], object]


@dataclass
class Timing:
    """The pairs of one row.

    Attributes
    ----------
    ours
        Name of our run.
    seconds
        Times of each run, one for every kept pair.
    discarded
        How many pairs the reference product spoilt.
    wanted
        How many pairs were asked for; fewer are kept when the machine is never quiet.
    products
        The reference product before and after every pair, in seconds, discarded pairs included.
    """

    ours: str
    seconds: dict[str, list[float]]
    discarded: int = 0
    wanted: int = PAIRS
    products: list[tuple[float, float]] = field(default_factory=list)

    @property
    def peers(self) -> list[str]:
        """Names of the peers."""
        return [name for name in self.seconds if name != self.ours]

    @property
    def ratios(self) -> list[float]:
        """For every kept pair, the fastest peer's time over ours."""
        columns = (self.seconds[name] for name in self.peers)
        fastest = (min(times) for times in zip(*columns, strict=True))
        return [peer / ours for peer, ours in zip(fastest, self.seconds[self.ours], strict=True)]

    @property
    def ratio(self) -> float:
        """Median of the pairwise ratios; NaN when no pair was kept."""
        return float(np.median(self.ratios)) if self.ratios else float("nan")

    @property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile of the pairwise ratios."""
        if not self.ratios:
            return float("nan"), float("nan")
        low, high = np.percentile(self.ratios, [25, 75])
        return float(low), float(high)

    def median_seconds(self, name: str) -> float:
        """Median time of one run."""
        return float(np.median(self.seconds[name])) if self.seconds[name] else float("nan")

    @property
    def fastest_peer(self) -> str:
        """The peer with the lowest median time."""
        return min(self.peers, key=self.median_seconds)

    def to_dict(self) -> dict[str, Any]:
        """Raw times and what is read from them, as JSON can hold them."""
        return {
            "seconds": self.seconds,
            "ratios": self.ratios,
            "ratio": self.ratio,
            "quartiles": list(self.quartiles),
            "pairs_wanted": self.wanted,
            "pairs_discarded": self.discarded,
            "reference_product_seconds": [list(pair) for pair in self.products],
        }


def reference_product(size: int = 1000) -> Callable[[], object]:
    """One fixed float32 matrix product, 2·size³ operations: the yardstick of a quiet machine."""
    generator = np.random.default_rng(0)
    A = generator.standard_normal((size, size), dtype=np.float32)
    out = np.empty_like(A)
    return lambda: np.matmul(A, A, out=out)


def time_pairs(
    ours: tuple[str, Run],
    peers: Mapping[str, Run],
    *,
    pairs: int | None = None,
    product: Run | None = None,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> Timing:
    """Time alternating runs; the warm-up runs are the caller's, who needs their results.

    Parameters
    ----------
    ours, peers
        Names, and functions of no arguments that do the whole work once.
    pairs
        Pairs to keep. None: 7, or 3 when a run takes more than half a minute.
    product
        The reference work timed around each pair; None: `reference_product()`.
    clock, sleep
        Replaced in tests.
    """
    if not peers:
        raise ValueError("`peers` must hold at least one run to compare with; got none.")
    runs = {ours[0]: ours[1], **peers}
    product = product or reference_product()
    timing = Timing(ours[0], {name: [] for name in runs}, wanted=pairs or PAIRS)
    attempt = 0
    while len(timing.ratios) < timing.wanted and attempt < ATTEMPTS * timing.wanted:
        order = list(runs) if attempt % 2 == 0 else list(runs)[::-1]
        attempt += 1
        before = _time_product(product, clock, sleep)
        seconds = {name: _time_run(runs[name], clock, sleep) for name in order}
        after = _time_product(product, clock, sleep)
        timing.products.append((before, after))
        if max(before, after) > NOISE * min(before, after):
            timing.discarded += 1
        else:
            for name, taken in seconds.items():
                timing.seconds[name].append(taken)
        if pairs is None and max(seconds.values()) > LONG_SECONDS:
            timing.wanted = PAIRS_WHEN_LONG
    return timing


def _time_run(run: Run, clock: Callable[[], float], sleep: Callable[[float], None]) -> float:
    gc.collect()  # nobody pays for collecting what another run left behind
    sleep(SETTLE_SECONDS)
    start = clock()
    result = run()
    taken = clock() - start
    del result  # after the clock: giving memory back is not part of a fit
    return taken


def _time_product(
    product: Run, clock: Callable[[], float], sleep: Callable[[float], None]
) -> float:
    """Best of three: the first one may wake threads up."""
    sleep(SETTLE_SECONDS)
    best = float("inf")
    for _ in range(3):
        start = clock()
        product()
        best = min(best, clock() - start)
    return best
