"""Generalised Procrustes analysis: many sets of points in one frame."""
