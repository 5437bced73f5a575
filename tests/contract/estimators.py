"""Every public estimator, with what scikit-learn's checks need. New ones are added here."""

from gnomon import PCA

# (estimator, expected failures of scikit-learn's checks with the reason a maintainer would accept)
ESTIMATORS = [
    (PCA(n_components=2), {}),
    (
        PCA(),
        {
            # n_components=None keeps min(rows, columns) components. Nine weighted rows give nine,
            # their 27 copies give 27: the extra ones have no variance and no direction.
            "check_sample_weight_equivalence_on_dense_data": "keeps as many as there are rows",
            "check_sample_weight_equivalence_on_sparse_data": "keeps as many as there are rows",
        },
    ),
    (PCA(n_components=2, standardize=True), {}),
    (
        PCA(n_components=2, solver="krylov"),
        {"check_fit_score_takes_y": "partial_fit after krylov is refused: it kept no moments"},
    ),
]
