"""Tables in blocks of rows, and who works through them: threads here, or a Dask cluster.

A `Source` is a table that is read in partitions, again and again, in the same order. An `Engine`
maps a function over the partitions and adds the results up in a tree that depends on nothing but
their order: the same bits for any number of workers, wherever they are.
"""

from gnomon.engine.engine import Engine, as_engine
from gnomon.engine.local import LocalEngine
from gnomon.engine.source import Block, Partition, Source

__all__ = ["Block", "Engine", "LocalEngine", "Partition", "Source", "as_engine"]
