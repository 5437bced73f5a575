import numpy as np
import pytest

import gnomon
from gnomon.data import csv_blocks
from gnomon.data.read import read
from gnomon.engine import LocalEngine
from gnomon.errors import DataError


def rows_of(source):
    return np.concatenate(LocalEngine(2).map(lambda block: block.X.copy(), source))


def save(folder, text, name="a.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def lines(count=200):
    return [f"{i}.5,{i * i}.25,{-i}.125" for i in range(1, count + 1)]


def expected(count=200):
    i = np.arange(1, count + 1)
    return np.column_stack([i + 0.5, i * i + 0.25, -(i + 0.125)])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", ["a,b,c", None])
@pytest.mark.parametrize("last", [True, False])
def test_rows_are_found_whatever_ends_lines(tmp_path, end, header, last, monkeypatch):
    monkeypatch.setattr(csv_blocks, "STEP", 97)  # many chunks, which end anywhere
    text = end.join([*([header] if header else []), *lines()]) + (end if last else "")
    source = gnomon.source(save(tmp_path, text), rows=7)
    np.testing.assert_array_equal(rows_of(source), expected())
    assert source.names == (("a", "b", "c") if header else None)
    first = source.partitions[1].place[1]
    assert first.line == 7 + (2 if header else 1)


def test_blank_lines_and_quoted_newlines_are_no_rows(tmp_path, monkeypatch):
    text = 'note,a,b\n"one\n\nline",1,2\r\n\r\n\n"two ""x"" ",3,4\n\nthree,5,6\n\n'
    for step in (1, 2, 5, 13, 2**24):
        monkeypatch.setattr(csv_blocks, "STEP", step)
        source = gnomon.source(save(tmp_path, text), columns=["a", "b"], rows=1)
        np.testing.assert_array_equal(rows_of(source), [[1, 2], [3, 4], [5, 6]])
        assert [partition.place[1].line for partition in source.partitions] == [2, 5, 8]


def test_quotes_within_a_plain_field_are_letters(tmp_path, monkeypatch):
    cells = ['5" pipe', '"quoted, with\n""line"" ends"', 'a "word" of it', '"x"y"', '""', "none"]
    text = "note,a,b\n" + "".join(f"{cells[i % 6]},{i},{i * i}\n" for i in range(24))
    text = (
        text.replace("3,9\n", "3,9\r").replace("5,25\n", "5,25\r\n").replace("6,36\n", "6,36\r\r")
    )
    starts = []
    for step in (1, 2, 5, 13, 2**24):
        monkeypatch.setattr(csv_blocks, "STEP", step)
        source = gnomon.source(save(tmp_path, text), columns=["a", "b"], rows=5)
        i = np.arange(24)
        np.testing.assert_array_equal(rows_of(source), np.column_stack([i, i * i]))
        starts.append([partition.place[1] for partition in source.partitions])
    assert all(each == starts[0] for each in starts)
    whole = read(save(tmp_path, text), columns=["a", "b"])
    lines = [whole.places.of(partition.first) for partition in source.partitions]
    assert [f"line {place.line}" for place in starts[0]] == lines


def test_a_quote_that_is_never_closed_is_found_among_unusual_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks, "BEGINNING", 400)
    text = [f'{i}" pipe,{i}' for i in range(151)] + ['"x,2', "y,3", "z,4"]
    with pytest.raises(DataError, match="line 153: a quote is opened and never closed"):
        gnomon.source(save(tmp_path, "note,a\n" + "\n".join(text)))


def test_other_dialects(tmp_path):
    text = "\ufeffa;b\n" + "".join(f"{i},5;{i},25\n" for i in range(50))
    source = gnomon.source(save(tmp_path, text), rows=20)
    np.testing.assert_array_equal(rows_of(source)[:, 1], np.arange(50) + 0.25)
    text = "a\tb\tn\n" + "".join(f"{i}.5\t-9\t{'x' if i else 'y'}\n" for i in range(50))
    source = gnomon.source(save(tmp_path, text, "b.tsv"), keep="b", na="-9", rows=20)
    assert source.names == ("a", "b")
    assert np.isnan(rows_of(source)[:, 1]).all()


def test_a_late_text_is_found_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks, "LOOK", 20)
    text = lines()
    text[150] = "1.5,n/a,2.5"
    path = save(tmp_path, "a,b,c\n" + "\n".join(text))
    source = gnomon.source(path, rows=40)
    said = r'a\.csv: column "b" holds text \(first: line 152, "n/a"\)\. Use na="n/a", or drop="b"\.'
    with pytest.raises(DataError, match=said):
        rows_of(source)
    assert np.isnan(rows_of(gnomon.source(path, na="n/a", rows=40))[150, 1])
    assert gnomon.source(path, drop="b").names == ("a", "c")
    with pytest.raises(DataError, match=said):  # columns are counted in the file
        rows_of(gnomon.source(path, drop="a", rows=40))


def test_a_late_number_among_truths_is_found_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks, "LOOK", 20)
    text = [f"{'true' if i % 2 else 'False'},{i}.5" for i in range(200)]
    text[150] = "1,2.5"
    source = gnomon.source(save(tmp_path, "a,b\n" + "\n".join(text)), rows=40, keep="a")
    assert source.columns == 2
    said = r'"a" holds not only true and false \(first: line 152, "1"\)\. Use na="1", or drop="a"'
    with pytest.raises(DataError, match=said):
        rows_of(source)


