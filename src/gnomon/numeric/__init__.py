"""Numerical core of PCA, t-SNE and Procrustes: scaled rows, moments, rounding, certificates."""
