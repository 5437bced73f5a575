import gzip

import numpy as np
import pytest

import gnomon
from gnomon.data import file_content as content
from gnomon.data.formats import csv, csv_stream
from gnomon.data.lines import read_records
from gnomon.data.read import read
from gnomon.engine import LocalEngine
from gnomon.errors import DataError


def in_pieces(monkeypatch, step):
    """Have a text read so many bytes at a time."""
    monkeypatch.setattr(content, "STEP", step)
    monkeypatch.setattr(csv, "BEGINNING", 100)


def pieces_of(text, step, line=1):
    chunks = (text[at : at + step] for at in range(0, len(text), step))
    return list(csv_stream.text_pieces(chunks, "a.csv", ",", line))


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
    in_pieces(monkeypatch, 97)  # which end anywhere
    text = end.join([*([header] if header else []), *lines()]) + (end if last else "")
    source = gnomon.source(save(tmp_path, text), rows=7)
    np.testing.assert_array_equal(rows_of(source), expected())
    assert source.names == (("a", "b", "c") if header else None)
    places = [piece.line for piece in pieces_of(text.encode(), step=97)]
    at = np.cumsum([0, *(len(piece.data) for piece in pieces_of(text.encode(), step=97))])
    assert places == [1 + text[:start].count(end) for start in at[:-1]]


def test_blank_lines_and_quoted_newlines_are_no_rows(tmp_path, monkeypatch):
    text = 'note,a,b\n"one\n\nline",1,2\r\n\r\n\n"two ""x"" ",3,4\n\nthree,5,6\n\n'
    for step in (1, 2, 5, 13, 2**24):
        in_pieces(monkeypatch, step)
        source = gnomon.source(save(tmp_path, text), columns=["a", "b"], rows=1)
        np.testing.assert_array_equal(rows_of(source), [[1, 2], [3, 4], [5, 6]])
        bad = save(tmp_path, text.replace("5,6", "5,x"))
        with pytest.raises(DataError, match=r'column "b" holds text .*line 9, "x"'):
            gnomon.source(bad, columns=["a", "b"], na="y")


def test_quotes_within_a_plain_field_are_letters(tmp_path, monkeypatch):
    cells = ['5" pipe', '"quoted, with\n""line"" ends"', 'a "word" of it', '"x"y"', '""', "none"]
    text = "note,a,b\n" + "".join(f"{cells[i % 6]},{i},{i * i}\n" for i in range(24))
    text = (
        text.replace("3,9\n", "3,9\r").replace("5,25\n", "5,25\r\n").replace("6,36\n", "6,36\r\r")
    )
    whole = read(save(tmp_path, text), columns=["a", "b"])
    for step in (7, 13, 41, 2**24):
        in_pieces(monkeypatch, step)
        source = gnomon.source(save(tmp_path, text), columns=["a", "b"], rows=5)
        i = np.arange(24)
        np.testing.assert_array_equal(rows_of(source), np.column_stack([i, i * i]))
        row = 0
        body = text.partition("\n")[2].encode()
        for piece in pieces_of(body, step=step, line=2):
            if first := next(read_records(piece.data, ","), None):
                assert whole.places.of(row) == f"line {piece.line + first.line - 1}"
            row += len(list(read_records(piece.data, ",")))
        assert row == 24


def test_a_quote_that_is_never_closed_is_found_among_unusual_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "BEGINNING", 400)
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
    monkeypatch.setattr(csv, "LOOK", 20)
    text = lines()
    text[150] = "1.5,n/a,2.5"
    path = save(tmp_path, "a,b,c\n" + "\n".join(text))
    said = r'a\.csv: column "b" holds text \(first: line 152, "n/a"\)\. Use na="n/a", or drop="b"\.'
    with pytest.raises(DataError, match=said):
        gnomon.source(path, rows=40)
    assert np.isnan(rows_of(gnomon.source(path, na="n/a", rows=40))[150, 1])
    assert gnomon.source(path, drop="b").names == ("a", "c")
    with pytest.raises(DataError, match=said):  # columns are counted in the file
        gnomon.source(path, drop="a", rows=40)


def test_a_late_number_among_truths_is_found_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "LOOK", 20)
    text = [f"{'true' if i % 2 else 'False'},{i}.5" for i in range(200)]
    text[150] = "1,2.5"
    said = r'"a" holds not only true and false \(first: line 152, "1"\)\. Use na="1", or drop="a"'
    with pytest.raises(DataError, match=said):
        gnomon.source(save(tmp_path, "a,b\n" + "\n".join(text)), rows=40, keep="a")


def test_a_ragged_line_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "LOOK", 20)
    monkeypatch.setattr(csv, "BEGINNING", 400)
    text = lines()
    text[180] = "1.5,2.5"
    monkeypatch.setattr(content, "STEP", 400)
    path = save(tmp_path, "a,b,c\n" + "\n".join(text))
    with pytest.raises(DataError, match=r"a\.csv, line 182: 2 fields, where the header row has 3"):
        gnomon.source(path, rows=40)


