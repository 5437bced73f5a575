from pathlib import Path

import pytest

from gnomon import budget as module
from gnomon.budget import (
    LIBRARY_BYTES,
    Budget,
    available_bytes,
    check_free,
    parse_bytes,
    readable_bytes,
)
from gnomon.cli.failures import sentence
from gnomon.errors import ParameterError, ParameterTypeError, TooLargeError

MEMINFO = "MemTotal:       32000 kB\nMemFree:         9000 kB\nMemAvailable:   16000 kB\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with these files; others do not exist."""

    def make(**files):
        names = {
            "meminfo": "/proc/meminfo",
            "limit": "/sys/fs/cgroup/memory.max",
            "used": "/sys/fs/cgroup/memory.current",
            "old_limit": "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "old_used": "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        }
        for key, text in files.items():
            path = tmp_path / names[key].lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        read = module._read
        monkeypatch.setattr(module, "_read", lambda name: read(str(tmp_path / name.lstrip("/"))))

    return make


def test_here_and_now_there_is_some_and_no_more_than_the_machine_has():
    free = available_bytes()
    assert free > 10_000_000
    if Path("/proc/meminfo").exists():
        (line,) = [
            line
            for line in Path("/proc/meminfo").read_text().splitlines()
            if line.startswith("MemTotal:")
        ]
        assert free < int(line.split()[1]) * 1024


def test_outside_a_container_it_is_what_the_machine_has_available(machine):
    machine(meminfo=MEMINFO)
    assert available_bytes() == 16000 * 1024


def test_a_containers_limit_counts_less_what_is_used(machine):
    machine(meminfo=MEMINFO, limit="5000000\n", used="2000000\n")
    assert available_bytes() == 3_000_000


def test_an_older_containers_limit_counts_too(machine):
    machine(meminfo=MEMINFO, old_limit="7000000\n", old_used="1000000\n")
    assert available_bytes() == 6_000_000


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n"])
def test_a_container_without_a_limit_has_what_the_machine_has(machine, limit):
    machine(meminfo=MEMINFO, limit=limit, used="2000000\n")
    assert available_bytes() == 16000 * 1024


def test_a_container_that_is_over_its_limit_has_nothing_left(machine):
    machine(meminfo=MEMINFO, limit="1000000\n", used="2000000\n")
    assert available_bytes() == 0


def test_a_system_that_does_not_tell_is_taken_for_an_ordinary_machine(machine):
    machine()
    assert available_bytes() == 8 * 2**30


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (64e6, "64.0 MB"),
        (864_000_000, "864 MB"),
        (1_500_000_000, "1.5 GB"),
        (80e12, "80.0 TB"),
        (5e15, "5000.0 TB"),
    ],
)
def test_bytes_are_said_in_the_unit_that_fits(count, text):
    assert readable_bytes(count) == text


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (5, 5),
        ("5", 5),
        ("5B", 5),
        ("12 bytes", 12),
        ("2GB", 2 * 10**9),
        ("2g", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        (".5KiB", 512),
        ("64Ki", 65536),
        (" 3 TB ", 3 * 10**12),
    ],
)
def test_sizes_are_read_as_people_write_them(size, expected):
    assert parse_bytes(size) == expected


@pytest.mark.parametrize("count", [1, 999, 12_300, 5_000_000, 7.31e9, 2.4e12])
def test_what_is_said_can_be_read_back(count):
    assert parse_bytes(readable_bytes(count)) == pytest.approx(count, rel=0.05)


@pytest.mark.parametrize("size", [0, -1, "0", "-5MB", "", "GB", "2 potatoes", "nan", "1e9", "2ib"])
def test_what_is_no_size_is_refused_with_an_example(size):
    with pytest.raises(ParameterError, match="`memory` must be a size above 0, such as 2GB"):
        parse_bytes(size)


@pytest.mark.parametrize("size", [True, 2.5, None, [1]])
def test_a_size_is_a_whole_number_or_a_text(size):
    with pytest.raises(ParameterTypeError, match="`memory`"):
        parse_bytes(size)


def test_a_budget_is_what_was_asked_for_or_what_is_free(monkeypatch):
    monkeypatch.setattr("gnomon.budget.available_bytes", lambda: 12345)
    assert Budget.from_memory(None) == Budget(12345, asked=False)
    assert Budget.from_memory(None).limit is None
    assert Budget.from_memory("1GB") == Budget(10**9, asked=True)
    assert Budget.from_memory(7).limit == 7
    command = Budget.from_memory("1GB").shared(1)
    assert Budget.from_memory(command) is command


