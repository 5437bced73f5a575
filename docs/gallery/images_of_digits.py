"""The handwritten digits the gallery works on: the bundled sample, or MNIST where it is given."""

import os
from pathlib import Path

import numpy as np

from gnomon import samples


def load(rows=None):
    """Images (n, pixels) of float32, the digit of each, and the pictures' shape.

    Where the environment variable GNOMON_DATA names a folder with ``mnist.npz`` (``x_train``,
    ``y_train``: `make docs DATA=folder`), MNIST's training images, or the first `rows` of them.
    Otherwise the sample of 1,797 images of 8 × 8 pixels.
    """
    folder = os.environ.get("GNOMON_DATA")
    if not folder:
        digits = samples.load("digits")
        return digits.X.astype(np.float32), digits.labels, (8, 8)
    with np.load(Path(folder) / "mnist.npz", allow_pickle=False) as file:
        X = file["x_train"][:rows].reshape(-1, 784).astype(np.float32)
        return X, file["y_train"][:rows].astype(str), (28, 28)
