"""What can go wrong, as one tree.

::

    GnomonError
    ├── ParameterError      (ValueError)  a parameter's value is outside its range
    ├── ParameterTypeError  (TypeError)   a parameter is of a kind that is never allowed
    ├── DataError           (ValueError)  the data cannot be used as they are
    │   ├── MissingValueError             NaN, None or masked cells where none are allowed
    │   ├── ChangedSourceError            a table read in blocks is not what it was before
    │   └── ModelFileError                a file is no model, is damaged, or is not to be trusted
    ├── DataTypeError       (TypeError)   the data are not numbers
    ├── PartitionError      (RuntimeError) a part of a table could not be read or worked on
    ├── ClusterError        (RuntimeError) a Dask cluster is not there, or is lost
    ├── UnavailableError    (ValueError)  this model cannot answer that; the message says which can
    ├── TooLargeError       (MemoryError) the work does not fit into the memory allowed
    ├── ExistingFileError   (FileExistsError) a file is there already and was not to be replaced
    └── WriteError          (OSError)     a file could not be written; the old one is whole

    GnomonWarning           (UserWarning)
    ├── DataWarning         a property of the data that the reader of the result should know
    └── NotConvergedWarning an iteration stopped before it reached the accuracy asked for

Every message names the argument, the limit, the value, and the way out, in that order:
"`perplexity` must be below n_samples = 20; got 30. Lower it or add rows."

Errors cross the borders of processes, so all of them, here and elsewhere, survive pickling with
their message and attributes.
"""

from typing import Any, NoReturn


class GnomonError(Exception):
    """Base of all errors raised by Gnomon on purpose."""


class ParameterError(GnomonError, ValueError):
    """A parameter's value is outside its range."""


class ParameterTypeError(GnomonError, TypeError):
    """A parameter is of a kind that is never allowed."""


class DataError(GnomonError, ValueError):
    """The data cannot be used as they are."""


class MissingValueError(DataError):
    """There are missing values where none are allowed."""


class ChangedSourceError(DataError):
    """A table that is read in blocks is not what it was when it was first read."""


class ModelFileError(DataError):
    """A file is no model, is damaged, or is not to be trusted."""


class DataTypeError(GnomonError, TypeError):
    """The data are not numbers."""


class PartitionError(GnomonError, RuntimeError):
    """A part of a table could not be read or worked on, three times running."""


class ClusterError(GnomonError, RuntimeError):
    """A Dask cluster is not there, is lost, or cannot do the work."""


class UnavailableError(GnomonError, ValueError):
    """The model at hand cannot answer that."""


class TooLargeError(GnomonError, MemoryError):
    """The work does not fit into the memory allowed."""

    def __reduce__(self) -> tuple[Any, ...]:
        """By a call: Dask's way, ``__new__``, fails where MemoryError is not the first base."""
        return type(self), self.args, self.__dict__


class ExistingFileError(GnomonError, FileExistsError):
    """A file is there already and was not to be replaced."""


class WriteError(GnomonError, OSError):
    """A file could not be written; what was there before is whole."""


class GnomonWarning(UserWarning):
    """Base of all warnings."""


class DataWarning(GnomonWarning):
    """A property of the data that the reader of the result should know."""


class NotConvergedWarning(GnomonWarning):
    """An iteration stopped before it reached the accuracy asked for."""


def refuse(name: str, must: str, got: Any, way_out: str = "", *, kind: bool = False) -> NoReturn:
    """Raise the one sentence that every parameter error is.

    Parameters
    ----------
    name : str
        The parameter.
    must : str
        What it must be, with its bound: ``"be an integer from 1 to 64"``.
    got : object
        The value given.
    way_out : str
        What the user can do about it.
    kind : bool
        True when the value is of a kind that is never allowed (raises a TypeError).
    """
    message = f"`{name}` must {must}; got {got!r}."
    if way_out:
        message += f" {way_out}"
    raise (ParameterTypeError if kind else ParameterError)(message)