def test_a_ragged_line_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks, "LOOK", 20)
    monkeypatch.setattr(csv_blocks, "BEGINNING", 400)
    text = lines()
    text[180] = "1.5,2.5"
    source = gnomon.source(save(tmp_path, "a,b,c\n" + "\n".join(text)), rows=40)
    with pytest.raises(
        DataError, match=r"a\.csv, line 182: 2 fields, where the line of names has 3"
    ):
        rows_of(source)


@pytest.mark.parametrize("step", [97, 2**20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_texts_that_cannot_be_read_in_blocks_are_refused(tmp_path, monkeypatch, end, step):
    monkeypatch.setattr(csv_blocks, "BEGINNING", 400)
    monkeypatch.setattr(csv_blocks, "STEP", step)
    start = "a,b,c\n" + "\n".join(lines()) + "\n"
    for tail, said in (
        (b'1,"2,3\n4,5,6\n', r"line 202: a quote is opened and never closed"),
        (b"1,\x00,3\n", r"line 202: there is a NUL byte"),
        (b"1,2,3\n1,\xe9,3\n", r"line 203: byte 0xE9 is not UTF-8"),
    ):
        with pytest.raises(DataError, match=said):
            gnomon.source(save(tmp_path, (start.encode() + tail).replace(b"\n", end)))
    with pytest.raises(DataError, match="is UTF-16, which is not read in blocks"):
        gnomon.source(save(tmp_path, start.encode("utf-16")))


def test_the_line_is_right_where_chunks_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks, "BEGINNING", 40)
    returns = b"a,b,c\r" + b"1,2,3\r" * 8 + b"1,\0,3\r"
    letters = b"a,b,t\n" + b"1,2,x\n" * 7 + "1,2,€\n".encode() + b"1,2,\xe9\n1,2,x\n"
    for step in range(5, 40):
        monkeypatch.setattr(csv_blocks, "STEP", step)
        for text, said in ((returns, "line 10: there is a NUL"), (letters, "line 10: byte 0xE9")):
            with pytest.raises(DataError, match=said):
                gnomon.source(save(tmp_path, text))


def test_letters_that_straddle_chunks_are_letters(tmp_path, monkeypatch):
    text = "a,b,note\n" + "".join(f"{i}.5,{i}.25,größe {i % 3}\n" for i in range(60))
    for step in (31, 32, 33):
        monkeypatch.setattr(csv_blocks, "STEP", step)
        source = gnomon.source(save(tmp_path, text), rows=9)
        np.testing.assert_array_equal(rows_of(source)[:, 0], np.arange(60) + 0.5)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_no_row_is_lost_where_the_last_chunk_is_full(tmp_path, monkeypatch, end):
    names, rows = "a,b\n", "\n".join(f"{i},{i + 1}" for i in range(30)) + end
    (tmp_path / "t.csv").write_text(names + rows, newline="")
    for step in (1, len(rows), len(rows) // 2, len(rows) + 1):
        monkeypatch.setattr(csv_blocks, "STEP", step)
        assert gnomon.source(tmp_path / "t.csv", rows=7).rows == 30


@pytest.mark.parametrize("header", [b"gr\xf6\xdfe,b,c\n", b"# r\xf6\na,b,c\n", b"a,b,c\xe9\n"])
def test_a_line_of_names_that_is_not_utf8_is_told_before_any_pass(tmp_path, header):
    path = save(tmp_path, header + "\n".join(lines()).encode())
    byte = "E9" if b"\xe9" in header else "F6"
    said = rf"a\.csv, line 1: byte 0x{byte} is not UTF-8, and other .* Save it as UTF-8\."
    with pytest.raises(DataError, match=said):
        gnomon.source(path, rows=40)


def test_a_letter_where_the_beginning_is_cut_off_is_a_letter(tmp_path, monkeypatch):
    text = "a,b,note\n" + "1.5,2,x\n2.5,3,y\n3.5,7,€\n4.5,9,z\n"
    at = text.encode().index("€".encode())
    for cut in range(at - 1, at + 5):
        monkeypatch.setattr(csv_blocks, "BEGINNING", cut)
        assert gnomon.source(save(tmp_path, text), columns=["a", "b"]).shape == (4, 2)


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u3000"])
def test_unusual_spaces_around_numbers_are_no_text(tmp_path, monkeypatch, space):
    monkeypatch.setattr(csv_blocks, "LOOK", 20)
    text = lines()
    text[150] = f"1.5{space},{space}2.5,+3.5"
    path = save(tmp_path, "a,b,c\n" + "\n".join(text))
    found = rows_of(gnomon.source(path, rows=40))
    np.testing.assert_array_equal(found, read(path).X)
    np.testing.assert_array_equal(found[150], [1.5, 2.5, 3.5])
    commas = [line.replace(",", ";").replace(".", ",") for line in text]
    found = rows_of(gnomon.source(save(tmp_path, "a;b;c\n" + "\n".join(commas)), rows=40))
    np.testing.assert_array_equal(found, read(path).X)
    text[155] = "1.5,n/a,3.5"
    path = save(tmp_path, "a,b,c\n" + "\n".join(text))
    with pytest.raises(DataError, match=r'column "b" holds text \(first: line 157, "n/a"\)'):
        rows_of(gnomon.source(path, rows=40))
    assert np.isnan(rows_of(gnomon.source(path, rows=40, na="n/a"))[155, 1])
