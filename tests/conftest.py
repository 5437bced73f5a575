"""Shared by all tests."""

import os

# scikit-learn's check of array API input is skipped without it, and nothing is skipped here.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from hypothesis import HealthCheck, settings

# Two noisy cores: a time limit for one example would fail at random. Examples are drawn the same
# way every time, so that a change, not luck, is what makes a test fail.
settings.register_profile(
    "gnomon", deadline=None, derandomize=True, max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("gnomon")
