"""What every command needs of the system, seen to before a library is loaded that would not say."""

import os

from gnomon.budget import address_limit, readable_bytes
from gnomon.errors import TooLargeError, WriteError

__all__ = ["check_environment"]

# Addresses that the libraries reserve, most of which never become memory: 2.2 GB on two CPUs, and
# 55 MB for each thread more (VmPeak of `gnomon map` of a small table).
ADDRESSES, OF_A_THREAD = 2_300_000_000, 60_000_000


def check_environment() -> None:
    """Refuse a working directory that was removed, and too small an address space.

    Numba cannot be imported in the first. In the second OpenBLAS ends the process, or waits.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        raise WriteError("The working directory was removed. Change to another one.") from None
    limit, needed = address_limit(), ADDRESSES + OF_A_THREAD * (os.cpu_count() or 1)
    if limit is not None and limit < needed:
        raise TooLargeError(
            f"This process may use {readable_bytes(limit)} of addresses (ulimit -v), and the "
            f"libraries reserve about {readable_bytes(needed)}. Raise the limit, or remove it: "
            "ulimit -v unlimited. To limit the memory in use there is --memory."
        )
