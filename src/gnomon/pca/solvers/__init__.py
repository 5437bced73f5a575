"""Solvers of principal components: one algorithm, one file."""
