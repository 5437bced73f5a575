"""Run benchmarks: ``python -m benchmarks [--data DIR] [--only ROW] [NAME ...]``."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.environment import BenchmarkError, Settings, describe, hold_threads

# Modules by name: NumPy must not be imported before `hold_threads` has set its thread count.
QUESTIONS = {
    "pca": "benchmarks.pca",
    "crossovers": "benchmarks.crossovers",
    "startup": "benchmarks.startup",
}
RESULTS = Path(__file__).parent / "results"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"any of: {', '.join(QUESTIONS)}")
    parser.add_argument("--data", type=Path, help="folder with mnist.npz and other real tables")
    parser.add_argument("--only", metavar="TEXT", help="only the rows whose name contains TEXT")
    parser.add_argument("--pairs", type=int, help="timed pairs a row (7; 3 for runs over 30 s)")
    parser.add_argument(
        "--out",
        type=Path,
        help="where to write; default: benchmarks/results, or nowhere with --only or --pairs",
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
    # A few rows, or a quick look, must not replace the committed table.
    out = options.out or (None if options.only or options.pairs else RESULTS)
    try:
        for name in options.names or QUESTIONS:
            report = import_module(QUESTIONS[name]).run(settings)
            print(report.to_markdown(environment), flush=True)
            if out is not None:
                report.write(out, name, environment)
                print(f"Wrote {out / name}.md and .json", file=sys.stderr)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
