"""t-distributed stochastic neighbour embedding: the parts that are built so far."""
