"""Generalised Procrustes analysis: many sets of points laid into one frame."""
