import pytest

from gnomon.cli.failures import exit_code
from gnomon.errors import (
    ConditionError,
    DataError,
    ParameterError,
    PartitionError,
    TooLargeError,
    WriteError,
)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ParameterError, 2),
        (DataError, 3),
        (TooLargeError, 4),
        (MemoryError, 4),
        (WriteError, 1),
        (PartitionError, 1),
        (OSError, 1),
        (ConditionError, 5),
    ],
)
def test_the_exit_code_says_whose_fault_it_was(kind, code):
    assert exit_code(kind("no")) == code
