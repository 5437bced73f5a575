"""The whole job: from a table to its map, scores and files, one stage after the other."""
