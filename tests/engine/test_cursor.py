import threading

import pytest

from gnomon.engine.cursor import Cursor


class Counted:
    """Begins again whenever it is asked to, and counts that."""

    def __init__(self, count):
        self.count, self.begun = count, 0

    def __call__(self):
        self.begun += 1
        return iter(range(100, 100 + self.count))


def test_blocks_in_order_are_read_once():
    begin = Counted(5)
    cursor = Cursor(begin)
    assert [cursor.take(i) for i in range(5)] == [100, 101, 102, 103, 104]
    assert cursor.take(5) is None
    assert (begin.begun, cursor.given) == (1, 5)


def test_what_is_passed_on_the_way_is_kept_for_those_who_ask_next():
    begin = Counted(5)
    cursor = Cursor(begin)
    assert [cursor.take(i) for i in (2, 0, 1, 4, 3)] == [102, 100, 101, 104, 103]
    assert begin.begun == 1


def test_what_has_passed_is_read_again():
    begin = Counted(5)
    cursor = Cursor(begin)
    assert [cursor.take(i) for i in (0, 1, 2, 1)] == [100, 101, 102, 101]
    assert begin.begun == 2


def test_little_is_kept():
    cursor = Cursor(Counted(1000))
    assert cursor.take(900) == 1000
    assert len(cursor.kept) <= cursor.most_kept


def test_an_error_half_way_begins_again():
    left = [1]

    def begin():
        yield 1
        if left[0]:
            left[0] -= 1
            raise OSError("away")
        yield 2

    cursor = Cursor(begin)
    assert cursor.take(0) == 1
    with pytest.raises(OSError, match="away"):
        cursor.take(1)
    assert cursor.take(1) == 2


def test_many_threads_each_get_their_block():
    begin, found = Counted(400), {}
    cursor = Cursor(begin)
    order = iter(range(400))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                index = next(order, None)
            if index is None:
                return
            found[index] = cursor.take(index)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {index: 100 + index for index in range(400)}
    assert begin.begun == 1