@pytest.mark.parametrize("step", [97, 2**20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_damaged_texts_are_refused(tmp_path, monkeypatch, end, step):
    monkeypatch.setattr(csv, "BEGINNING", 400)
    monkeypatch.setattr(content, "STEP", step)
    start = "a,b,c\n" + "\n".join(lines()) + "\n"
    for tail, said in (
        (b'1,"2,3\n4,5,6\n', r"line 202: a quote is opened and never closed"),
        (b"1,\x00,3\n", r"line 202: there is a NUL byte"),
        (b"1,2,3\n1,\xe9\x81,3\n", r"line 203: byte 0xE9 is not UTF-8"),  # nor Windows-1252
    ):
        with pytest.raises(DataError, match=said):
            gnomon.source(save(tmp_path, (start.encode() + tail).replace(b"\n", end)))
    with pytest.raises(DataError, match="is damaged UTF-16"):
        gnomon.source(save(tmp_path, start.encode("utf-16") + b"\x00"))


def test_the_line_is_right_where_chunks_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "BEGINNING", 40)
    returns = b"a,b,c\r" + b"1,2,3\r" * 8 + b"1,\0,3\r"
    letters = b"a,b,t\n" + b"1,2,x\n" * 7 + "1,2,€\n".encode() + b"1,2,\xe9\x81\n1,2,x\n"
    for step in range(5, 40):
        monkeypatch.setattr(content, "STEP", step)
        for text, said in ((returns, "line 10: there is a NUL"), (letters, "line 10: byte 0xE9")):
            with pytest.raises(DataError, match=said):
                gnomon.source(save(tmp_path, text))


def test_letters_that_straddle_chunks_are_letters(tmp_path, monkeypatch):
    text = "a,b,note\n" + "".join(f"{i}.5,{i}.25,größe {i % 3}\n" for i in range(60))
    for step in (31, 32, 33):
        in_pieces(monkeypatch, step)
        source = gnomon.source(save(tmp_path, text), rows=9)
        np.testing.assert_array_equal(rows_of(source)[:, 0], np.arange(60) + 0.5)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_no_row_is_lost_where_the_last_chunk_is_full(tmp_path, monkeypatch, end):
    names, rows = "a,b\n", "\n".join(f"{i},{i + 1}" for i in range(30)) + end
    (tmp_path / "t.csv").write_text(names + rows, newline="")
    for step in (1, len(rows), len(rows) // 2, len(rows) + 1):
        in_pieces(monkeypatch, step)
        assert gnomon.source(tmp_path / "t.csv", rows=7).rows == 30


ENCODED = "größe;b;note\n" + "".join(f"{i},5;{i},25;é{i % 3}\n" for i in range(80))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("packed", [False, True])
def test_other_encodings_are_read_in_pieces_as_in_memory(tmp_path, monkeypatch, encoding, packed):
    data = ENCODED.encode(encoding)
    if encoding == "utf-16-le":
        data = b"\xff\xfe" + data
    path = save(
        tmp_path, gzip.compress(data) if packed else data, "a.csv.gz" if packed else "a.csv"
    )
    for step in (61, 2**24):
        in_pieces(monkeypatch, step)
        source = gnomon.source(path, label="note", rows=9)
        held = read(path, label="note")
        assert source.names == held.columns == ("größe", "b")
        np.testing.assert_array_equal(rows_of(source), held.X)
        assert source.notes == held.notes
        cells = source.cells(["note"], 2**20).columns["note"].to_pylist()
        assert cells == held.labels.tolist() == [f"é{i % 3}" for i in range(80)]


def test_a_letter_of_windows_far_down_is_read_as_in_memory(tmp_path, monkeypatch):
    in_pieces(monkeypatch, 97)
    text = "a,b,note\n" + "".join(f"{i}.5,{i}.25,größe {i % 3}\n" for i in range(60))
    path = save(tmp_path, text.encode() + b"1,2,\xe9\n")
    source = gnomon.source(path, label="note", rows=9)
    held = read(path, label="note")
    assert source.cells(["note"], 2**20).columns["note"].to_pylist() == held.labels.tolist()
    assert "text is read as Windows-1252: line 62 is not UTF-8" in source.notes


def test_numbers_with_thousands_separators_are_numbers_in_pieces(tmp_path, monkeypatch):
    in_pieces(monkeypatch, 120)
    text = "a;b\n" + "".join(f"1.234.{i:03d},5;{i}\n" for i in range(80))
    source = gnomon.source(save(tmp_path, text), rows=9)
    np.testing.assert_array_equal(rows_of(source)[:, 0], 1234000.5 + np.arange(80))
    path = save(tmp_path, text + "1.23.4;1\n")
    with pytest.raises(DataError, match=r'column "a" holds text \(first: line 82, "1\.23\.4"'):
        gnomon.source(path)


def test_a_letter_where_the_beginning_is_cut_off_is_a_letter(tmp_path, monkeypatch):
    text = "a,b,note\n" + "1.5,2,x\n2.5,3,y\n3.5,7,€\n4.5,9,z\n"
    at = text.encode().index("€".encode())
    for cut in range(at - 1, at + 5):
        monkeypatch.setattr(csv, "BEGINNING", cut)
        assert gnomon.source(save(tmp_path, text), columns=["a", "b"]).shape == (4, 2)


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u3000"])
def test_unusual_spaces_around_numbers_are_no_text(tmp_path, monkeypatch, space):
    monkeypatch.setattr(csv, "LOOK", 20)
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
        gnomon.source(path, rows=40)
    assert np.isnan(rows_of(gnomon.source(path, rows=40, na="n/a"))[155, 1])


def test_a_record_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    in_pieces(monkeypatch, 400)
    monkeypatch.setattr(csv_stream, "MOST_BYTES", 1000)
    text = "a,b\n" + "1,2\n" * 200 + '"' + "3,4\n" * 500
    with pytest.raises(DataError, match="line 202: a quote is opened and never closed, or"):
        gnomon.source(save(tmp_path, text))
