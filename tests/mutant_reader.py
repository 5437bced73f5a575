"""A process that reads damaged files, one after the other, and says what came of each.

It is told a kind of work and a path on each line of standard input, and answers with one line:
``read``, ``refused`` and the sentence, or ``unclassified`` and where the error came from. Whoever
asks (`hostile_files.py`) sees a crash by the end of the answers, and starts another.
"""

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
    if len(table.X) > 2 and np.isfinite(table.X).all():
        PCA(1).fit(table.X)


def read_blocks(path):
    """The same file in blocks."""
    from gnomon import source

    table = source(path)
    for partition in table.partitions:
        table.read(partition)


def main():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    from gnomon.errors import GnomonError

    works = {"input": read_input, "blocks": read_blocks}
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
