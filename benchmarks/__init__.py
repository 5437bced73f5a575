"""Benchmarks: one module a question, answered by ``python -m benchmarks``.

- ``__main__``: the command line.
- ``environment``: two threads for everybody, the peers, what a result says about its machine.
- ``timing``: alternating runs, pairwise ratios, noisy pairs discarded.
- ``memory``: peak memory above the input, in a fresh process.
- ``quality``: how right a fitted PCA is, by the same code for everybody.
- ``data``: generated tables, and real ones from ``--data``.
- ``table``: Markdown and JSON.
- ``record``: results on disk after every row; a few rows in the place of older ones.
- ``pca``, ``pca_offset``, ``startup``: the questions.
"""
