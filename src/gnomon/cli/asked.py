"""What was typed: the options of a command as one object."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.cli.gate import Condition
    from gnomon.cli.run_lines import RunLines

__all__ = ["Asked", "as_one"]

READING = (
    "label",
    "id",
    "features",
    "keep",
    "drop",
    "na",
    "decimal",
    "sheet",
    "layer",
    "use_rep",
    "normalize",
    "text",
    "image",
    "link",
)


@dataclass(frozen=True)
class Asked:
    """Options by their names, as `gnomon.cli.options` has them; a command sets those it has."""

    data: str = "-"
    model: Path = Path()
    out: Path | None = None
    label: str | None = None
    id_: str | None = None
    ids: tuple[str, ...] = ()  # columns that name the rows of two tables
    columns: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    decimal: str | None = None
    sheet: str | None = None
    text: str | None = None
    image: str | None = None
    image_root: Path | None = None
    link: str | None = None
    layer: str | None = None
    use_rep: str | None = None
    normalize: str | None = None
    pixels: str | None = None
    missing: str = "error"
    instead: str | None = None  # of how the model treats missing values
    scale: str = "auto"
    components: str = "0.95"
    perplexity: float | None = None
    metric: str | None = "euclidean"
    dimensions: int = 2
    sample: int | None = None
    seed: int = 0
    threads: int | None = None
    memory: "Budget | None" = None
    dask: str | None = None
    workers: int | None = None
    spool: str | None = None
    replay: bool = False
    title: str | None = None
    stability: int | None = None
    vary: str = "rows"
    page_budget: int | None = None
    show: bool = False
    dry_run: bool = False
    force: bool = False
    quiet: bool = False
    verbose: bool = False
    as_json: bool = False
    # Of two tables, or of a map and its table.
    a: str = "-"
    b: str = "-"
    new: str = "-"
    old: str = "-"
    map: str = "-"
    map_key: str | None = None
    table: str | None = None
    scaling: str = "no"
    robust: str = "no"
    reflection: str = "allow"
    neighbors: int = 10
    permutations: int = 999
    conditions: "tuple[Condition, ...]" = ()
    page: bool = False
    names: tuple[str, str] | None = None  # of A and B, on the page
    rows_file: Path | None = None
    model_file: Path | None = None
    reruns: int = 0
    shuffles: int = 3

    @property
    def words(self) -> "RunLines":
        """What says lines about the run."""
        from gnomon.cli.run_lines import RunLines

        return RunLines(quiet=self.quiet, verbose=self.verbose)

    @property
    def typed(self) -> dict[str, Any]:
        """What was said about columns, for the record of a run."""
        found: dict[str, Any] = {}
        for name in READING:
            value = getattr(self, "id_" if name == "id" else name)
            found[name] = list(value) if isinstance(value, tuple) else value
        return found

    @property
    def reading(self) -> dict[str, Any]:
        """What was said about columns, as `gnomon.data.read` takes it."""
        return {name: value or None for name, value in self.typed.items()}

    @property
    def cluster(self) -> bool:
        """Whether other processes work: on a Dask cluster or on this machine."""
        return self.dask is not None or self.workers is not None

    def beside_workers(self, *inputs: str) -> "Asked":
        """The options with what the libraries of workers leave of the memory allowed.

        `inputs` are tables that workers have to read.
        """
        from gnomon.cli.workers import beside_workers, refuse_for_workers

        refuse_for_workers(self, *inputs)
        return replace(self, memory=beside_workers(self.memory, self.workers))


def as_one(function: Callable[[Asked], None]) -> Callable[..., None]:
    """A command that takes its options as one object."""

    @wraps(function)
    def command(**given: Any) -> None:
        function(Asked(**given))

    return command
