"""
Follow a month
==============

Rows are added every week, and the map is made again. With ``align_to`` it stays in one frame: old
rows keep their places, new ones find theirs. Without it the map may turn over.
"""

import numpy as np

from gnomon import TSNE, charts, samples

digits = samples.load("digits")
weeks = (1000, 1250, 1500, 1797)  # rows at the end of each week
maps = [TSNE().fit(digits.X[: weeks[0]])]
for n in weeks[1:]:
    maps.append(TSNE(align_to=maps[-1]).fit(digits.X[:n]))
    moved = maps[-1].alignment_.movement
    print(f"{n:,} rows: those of the week before moved by {moved:.1%} of the map's size")

# %%
# The rows of the first week, on the first map and on the last.

positions = [model.embedding_ for model in maps]
first = {"first week": positions[0], "last week": positions[-1][: weeks[0]]}
charts.maps(first, digits.labels[: weeks[0]], title="The same rows, three weeks apart")

# %%
# A map made afresh has no reason to stay where the old one was.

afresh = TSNE(random_state=1, init="random").fit(digits.X)
way = np.median(np.hypot(*(afresh.embedding_[:1000] - positions[0]).T))
size = np.hypot(*positions[0].std(axis=0))
print(f"made afresh, old rows would have moved by {way / size:.0%}")
