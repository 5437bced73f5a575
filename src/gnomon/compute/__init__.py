"""Building blocks of computation: compiled loops, fixed blocks on threads, BLAS on one thread."""
