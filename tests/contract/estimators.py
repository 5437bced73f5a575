"""Every public estimator, with what scikit-learn's checks need. New ones are added here."""

from gnomon import PCA, TSNE, Procrustes

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
    (
        PCA(n_components=2, svd_solver="arpack", tol=0.0, whiten=True),
        {"check_fit_score_takes_y": "partial_fit after krylov is refused: it kept no moments"},
    ),
    (
        PCA(n_components=2, solver="gram"),
        {"check_fit_score_takes_y": "partial_fit after gram is refused: it kept no moments"},
    ),
    (Procrustes(), {}),
    (Procrustes(scaling=True), {}),
    (Procrustes(scaling="norm-ratio"), {}),
    (
        Procrustes(robust="huber"),
        {
            # A row's weight depends on all other rows, and partial_fit keeps none.
            "check_fit_score_takes_y": "partial_fit of a robust fit is refused",
            "check_n_features_in_after_fitting": "partial_fit of a robust fit is refused",
        },
    ),
    (
        TSNE(perplexity=2, max_iter=60),
        {
            # A map amplifies every rounding, so weights are held against copies at given positions
            # (tests/tsne/test_forces.py), and rows of weight 0 against a fit without them
            # (tests/tsne/test_left_out.py).
            "check_sample_weight_equivalence_on_dense_data": "maps of weights and copies differ",
            "check_sample_weight_equivalence_on_sparse_data": "maps of weights and copies differ",
        },
    ),
]
