import io
import struct
import zipfile

import numpy as np
import pytest

from gnomon import PCA
from gnomon.errors import ModelFileError, TooLargeError
from gnomon.models.archive import ARRAYS, DOCUMENT, read_archive, write_archive
from gnomon.models.fields import UnfitError
from gnomon.models.file import load, save


@pytest.fixture
def members(tmp_path):
    """A good model's two members, and where the file is."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    path = tmp_path / "good.gnomon"
    save(PCA(2).fit(X), path)
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def packed(members, compression=zipfile.ZIP_STORED, comment=b""):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
        archive.comment = comment
    return file.getvalue()


def refusal(content, tmp_path):
    """The sentence that a file is refused with; it names the file and a way out."""
    path = tmp_path / "bad.gnomon"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_any_zip_program_opens_it(members):
    assert [name for name, _ in members] == [DOCUMENT, ARRAYS]
    with zipfile.ZipFile(io.BytesIO(packed(members))) as archive:
        assert archive.testzip() is None


def test_a_plain_zip_of_the_same_members_is_read(members):
    document, arrays = read_archive(io.BytesIO(packed(members)))
    assert [document, arrays] == [content for _, content in members]


@pytest.mark.parametrize(
    "name", ["../model.json", "/etc/passwd", "..\\model.json", "C:\\model.json", "a/../../b"]
)
def test_members_that_point_elsewhere_are_refused(members, tmp_path, name):
    for changed in ([(name, members[0][1]), members[1]], [members[0], (name, members[1][1])]):
        assert "points out of it" in refusal(packed(changed), tmp_path)
    assert "other things" in refusal(packed([*members, (name, b"x")]), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.gnomon", "good.gnomon"]


def test_unknown_missing_doubled_and_exchanged_members_are_refused(members, tmp_path):
    (_, document), (_, arrays) = members
    assert "does not belong to a model" in refusal(
        packed([members[0], ("code.py", b"1")]), tmp_path
    )
    assert "does not hold" in refusal(packed(members[:1]), tmp_path)
    assert "does not hold" in refusal(packed(members[::-1]), tmp_path)
    assert "other things" in refusal(packed([*members, ("more.txt", b"")]), tmp_path)
    assert "is not a Gnomon model file" in refusal(packed([]), tmp_path)
    with pytest.warns(UserWarning, match="Duplicate"):
        doubled = packed([members[0], (DOCUMENT, document)])
    assert "does not hold" in refusal(doubled, tmp_path)
    assert refusal(packed([(DOCUMENT, arrays), (ARRAYS, document)]), tmp_path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_is_refused_before_it_is_unpacked(members, tmp_path, compression, monkeypatch):
    bomb = packed([members[0], (ARRAYS, bytes(10_000_000))], compression)
    assert len(bomb) * 1000 < 10_000_000 * 2

    def never(*_, **__):
        raise AssertionError("something was unpacked")

    monkeypatch.setattr(zipfile.ZipFile, "open", never)
    monkeypatch.setattr(zipfile.ZipFile, "read", never)
    assert "is compressed" in refusal(bomb, tmp_path)


def test_a_size_that_the_file_does_not_have_is_refused_before_memory_is_taken(members, tmp_path):
    import tracemalloc

    content = bytearray(packed(members))
    claimed = struct.pack("<II", 0xF0000000, 0xF0000000)  # 4 GB, in header and list alike
    listed = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
    header = content.index(b"PK\x03\x04", 4)
    content[listed + 20 : listed + 28] = claimed
    content[header + 18 : header + 26] = claimed
    path = tmp_path / "bad.gnomon"
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="cut off"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_list_of_a_million_members_is_not_read(members, tmp_path):
    """The list alone would take a hundred times its size in memory."""
    good = packed(members)
    end = good.index(b"PK\x05\x06")
    start = good.index(b"PK\x01\x02")
    many = good[start:end] * 5000
    closing = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 10_000, 10_000, len(many), start, 0)
    assert "other things" in refusal(good[:start] + many + closing, tmp_path)
    lying = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 2, 2, len(many), start, 0)
    assert "other things" in refusal(good[:start] + many + lying, tmp_path)


def test_the_record_for_large_files_cannot_hide_another_list(members, tmp_path):
    good = packed(members)
    end = good.index(b"PK\x05\x06")
    start = good.index(b"PK\x01\x02")
    for count, length, place in ((10_000, end - start, start), (2, 10**9, 0), (2, 10, start)):
        record = struct.pack(
            "<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, place
        )
        locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
        closing = struct.pack(
            "<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0
        )
        assert refusal(good[:end] + record + locator + closing, tmp_path)
    aside = struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1)
    assert refusal(good[:end] + record + aside + closing, tmp_path)


def test_a_file_of_more_than_four_gigabytes_has_its_sizes_elsewhere(monkeypatch, tmp_path):
    """The same layout, at a limit that a test can reach."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    path = tmp_path / "large"
    write_archive(path, b"d" * 300, b"a" * 400)
    assert b"PK\x06\x06" in path.read_bytes()
    with path.open("rb") as file:
        assert read_archive(file) == (b"d" * 300, b"a" * 400)


def test_bytes_before_between_or_after_the_members_are_refused(members, tmp_path):
    good = packed(members)
    second = good.index(b"PK\x03\x04", 4)
    listed = good.index(b"PK\x01\x02")
    assert refusal(b"PK\x03\x04" + good, tmp_path)
    assert refusal(good[:second] + b"hidden" + good[second:], tmp_path)
    assert refusal(good[:listed] + b"hidden" + good[listed:], tmp_path)
    moved = good[:-6] + struct.pack("<I", listed + 6) + good[-2:]  # where the list is now
    hidden = moved[:listed] + b"hidden" + moved[listed:]
    assert zipfile.ZipFile(io.BytesIO(hidden)).testzip() is None  # nothing wrong with it as a zip
    assert "belong to no member" in refusal(hidden, tmp_path)
    assert "cut off" in refusal(good + b"x", tmp_path)
    assert "cut off" in refusal(packed(members, comment=b"a comment"), tmp_path)


def test_a_file_that_is_cut_off_anywhere_is_refused(members, tmp_path):
    good = packed(members)
    for length in [*range(1, 60), *range(60, len(good), 97), len(good) - 1]:
        assert refusal(good[:length], tmp_path)


def test_what_is_no_archive_is_told_from_a_pickle_and_from_nothing(tmp_path):
    import pickle

    for protocol in (2, 3, 4, 5):
        content = pickle.dumps(PCA(2), protocol)
        assert "is a pickle" in refusal(content, tmp_path)
    assert "is empty" in refusal(b"", tmp_path)
    for other in (
        b"\x93NUMPY\x01\x00",
        b"a,b\n1,2\n",
        b"PAR1",
        b"\x80",
        b"P",
        pickle.dumps([1], 0),
    ):
        assert "is not a Gnomon model file" in refusal(other, tmp_path)


def test_a_missing_file_or_a_folder_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.gnomon cannot be read .* Check the name"):
        load(tmp_path / "none.gnomon")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path)


def test_a_document_that_would_not_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("gnomon.models.archive.LARGEST_DOCUMENT", 50)
    with pytest.raises(TooLargeError, match=r"51 bytes of text.*50 bytes\. Shorten"):
        write_archive(tmp_path / "m", b"x" * 51, b"")
    with (tmp_path / "long").open("wb+") as file:
        file.write(packed([(DOCUMENT, b"x" * 51), (ARRAYS, b"")]))
        with pytest.raises(UnfitError, match="too long"):
            read_archive(file)
