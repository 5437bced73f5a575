"""What R users expect of a PCA and Python lacks."""


class Diagnostics:
    """Methods of `PCA` that explain rows and columns."""
