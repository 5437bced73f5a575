"""Tables in blocks of rows, and the engines that process them: local threads or a Dask cluster.

A `Source` is a table that is read in partitions, repeatedly, in the same order. An `Engine`
maps a function over the partitions and adds the results up in a tree that depends only on
their order: the same bits for any number of workers, wherever they run.
"""

from gnomon.engine.engine import Engine, as_engine
from gnomon.engine.local import LocalEngine
from gnomon.engine.source import Block, Partition, Source

__all__ = ["Block", "Engine", "LocalEngine", "Partition", "Source", "as_engine"]
