import operator

import numpy as np

from gnomon.engine import LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.engine.watched import WatchedEngine


def total(block):
    return float(block.X.sum()) + (block.beside or 0)


def test_every_pass_is_told_of_and_its_results_are_the_engines():
    source = ArraySource(np.arange(20.0).reshape(10, 2), rows=4)
    some = source.only([source.partitions[0], source.partitions[2]])
    plain, told, done, written = LocalEngine(2), [], [], [[], []]
    engine = WatchedEngine(plain, lambda rows, of: told.append((rows, of)))
    beside = [1, 2, 3]
    assert engine.map(total, source, beside=beside) == plain.map(total, source, beside=beside)
    assert engine.reduce(total, some, operator.add) == plain.reduce(total, some, operator.add)
    for each, box in ((engine, written[0]), (plain, written[1])):
        each.write(total, source, box.append, done=done.append)
    assert written[0] == written[1]
    assert told == [(4, 10), (8, 10), (10, 10), (4, 6), (6, 6), (4, 10), (8, 10), (10, 10)]
    assert done == 2 * [4, 8, 10]
    assert (engine.workers, engine.processes) == (2, 0)
