"""How numbers are crunched: compiled loops, fixed blocks on threads, BLAS on one thread."""
