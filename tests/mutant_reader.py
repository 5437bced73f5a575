"""A process that reads damaged files, one after the other, and says what came of each.

It is told a kind of work and a path on each line of standard input, and answers with one line:
``read``, ``refused`` and the sentence, or ``unclassified`` and where the error came from. Whoever
asks (`hostile_files.py`) sees a crash by the end of the answers, and starts another.
"""

import contextlib
import json
import resource
import sys
import traceback
import warnings

MEMORY = 12 * 2**30  # of addresses: what takes more believes a number in a file


def read_input(path):
    """Everything that commands and estimators would look at in a table that is read as a whole."""
    import numpy as np

    from gnomon import PCA
    from gnomon.data.read import read

    table = read(path, memory="2GB")
    str(table), table.to_dict(), table.words(command=True)
    X = table.X
    if X.shape[0] > 2 and np.isfinite(X if isinstance(X, np.ndarray) else X.data).all():
        PCA(1).fit(X)


def read_blocks(path):
    """The same file in blocks."""
    from gnomon import source

    table = source(path)
    for partition in table.partitions:
        table.read(partition)


def use_model(path):
    """Load a model, or the models of a run, and ask each for everything it can do."""
    from gnomon import load

    found = load(path)
    parts = [found.pca, found.tsne] if type(found).__name__ == "RunModel" else [found]
    for model in found.values() if isinstance(found, dict) else parts:
        if hasattr(model, "get_params"):
            use(model)


def use(model):
    """Let a model do all that it can; it may refuse with a sentence of its own."""
    import numpy as np

    from gnomon.errors import GnomonError

    rows = np.random.default_rng(0).normal(size=(40, model.n_features_in_))
    pair = (rows, rows) if type(model).__name__ == "Procrustes" else (rows,)
    works = {
        "transform": lambda: model.transform(rows),
        "inverse_transform": lambda: model.inverse_transform(model.transform(rows)),
        "residuals": lambda: model.residuals(*pair),
        "place": lambda: model.place(rows),
        "partial_fit": lambda: model.partial_fit(*pair),
        "resume": lambda: model.resume(3),
    }
    with np.errstate(all="ignore"):  # numbers that are too large to be added are no fault
        for name, work in works.items():
            if hasattr(type(model), name):
                with contextlib.suppress(GnomonError):
                    work()
    str(model), str(model.certificate_), str(getattr(model, "plan_", ""))


def report(folder):
    """Build the page of a run again."""
    from pathlib import Path

    from commands import gnomon

    from gnomon.errors import DataError

    done = gnomon("report", folder, "--force", "-q", folder=Path(folder).parent)
    if done.returncode == 0:
        return
    (said,) = done.stderr.splitlines()
    if not said.startswith("error: ") or "--debug" in said:
        raise AssertionError(said)
    raise DataError(said)


def main():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    from gnomon.errors import GnomonError

    works = {"input": read_input, "blocks": read_blocks, "model": use_model, "report": report}
    for line in sys.stdin:
        work, path = json.loads(line)
        try:
            works[work](path)
            answer = ["read", ""]
        except GnomonError as error:
            answer = ["refused", str(error)]
        except Exception:
            answer = ["unclassified", traceback.format_exc()]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