def test_every_process_takes_its_libraries_of_what_was_allowed():
    budget = Budget.from_memory("2GB").shared(1).shared(3)
    assert budget == Budget(2 * 10**9 - 4 * LIBRARY_BYTES, asked=True, processes=4)
    assert budget.allowed == 2 * 10**9
    assert Budget.from_memory("1GB").shared(5).bytes < 0


def test_a_refusal_counts_the_libraries_again():
    Budget(10, asked=True).check("It", 10)
    budget = Budget.from_memory("1GB").shared(2)
    with pytest.raises(TooLargeError) as raised:
        budget.check("It", 5e8)
    assert str(raised.value).startswith(
        "It needs about 500 MB of memory beside the 600 MB of the libraries of 2 processes, more "
        "than the 1.0 GB that are allowed."
    )
    with pytest.raises(TooLargeError, match="It needs more memory beside the 600 MB of"):
        budget.check("It", 5e8, at_least=True)


def test_what_takes_the_rest_of_what_was_allowed_is_said():
    budget = Budget.from_memory("1GB")
    assert budget.rest() == budget.rest(table=0) == ""
    assert budget.rest(table=2 * 10**8) == " of the 1.0 GB allowed: 200 MB are for the table"
    assert budget.shared(1).rest(table=2 * 10**8) == (
        " of the 1.0 GB allowed: 300 MB are for the libraries, 200 MB for the table"
    )
    assert budget.shared(3).rest() == (
        " of the 1.0 GB allowed: 900 MB are for the libraries of 3 processes"
    )
    assert Budget(10**9, asked=False).rest(table=5) == ""  # nobody allowed anything


def test_errors_that_know_no_libraries_are_told_of_them():
    budget = Budget.from_memory("1GB").shared(3)
    with pytest.raises(TooLargeError) as raised, budget.explained():
        raise TooLargeError("Too large.")
    assert str(raised.value) == (
        "Too large. Of the 1.0 GB allowed, 900 MB are for the libraries of 3 processes."
    )
    with (
        pytest.raises(TooLargeError, match=r"^Too large\.$"),
        Budget.from_memory("1GB").explained(),
    ):
        raise TooLargeError("Too large.")
    known = Budget(10**6, asked=True, processes=3).too_large("It", 1e9)
    with pytest.raises(TooLargeError) as same, budget.explained():
        raise known
    assert same.value is known


def test_processes_that_work_side_by_side_share_what_was_allowed():
    assert Budget(900, asked=True).each(3) == 300
    assert Budget(900, asked=True).each(0) == 900
    assert Budget(900, asked=False).each(3) == 300
    assert Budget(900, asked=False).each(1) is None


@pytest.mark.parametrize(
    ("needed", "asked", "says"),
    [
        (
            2e9,
            True,
            "It needs about 2.0 GB of memory{}, more than the {} that are allowed. Use "
            "{}. Or take fewer rows or columns.",
        ),
        (
            2e9,
            False,
            "It needs about 2.0 GB of memory, more than the 1.0 MB that are free. Take "
            "fewer rows or columns.",
        ),
        (
            None,
            True,
            "It needs more memory{} than the {} that are allowed. Use {}. Or take fewer "
            "rows or columns.",
        ),
    ],
)
def test_too_little_memory_is_said_with_what_is_needed_and_there(needed, asked, says):
    error = Budget(10**6, asked=asked).too_large("It", needed)
    assert isinstance(error, TooLargeError)
    assert str(error) == says.format("", "1.0 MB", f'memory="{"2.2GB" if needed else "SIZE"}"')
    enough = f"--memory {'2.2GB' if needed else 'SIZE'}"
    assert sentence(error) == says.format("", "1.0 MB", enough)
    if not asked:
        return
    # What a command is allowed is for its libraries too, and for those of its workers.
    error = Budget(10**6, asked=True, processes=1).too_large("It", needed)
    enough = f"--memory {'2.5GB' if needed else 'SIZE'}"
    libraries = " beside the 300 MB of the libraries"
    assert sentence(error) == says.format(libraries, "301 MB", enough)
    error = Budget(10**6, asked=True, processes=3).too_large("It", needed)
    enough = f"--memory {'3.2GB' if needed else 'SIZE'}"
    libraries = " beside the 900 MB of the libraries of 3 processes"
    assert sentence(error) == says.format(libraries, "901 MB", enough)


def test_what_needs_more_than_is_free_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(module, "available_bytes", lambda: 2_000_000)
    check_free("It", 2e6, "Take less.")
    with pytest.raises(TooLargeError) as raised:
        check_free("It", 2e6 + 1, "Take less.")
    assert str(raised.value) == "It needs about 2.0 MB of memory; 2.0 MB are free. Take less."
    assert raised.value.fields["needed"] == 2e6 + 1
