"""What the reader of a fitted map should know about the data."""

import warnings

from gnomon.errors import DataWarning
from gnomon.procrustes.frame import Frame
from gnomon.procrustes.verdict import warn_of_weak_verdict

__all__ = ["warn_of_frame"]


def warn_of_frame(frame: Frame) -> None:
    """Warn where one of the tables is a single point and turns nowhere, or where rows are few."""
    if frame.sq_x > 0 and frame.sq_y > 0:
        rows, d = frame.moments.x.n, min(frame.moments.cross.shape)
        warn_of_weak_verdict(rows, d, centering=frame.rules.centering, stacklevel=3)
        return
    name = "X" if frame.sq_x == 0 else "Y"
    what = "are the same point" if frame.rules.centering else "are zero"
    warnings.warn(
        f"All rows of {name} {what}: any rotation fits as well as another, and the prior (by "
        "default the identity) is returned.",
        DataWarning,
        stacklevel=3,
    )
