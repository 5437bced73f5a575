from pathlib import Path

import pytest

from gnomon import memory
from gnomon.errors import ParameterError, ParameterTypeError
from gnomon.memory import available_bytes, parse_bytes, readable_bytes

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
        monkeypatch.setattr(memory, "Path", lambda name: tmp_path / str(name).lstrip("/"))

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
    [(5, 5), ("5", 5), ("5B", 5), ("12 bytes", 12), ("2GB", 2 * 10**9), ("2g", 2 * 10**9),
     ("1.5 GiB", 3 * 2**29), (".5KiB", 512), ("64Ki", 65536), (" 3 TB ", 3 * 10**12)],
)  # fmt: skip
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
