"""Run benchmarks: ``python -m benchmarks [--data DIR] [--only ROW] [NAME ...]``."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.environment import BenchmarkError, Settings, describe, hold_threads
from benchmarks.record import Record, former_results, refuse_to_mix

# Modules by name: NumPy must not be imported before `hold_threads` has set its thread count.
QUESTIONS = {
    "pca": "benchmarks.pca",
    "crossovers": "benchmarks.crossovers",
    "part_rows": "benchmarks.part_rows",
    "outofcore": "benchmarks.outofcore",
    "workers": "benchmarks.workers",
    "procrustes": "benchmarks.procrustes",
    "comparison": "benchmarks.comparison",
    "scores": "benchmarks.scores",
    "audit": "benchmarks.audit",
    "tsne": "benchmarks.tsne",
    "map_quality": "benchmarks.map_quality",
    "staying": "benchmarks.staying",
    "sampled": "benchmarks.sampled",
    "foreign": "benchmarks.foreign",
    "page": "benchmarks.page",
    "page_cost": "benchmarks.page_cost",
    "map_cost": "benchmarks.map_cost",
    "startup": "benchmarks.startup",
    "command": "benchmarks.command",
}
RESULTS = Path(__file__).parent / "results"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"any of: {', '.join(QUESTIONS)}")
    parser.add_argument("--data", type=Path, help="folder with mnist.npz and other real tables")
    parser.add_argument(
        "--only",
        metavar="TEXT",
        help="only the rows whose name contains TEXT; they replace those rows in results of the "
        "same commit and machine, and are only printed where there are none",
    )
    parser.add_argument("--pairs", type=int, help="timed pairs a row (7; 3 for runs over 30 s)")
    parser.add_argument(
        "--out",
        type=Path,
        help="where to write after every row (default: benchmarks/results; nowhere with --pairs)",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in QUESTIONS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data must be a folder; got {options.data}")
    if options.pairs is not None and options.pairs < 1:
        parser.error(f"--pairs must be at least 1; got {options.pairs}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    hold_threads()
    # Described once, before anything is written: results of one question must not make the tree
    # look dirty to the next.
    environment = describe()
    settings = Settings(data=options.data, only=options.only, pairs=options.pairs)
    try:
        for name in options.names or QUESTIONS:
            answer(name, settings, environment, options.out)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("benchmarks: interrupted; finished rows are kept", file=sys.stderr)
        return 130
    return 0


def answer(name: str, settings: Settings, environment: dict[str, Any], out: Path | None) -> None:
    """Measure one question, print it, and write it where that harms no older results."""
    module = import_module(QUESTIONS[name])
    # A quick look, or a few rows, must not take the place of a whole table.
    folder = out or (None if settings.pairs else RESULTS)
    former = None
    if not hasattr(module, "rows"):
        folder = out or (None if settings.only or settings.pairs else RESULTS)
        report = module.run(settings)
        if folder is not None:
            report.write(folder, name, environment)
    else:
        if settings.only and folder is not None:
            former, why = former_results(folder, name, environment)
            if former is None and out is not None:
                refuse_to_mix(out, name, why)
            elif former is None:
                folder = None
                print(f"benchmarks: --only is printed, not written: {why}", file=sys.stderr)
        record = Record(name, module.report, environment, folder, only=settings.only, former=former)
        record.add_all(module.rows(settings))
        report, environment = record.report(), record.environment
    print(report.to_markdown(environment), flush=True)
    if folder is not None:
        rows = f"the rows of --only {settings.only} in " if former is not None else ""
        print(f"Wrote {rows}{folder / name}.md and .json", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
