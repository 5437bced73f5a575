import pytest

from gnomon.data.refusals import RoomError
from gnomon.data.room import Room
from gnomon.errors import TooLargeError
from gnomon.memory import LIBRARIES


def test_room_is_what_was_asked_for_or_what_is_free(monkeypatch):
    monkeypatch.setattr("gnomon.data.room.available_bytes", lambda: 12345)
    assert Room.of(None) == Room(12345, asked=False)
    assert Room.of(None).limit is None
    assert Room.of("1GB") == Room(10**9, asked=True)
    assert Room.of(7).limit == 7
    command = Room.of("1GB").shared(1)
    assert Room.of(command) is command


def test_every_process_takes_its_libraries_of_what_was_allowed():
    room = Room.of("2GB").shared(1).shared(3)
    assert room == Room(2 * 10**9 - 4 * LIBRARIES, asked=True, processes=4)
    assert room.allowed == 2 * 10**9
    assert Room.of("1GB").shared(5).bytes < 0


def test_a_refusal_counts_the_libraries_again():
    Room(10, asked=True).check("It", 10)
    room = Room.of("1GB").shared(2)
    with pytest.raises(RoomError) as raised:
        room.check("It", 5e8)
    assert str(raised.value).startswith(
        "It needs about 500 MB of memory beside the 600 MB of the libraries of 2 processes, more "
        "than the 1.0 GB that are allowed."
    )
    with pytest.raises(RoomError, match="It needs more memory beside the 600 MB of"):
        room.check("It", 5e8, at_least=True)


def test_what_takes_the_rest_of_what_was_allowed_is_said():
    room = Room.of("1GB")
    assert room.rest() == room.rest(table=0) == ""
    assert room.rest(table=2 * 10**8) == " of the 1.0 GB allowed: 200 MB are for the table"
    assert room.shared(1).rest(table=2 * 10**8) == (
        " of the 1.0 GB allowed: 300 MB are for the libraries, 200 MB for the table"
    )
    assert room.shared(3).rest() == (
        " of the 1.0 GB allowed: 900 MB are for the libraries of 3 processes"
    )
    assert Room(10**9, asked=False).rest(table=5) == ""  # nobody allowed anything


def test_errors_that_know_no_libraries_are_told_of_them():
    room = Room.of("1GB").shared(3)
    with pytest.raises(TooLargeError) as raised, room.explained():
        raise TooLargeError("Too large.")
    assert str(raised.value) == (
        "Too large. Of the 1.0 GB allowed, 900 MB are for the libraries of 3 processes."
    )
    with pytest.raises(TooLargeError, match=r"^Too large\.$"), Room.of("1GB").explained():
        raise TooLargeError("Too large.")
    known = RoomError("It", 1e9, 1e6, asked=True, processes=3)
    with pytest.raises(RoomError) as same, room.explained():
        raise known
    assert same.value is known


def test_processes_that_work_side_by_side_share_what_was_allowed():
    assert Room(900, asked=True).each(3) == 300
    assert Room(900, asked=True).each(0) == 900
    assert Room(900, asked=False).each(3) == 300
    assert Room(900, asked=False).each(1) is None
