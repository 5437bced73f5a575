"""One file format, one module: each gives a whole table, and the same table in parts."""
