"""
Compare two models
==================

Do two embeddings of the same rows say the same? ``compare`` counts the neighbours on which both
agree, whatever their widths, rotations and units, and names the rows whose neighbours changed.
``gnomon compare old.parquet new.parquet --id document --page`` does it with files, and
``--fail-if "neighbours < 0.8"`` ends a pipeline.
"""

import numpy as np

from gnomon import PCA, Procrustes, charts, compare, samples

digits = samples.load("digits")
old = PCA(n_components=20).fit_transform(digits.X)
random = np.random.default_rng(0)
wild = random.choice(len(old), 60, replace=False)
new = old @ np.linalg.qr(random.normal(size=(20, 20)))[0]  # the same, rotated
new[wild] = new[random.permutation(wild)]  # but for sixty rows, which are mixed up

# %%
# A rotation costs nothing; the mixed rows are found.

alike = compare(old, new)
print(f"neighbours on which both agree: {alike.neighbor_overlap:.2f}")
found = alike.changes.changed
print(f"{alike.changes.title()}; {np.isin(found, wild).mean():.0%} of them were mixed up")

# %%
# The old rows laid on the new by the best rotation, in the plane of the new model's first two
# columns. Lines join the two places of some rows that were mixed up, and of some that were not.

moved = Procrustes(robust="tukey").fit(old, new).transform(old)
some = np.concatenate([wild[:12], np.setdiff1d(np.arange(300), wild)])
names = ("the old model", "the new model")
charts.overlay(moved[some, :2], new[some, :2], names=names, title="Rows in both models")
