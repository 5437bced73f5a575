"""Reading: what a whole file becomes, and the hard cases of text (23)."""

import gzip
import io
import os
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.cli.failures import sentence
from gnomon.data.formats import csv as csv_files
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError
from gnomon.errors import DataError, ParameterError, ParameterTypeError, TooLargeError

(
    HEADER,
    *ROWS,
) = """species,island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex,year
Adelie,Torgersen,39.1,18.7,181,3750,male,2007
Adelie,Torgersen,39.5,17.4,186,3800,female,2007
Gentoo,Biscoe,,,,,NA,2008
Gentoo,Biscoe,46.1,13.2,211,4500,female,2008
Gentoo,Dream,50,16.3,230,5700,male,2009
Adelie,Dream,36.7,19.3,193,3450,female,2009
""".splitlines()


def penguins(times=10):
    """The six birds again and again, each time a little heavier and with longer flippers."""
    lines = [HEADER]
    for i in range(times):
        for row in ROWS:
            cells = row.split(",")
            cells[4:6] = [str(int(cell) + i) if cell else "" for cell in cells[4:6]]
            lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def whys(table):
    """Why columns are no features, in the order of the file."""
    left = (*table.roles.kept_for_colour, *table.roles.ignored)
    return {each.column: each.why for each in left}


def refused(path, **options):
    with pytest.raises(DataError) as info:
        read(path, **options)
    return str(info.value)


# --- roles ----------------------------------------------------------------------------------


def test_penguins_are_read_as_a_person_would(write):
    table = read(write(penguins(), "penguins.csv"))
    assert table.columns == ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
    assert table.X.shape == (60, 4)
    assert table.X.dtype == np.float64
    assert np.isnan(table.X[2]).all()
    np.testing.assert_array_equal(table.X[4], [50, 16.3, 230, 5700])
    assert table.label_name == "species"
    assert list(table.labels[:3]) == ["Adelie", "Adelie", "Gentoo"]
    assert table.id_name is None
    assert str(table) == (
        "penguins.csv: 60 rows × 8 columns\n"
        "  features  4 numeric columns (bill_length_mm, bill_depth_mm, flipper_length_mm, "
        "body_mass_g)\n"
        "  label     species\n"
        "  colour    kept for colour: island, sex (text), year (few distinct whole numbers: "
        'keep="year" to use it as a feature)'
    )
    assert table.words(command=True)[2][1] == (
        "kept for colour: island, sex (text), year (few distinct whole numbers: --keep year to use "
        "it as a feature)"
    )


def test_options_overrule_every_guess(write):
    path = write(penguins())
    table = read(path, label="island", keep="year", drop=["body_mass_g", "sex"])
    assert table.label_name == "island"
    assert table.columns == ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "year")
    assert whys(table) == {"species": "text", "sex": "as asked", "body_mass_g": "as asked"}
    assert [left.column for left in table.roles.kept_for_colour] == ["species"]
    table = read(path, label="year", id="species")
    assert list(table.labels[:4]) == ["2007", "2007", "2008", "2008"]
    assert list(table.ids[:3]) == ["Adelie", "Adelie", "Gentoo"]
    assert "year" not in table.columns
    assert "year" in read(path, label="year", keep="year").columns


def test_names_in_options_are_forgiven_case_and_spaces(write):
    path = write("Kind, x\na,1.5\nb,2.5\na,3.5\nb,1.0\n")
    table = read(path, label="kind", keep="x")
    assert table.label_name == "Kind"
    assert table.columns == (" x",)


def test_an_unknown_name_is_told_the_nearest(write):
    path = write("length,width\n1,2\n3,4\n")
    with pytest.raises(OptionError) as info:
        read(path, drop="lenght")
    assert str(info.value) == (
        't.csv has no column "lenght", named by the option `drop`. Did you mean "length"?'
    )
    with pytest.raises(OptionError, match=r'no column "q".*It has "length", "width"\.'):
        read(path, label="q")
    with pytest.raises(OptionError, match=r'It has "width", "length"\.'):  # nearest first
        read(path, label="with of a leaf")


@pytest.mark.parametrize("option", ["label", "id", "keep"])
def test_a_column_cannot_be_wanted_and_dropped(write, option):
    with pytest.raises(OptionError, match=f'"a" is named by both {option} and drop. Name it once.'):
        read(write("a,b\n1,2\n3,4\n"), drop="a", **{option: "a"})


def test_options_of_a_wrong_kind_are_refused(write):
    path = write("a,b\n1,2\n3,4\n")
    with pytest.raises(ParameterTypeError, match="`label` must be the name of a column; got 3"):
        read(path, label=3)
    with pytest.raises(ParameterTypeError, match=r"`drop` must be a name or a list of names"):
        read(path, drop=[1])


def test_ids_are_found_by_name_and_stay_as_they_are_written(write):
    table = read(write("id,x,y\n007,1,2\n0008,3,4\n9007199254740993,5,6\n"))
    assert table.id_name == "id"
    assert list(table.ids) == ["007", "0008", "9007199254740993"]
    assert table.columns == ("x", "y")
    assert dict(table.lines())["id"] == "id"


def test_distinct_texts_are_ids_where_their_name_says_so(write):
    table = read(write("x,town\n1,Bonn\n2,Köln\n3,Ulm\n"))
    assert table.id_name == "town"
    assert list(table.ids) == ["Bonn", "Köln", "Ulm"]
    said = read(write("x,remark\n1,cold\n2,warm\n3,dry\n"))
    assert said.id_name is None
    assert whys(said) == {"remark": "text, different in every row"}


def test_what_pandas_writes_before_the_first_name_is_an_id(write):
    table = read(write(",x,y\n0,1.5,2\n1,3.5,4\n2,0.5,1\n"))
    assert table.columns == ("x", "y")
    assert list(table.ids) == ["0", "1", "2"]
    assert table.notes == ("column 1 has no name",)


def test_an_id_that_repeats_is_left_out_and_can_be_kept(write):
    path = write("patient_id,x\n1,0.5\n1,1.5\n2,2.5\n")
    table = read(path)
    assert table.columns == ("x",)
    assert whys(table) == {"patient_id": "named like an id, but repeated"}
    assert read(path, keep="patient_id").columns == ("patient_id", "x")


def test_a_label_of_digits_is_found_by_its_name_among_pixels(write):
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(60) % 10, rng.integers(0, 3, (60, 5)) * 127])
    text = "label,p1,p2,p3,p4,p5\n" + "\n".join(",".join(map(str, row)) for row in rows)
    table = read(write(text))
    assert table.label_name == "label"
    assert set(table.labels) == set("0123456789")
    assert table.X.shape == (60, 5)  # pixels of few values stay
    assert not whys(table)


def test_answers_and_counts_all_stay(write):
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 6, (100, 4))
    table = read(write("a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in rows)))
    assert table.columns == tuple("abcd")


@pytest.mark.parametrize("mark", ["-", "/", "."])
def test_dates_that_differ_in_every_row_can_name_the_rows(write, mark):
    lines = ["day,a", *(f"2012{mark}01{mark}{i + 1:02d},{i * i % 7}.5" for i in range(20))]
    path = write("\n".join(lines) + "\n")
    (left,) = read(path).roles.ignored
    assert (left.why, left.can_name_rows) == ("dates, different in every row", True)
    assert read(path, id="day").ids[1] == f"2012{mark}01{mark}02"


def test_dates_empty_columns_and_truth(write):
    rng = np.random.default_rng(0)
    flags = ["true" if i % 3 else "False" for i in range(40)]
    rows = [
        f"2024-01-{i % 28 + 1:02d},,{flag},{rng.random()},{rng.random()}"
        for i, flag in enumerate(flags)
    ]
    path = write("day,void,flag,x,z\n" + "\n".join(rows))
    table = read(path)
    assert table.columns == ("x", "z")
    assert whys(table) == {"day": "dates", "void": "no values"}
    assert table.label_name == "flag"
    np.testing.assert_array_equal(read(path, keep="flag").X[:4, 0], [0, 1, 1, 0])
    assert refused(path, keep="day") == (
        't.csv: column "day" holds dates. Leave it out of the option `keep`. To use them, choose '
        "an encoding, such as days since the first."
    )
    assert (
        refused(path, keep="void")
        == 't.csv: column "void" has no values. Leave it out of the option `keep`.'
    )


def test_text_cannot_be_kept_as_numbers(write):
    path = write("x,kind\n1,a\n2,b\n3,a\n4,b\n")
    assert refused(path, keep="kind") == (
        't.csv: column "kind" holds text, not numbers. Leave it out of the option `keep`.'
    )


def test_a_file_without_numbers_is_refused(write):
    assert refused(write("a,b\nx,y\nz,y\n")) == (
        't.csv has no column of numbers to use. Its columns are "a" (text), "b" (text).'
    )


def test_new_rows_are_read_with_the_columns_of_a_model(write):
    path = write("town,b,c,a\nBonn,1,9,2\nUlm,3,8,4\n")
    table = read(path, columns=["a", "b"])
    np.testing.assert_array_equal(table.X, [[2, 1], [4, 3]])
    assert whys(table) == {"c": "not among the model's columns"}
    assert list(table.ids) == ["Bonn", "Ulm"]
    assert refused(path, columns=["a", "z"]) == (
        't.csv lacks 1 of the 2 columns of the model: "z". Columns are found by their names, in '
        "any order."
    )


def test_new_rows_without_names_are_taken_in_order(write):
    table = read(write("1,2\n3,4\n"), columns=["a", "b"])
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_passengers_are_read_as_a_person_would(write):
    tickets = [f"A/{i} {i * 7}" if i % 4 == 0 else str(30_000 + 37 * i) for i in range(80)]
    rows = [
        f'{i + 1},{i % 2},"Doe, Mr. {i}",{"male" if i % 3 else "female"},{20 + i / 8},{ticket}'
        for i, ticket in enumerate(tickets)
    ]
    table = read(write("\n".join(["PassengerId,Survived,Name,Sex,Age,Ticket", *rows])))
    assert table.id_name == "PassengerId"
    assert table.label_name == "Survived"
    assert table.columns == ("Age",)
    assert whys(table) == {"Name": "another id", "Sex": "text", "Ticket": "text"}
    assert [name for name, _ in table.others] == ["Sex"]


def test_one_word_in_many_rows_and_many_words_in_few_are_errors(write):
    rows = ["n/a" if i % 3 == 0 else str(i / 2) for i in range(90)]
    path = write("\n".join(["x,y", *(f"{row},1" for row in rows)]))
    assert 'column "x" holds text in 30 rows (first: line 2, "n/a")' in refused(path)
    rows = [f"w{i}" if i % 30 == 7 else str(i / 2) for i in range(600)]
    path = write("\n".join(["x,y", *(f"{row},1" for row in rows)]))
    assert 'column "x" holds text in 20 rows (first: line 9, "w7")' in refused(path)


def test_a_line_for_excel_is_passed_over(write):
    table = read(write("sep=;\na;b\n1;2\n3;4\n"))
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert table.places.of(1) == "line 4"
    assert refused(write("sep=;\na;b\n1;2\n3\n")).startswith("t.csv, line 4: 1 field, where")


def test_labels_may_be_missing(write):
    table = read(write("x,label\n1,\n3,A\n5,A\n7,NA\n8,B\n"))
    assert list(table.labels) == [None, "A", "A", None, "B"]


def test_a_number_beyond_all_numbers_is_infinite_and_can_be_missing(write):
    path = write("x,y\n1e400,2\n3,4\n")
    assert read(path).X[0, 0] == np.inf
    assert np.isnan(read(path, na="inf").X[0, 0])


def test_codes_with_leading_zeros_are_no_measurements(write):
    path = write("zip,x\n01234,1.5\n01234,2.5\n99999,3\n99999,4\n01234,0\n")
    table = read(path)
    assert table.columns == ("x",)
    assert list(table.labels) == ["01234", "01234", "99999", "99999", "01234"]
    table = read(path, label="x", keep="x")
    assert whys(table) == {"zip": "codes with leading zeros"}
    assert read(path, keep="zip").X[0].tolist() == [1234, 1.5]


def test_names_of_rows_as_r_writes_them(write):
    table = read(write('"x","y"\n"r1",1,2\n"r2",3,4\n'))
    assert list(table.ids) == ["r1", "r2"]
    assert table.columns == ("x", "y")
    ended = read(write("x,y\n1,2,\n3,4,\n"))
    assert ended.columns == ("x", "y")
    assert ended.X.tolist() == [[1, 2], [3, 4]]


def test_many_columns_are_read_in_time(write):
    names = [f"gene{j}" for j in range(20_000)]
    row = ",".join(["0.5"] * 20_000)
    path = write("\n".join([",".join(names), row, row, row]))
    start = time.process_time()
    table = read(path, columns=names[::-1])
    assert table.columns[0] == "gene19999"
    assert table.X.shape == (3, 20_000)
    # Work that grows with the square of the columns would take far longer.
    assert time.process_time() - start < 15


# --- text, as people write it -------------------------------------------------------------------


def test_a_european_file_with_everything(write):
    text = '\ufeffGröße;Gewicht;Art\r\n1,5;2,25;"Ei; ""groß"""\r\n-3,0;1,5e3;Ei\r\n0;7;Ei\r\n'
    table = read(write(gzip.compress(text.encode()), "eier.csv.gz"))
    assert table.columns == ("Größe", "Gewicht")
    np.testing.assert_array_equal(table.X, [[1.5, 2.25], [-3, 1500], [0, 7]])
    assert list(table.labels) == ['Ei; "groß"', "Ei", "Ei"]
    assert table.notes == (
        "columns are delimited by semicolons",
        "decimals are written with a comma",
    )


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("a\tb\n1\t2\n3\t4\n", "columns are delimited by tabs"),
        ("a|b\n1|2\n3|4\n", "columns are delimited by bars"),
        ("a b\n1 2\n3 4\n", "columns are delimited by spaces"),
        ("1,2\n3,4\n", "there is no header row"),
        ("a;b\n1;2\n3;4\n", "columns are delimited by semicolons"),
    ],
)
def test_what_was_guessed_is_said(write, text, note):
    table = read(write(text))
    assert note in table.notes
    assert table.X[-1].tolist() == [3, 4]


def test_one_column_of_decimal_commas_is_not_two_columns(write):
    table = read(write("x\n1,5\n2,5\n"))
    assert table.X.tolist() == [[1.5], [2.5]]


def test_without_names_decimal_commas_and_semicolons(write):
    np.testing.assert_array_equal(read(write("1,5;2,5\n3,5;4,5\n")).X, [[1.5, 2.5], [3.5, 4.5]])


def test_a_mark_that_may_divide_thousands_or_decimals_is_refused_unless_it_is_said_which(write):
    path = write('a,b\n"1,234",2\n"5,678",3\n1,2\n7,8\n9,3\n')
    assert refused(path) == (
        't.csv: column "a" holds "1,234" (line 2), whose mark may divide thousands or decimals, '
        'and no other cell says which. Use decimal=".", decimal=",", or drop="a".'
    )
    assert read(path, decimal=".").X[:3, 0].tolist() == [1234, 5678, 1]
    assert read(path, decimal=",").X[:3, 0].tolist() == [1.234, 5.678, 1]
    assert read(path, drop="a").columns == ("b",)
    with pytest.raises(ParameterError, match="`decimal` must be"):
        read(path, decimal=";")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_encodings_with_a_mark_are_read(write, encoding):
    table = read(write("Größe,n\n1,2\n3,4\n".encode(encoding)))
    assert table.columns == ("Größe", "n")


def test_windows_text_is_read_and_said(write):
    table = read(write("Größe,n\n1,2\n3,4\n".encode("cp1252")))
    assert table.columns == ("Größe", "n")
    assert table.notes == ("text is read as Windows-1252: line 1 is not UTF-8",)
    assert refused(write(b"a,b\n1,2\n3,\x81\n")) == (
        "t.csv, line 3: byte 0x81 is not UTF-8. Save it as UTF-8."
    )


def test_names_that_are_empty_or_doubled_are_made_unique_and_said(write):
    table = read(write("a,a,,a (2),\n1,2,3,4,5.5\n6,7,8,9,1.5\n"))
    assert table.columns == ("a", "a (3)", "column 3", "a (2)", "column 5")
    assert table.notes == (
        'more than one column is called "a": column 2 is called "a (3)" here',
        "2 columns have no name, the first is column 3",
    )


def test_hostile_strings_stay_as_they_are(write):
    evil = ["</script><script>alert(1)</script>", "=HYPERLINK(1)", "a\u2028b", "x\ny", "'; --"]
    rows = "".join(f'"{text}",{i}.5,{i}\n' for i, text in enumerate(evil))
    table = read(write('"<img onerror=x>",v,"w ""q"""\n' + rows), id="<img onerror=x>")
    assert table.id_name == "<img onerror=x>"
    assert list(table.ids) == evil
    assert table.columns == ("v",)
    assert whys(table) == {'w "q"': "another id"}
    assert "<img" not in table._repr_html_()


def test_lines_are_right_after_quoted_newlines_and_blank_lines(write):
    path = write('kind,x\n"a\n\nb",1\n\n\r\n"a",2\n"b",3\n"a",x9\n"b",2\n"b",2\n')
    assert 'in 1 row (first: line 9, "x9")' in refused(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_end_of_line_is_known(write, end):
    table = read(write(end.join(["a,b", "1,2", "3,4", ""])))
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert "line 4" in refused(write(end.join(["a,b", "1,2", "3,4", "5,6,7", ""])))


@pytest.mark.parametrize(
    ("late", "dtype"),
    [
        ("7", "u1"),
        ("-300", "i2"),
        ("70000", "i4"),
        ("0.25", "f8"),
        ("123456789012", "f8"),
        ("1e3", "f8"),
        ("", "f8"),
    ],
)
def test_whole_numbers_are_read_as_such_unless_one_late_in_the_file_is_none(write, late, dtype):
    lines = ["a,b", *(f"{i % 200},{i % 7}" for i in range(40_000))]
    lines[39_000] = f"{late},5"
    X = read(write("\n".join(lines))).X
    assert X.dtype == np.dtype(dtype)
    assert X[38_999].tolist() == pytest.approx([float(late or "nan"), 5], nan_ok=True)
    assert X[39_999].tolist() == [199, 39_999 % 7]


def test_a_late_fraction_costs_one_more_reading_and_no_text(write, monkeypatch):
    kinds = []

    def spy(source, reading, parsing, converting):
        kinds.append({str(kind) for kind in converting.column_types.values()})
        return read_csv(source, reading, parsing, converting)

    read_csv = csv_files.pc.read_csv
    monkeypatch.setattr(csv_files.pc, "read_csv", spy)
    lines = ["a,b,c", *(f"{i % 200},{i % 7},{i % 5}" for i in range(40_000)), "0.5,0.25,3"]
    assert read(write("\n".join(lines))).X[-1].tolist() == [0.5, 0.25, 3]
    assert kinds == [{"int32"}, {"double"}]


def test_a_surprise_late_in_the_file_has_its_line(write):
    lines = ["price,size", *(f"{i}.5,{i}" for i in range(200_000))]
    lines[150_000] = "N/A,5"
    lines[150_010] = "n/a,5"
    path = write("\n".join(lines))
    with pytest.raises(FileError) as info:
        read(path)
    problem = 't.csv: column "price" holds text in 2 rows (first: line 150001, "N/A").'
    assert str(info.value) == f'{problem} Use na="N/A", or drop="price".'
    assert sentence(info.value) == f"{problem} Use --na N/A, or --drop price."
    table = read(path, na=["N/A", "n/a"])
    assert np.flatnonzero(np.isnan(table.X[:, 0])).tolist() == [149_999, 150_009]
    assert read(path, drop="price").columns == ("size",)


def test_surprises_in_many_columns_are_read_in_three_passes(write):
    lines = ["a,b,c,d", *("1.5,2.5,3.5,4.5" for _ in range(3000))]
    lines[2000] = "x,y,z,4"
    table = read(write("\n".join(lines)), na=["x", "y", "z"])
    assert np.isnan(table.X[1999]).tolist() == [True, True, True, False]
    assert 'column "a"' in refused(write("\n".join(lines)))


def test_numbers_that_stand_for_missing_values(write):
    table = read(write("a,b\n1,-999\n-999.0,2\n3,4\n"), na="-999")
    assert np.isnan(table.X).tolist() == [[False, True], [True, False], [False, False]]


@pytest.mark.parametrize("word", ["", "NA", "NaN", "nan", "null", "NULL", " NA "])
def test_the_usual_words_for_nothing(write, word):
    table = read(write(f"a,b\n1,2\n{word},4\n5,6\n"))
    assert np.isnan(table.X[1, 0])
    assert not np.isnan(table.X[:, 1]).any()


def test_numbers_in_every_spelling(write):
    texts = ["1", "+2", "-3.5", ".5", "5.", "1e3", "1E-3", " 7 ", "-0"]
    table = read(write("x,y\n" + "\n".join(f"{text},1" for text in texts)))
    assert table.X[:, 0].tolist() == [1, 2, -3.5, 0.5, 5, 1000, 0.001, 7, 0]


# --- text that is broken ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv is empty. It needs a header row and rows of numbers."),
        ("\n\r\n\n", "t.csv is empty. It needs a header row and rows of numbers."),
        ("a,b\n", "t.csv has a header row (line 1) and no rows."),
        ("\ufeff", "t.csv is empty. It needs a header row and rows of numbers."),
        (
            "a,b\n1,2\n3,4,5\n6,7\n",
            "t.csv, line 3: 3 fields, where the header row has 2. Mend the line, or remove it.",
        ),
        (
            "a,b\n1,2\n\n3\n6,7\n",
            "t.csv, line 4: 1 field, where the header row has 2. Mend the line, or remove it.",
        ),
        (
            "1,2\n3,4,5\n",
            "t.csv, line 2: 3 fields, where the first line has 2. Mend the line, or remove it.",
        ),
        (
            "a,b\n1,2\n3,\x00\n",
            "t.csv, line 3: there is a NUL byte. The file is damaged, or it is "
            "no text; text in UTF-16 must be saved as UTF-8.",
        ),
        (
            'a,b\n1,2\n3,"open\n5,6\n',
            "t.csv, line 3: a quote is opened and never closed. Close it, "
            "or double it if it is part of the text.",
        ),
    ],
)
def test_broken_text_is_refused_with_its_line(write, text, message):
    assert refused(write(text)) == message


def test_an_odd_number_of_quotes_may_be_right(write):
    table = read(write('x,pipe\n1,5" wide\n2,thin\n3,thin\n4,thin\n'))
    assert table.labels[0] == '5" wide'


def test_a_line_longer_than_a_block_is_read(write, monkeypatch):
    monkeypatch.setattr("gnomon.data.formats.csv.BLOCK", 64)
    monkeypatch.setattr("gnomon.data.formats.csv.ROWS_A_BLOCK", 0)
    names = ",".join(f"c{i}" for i in range(100))
    row = ",".join(f"{i}.25" for i in range(100))
    assert read(write(f"{names}\n{row}\n{row}\n")).X.shape == (2, 100)


def test_quoted_newlines_may_stand_anywhere_in_a_large_file(write, monkeypatch):
    monkeypatch.setattr("gnomon.data.formats.csv.BLOCK", 100)
    monkeypatch.setattr("gnomon.data.formats.csv.ROWS_A_BLOCK", 0)
    rows = "".join(f'"name\n{i},5\n",{i}.5\n' for i in range(300))
    table = read(write("who,x\n" + rows), id="who")
    assert table.ids[7] == "name\n7,5\n"
    assert table.X[:, 0].tolist() == [i + 0.5 for i in range(300)]
    assert table.places.of(2) == "line 8"


def test_a_cut_gz_is_refused(write):
    packed = gzip.compress(b"a,b\n1,2\n" * 1000)
    assert refused(write(packed[:-20], "t.csv.gz")) == (
        "t.csv.gz: the gz file is cut short. Copy it again."
    )
    broken = bytearray(packed)
    broken[-6] ^= 255
    assert "t.csv.gz: the gz file is damaged" in refused(write(bytes(broken), "t.csv.gz"))


def test_several_gz_members_are_one_file(write):
    packed = gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n")
    assert read(write(packed)).X.tolist() == [[1, 2], [3, 4]]


def test_a_gz_bomb_is_found_before_it_fills_the_memory(write):
    packed = gzip.compress(b"0" * 50_000_000)
    with pytest.raises(TooLargeError, match=r"t\.csv\.gz needs more memory than the 10\.0 MB"):
        read(write(packed, "t.csv.gz"), memory=10_000_000)


def test_a_table_beyond_the_memory_is_refused_first(write):
    path = write("a,b\n" + "1,2\n" * 1000)
    with pytest.raises(
        TooLargeError, match=r"its table needs about 32\.0 kB of memory, more than the 1\.0 kB"
    ):
        read(path, memory=1000)


# --- which file ---------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_told_the_nearest(write, tmp_path):
    write("a\n1\n", "cells.csv")
    with pytest.raises(
        OptionError, match=r'There is no file ".*cell\.csv"\. Did you mean ".*cells'
    ):
        read(tmp_path / "cell.csv")
    with pytest.raises(OptionError, match=r'There is no folder ".*nowhere" either\.'):
        read(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(OptionError, match=r'There is no file "a\\x00b"\.'):
        read("a\0b")


@pytest.mark.parametrize(
    ("start", "what", "way"),
    [
        (
            b"\x89HDF\r\n",
            "HDF5",
            "An AnnData file is read if its name ends in .h5ad; save other "
            "tables as Parquet or CSV.",
        ),
        (b"BZh9", "bzip2", "Save the table as CSV."),
        (b"PARE", "encrypted parquet", "Save the table as CSV."),
    ],
)
def test_files_that_are_not_read_are_named(write, start, what, way):
    assert refused(write(start + b"1234")) == f"t.csv is {what}, which is not read. {way}"


def test_columns_that_group_rows_are_kept_to_colour_by_although_they_are_left_out(write):
    lines = ["name,kind,owner,rooms,note,area"]
    for i in range(40):
        owner = "" if i == 3 else "yes" if i % 3 else "no"
        lines.append(f"h{i},{'ab'[i % 2]},{owner},{i % 4},remark {i},{i + 0.5},{i * i + 0.25}")
    lines[0] += ",price"
    table = read(write("\n".join(lines) + "\n"), drop="note")
    assert (table.id_name, table.label_name) == ("name", "kind")
    assert list(whys(table)) == ["owner", "rooms", "note"]
    assert [left.column for left in table.roles.ignored] == ["note"]
    (owner, owners), (rooms, counts) = table.others
    assert (owner, rooms) == ("owner", "rooms")
    assert owners[:5].tolist() == ["no", "yes", "yes", None, "yes"]
    some = table.take(np.array([1, 3]))
    assert [values.tolist() for _, values in some.others] == [["yes", None], [1, 3]]
    assert counts[:4].tolist() == [0, 1, 2, 3]
    # A column of its own for each row groups nothing, nor does one that was dropped.
    assert read(write("\n".join(lines) + "\n"), drop="rooms").others[0][0] == "owner"
    assert len(read(write("\n".join(lines) + "\n"), drop="rooms").others) == 1


def test_json_is_named_and_a_csv_that_begins_like_it_is_read(write):
    assert refused(write('{"a": [1, 2]}', "t.json")) == (
        't.json is a JSON object, which is not read. Write rows as an array, [{"column": value, '
        "…}, …], or one object a line (JSON lines, .jsonl)."
    )
    assert read(write("[m],[s]\n1,2\n3,5\n", "t.csv")).columns == ("[m]", "[s]")


def test_the_first_bytes_say_what_a_file_is(write, tmp_path):
    pq.write_table(pa.table({"a": [1.5, 2.5]}), tmp_path / "t.csv")
    assert read(tmp_path / "t.csv").columns == ("a",)
    message = refused(write("a,b\n1,2\n", "t.parquet"))
    assert message == (
        "t.parquet is not a Parquet file: it begins with b'a,b\\n1,2\\n'. Was it copied whole?"
    )
    assert refused(write("", "t.npy")) == "t.npy is empty. Was it copied whole?"


def test_standard_input_is_read(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"a,b\n1,2\n3,4\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    table = read("-")
    assert table.name == "standard input"
    assert table.X.tolist() == [[1, 2], [3, 4]]


def test_a_named_pipe_is_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"a,b\n1,2\n3,4\n",))
    writer.start()
    table = read(pipe)
    writer.join()
    assert table.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npy", "npz"])
def test_every_format_gives_the_same_table(tmp_path, kind):
    X = np.random.default_rng(0).standard_normal((50, 3))
    path = tmp_path / f"t.{kind}"
    arrow = pa.table({f"c{j}": X[:, j] for j in range(3)})
    if kind == "csv":
        path.write_text("c0,c1,c2\n" + "\n".join(",".join(map(repr, r)) for r in X.tolist()))
    elif kind == "parquet":
        pq.write_table(arrow, path)
    elif kind == "feather":
        pf.write_feather(arrow, path)
    elif kind == "npy":
        np.save(path, X)
    else:
        np.savez_compressed(path, X=X, columns=["c0", "c1", "c2"])
    table = read(path)
    assert table.X.tobytes() == X.tobytes()
    if kind != "npy":
        assert table.columns == ("c0", "c1", "c2")


# --- any table in any dialect -------------------------------------------------------------------

texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]),
    min_size=1,
    max_size=8,
)
cells = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False, width=64))


@given(
    data=st.data(),
    names=st.lists(texts.filter(str.strip), min_size=1, max_size=4, unique=True),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    pack=st.booleans(),
    always=st.booleans(),
)
def test_a_table_comes_back_from_any_dialect(
    tmp_path_factory, data, names, delimiter, end, bom, pack, always
):
    names = [f"n{j}{name}" for j, name in enumerate(names)]  # no name is a number, an id or a label
    n = data.draw(st.integers(2, 6))
    row = st.tuples(*(cells for _ in names), st.floats(0.5, 9.5).map(lambda x: x / 3))
    rows = data.draw(st.lists(row, min_size=n, max_size=n))
    decimal = "." if delimiter == "," else data.draw(st.sampled_from(".,"))
    ids = data.draw(st.lists(texts, min_size=n, max_size=n, unique=True))

    def quote(text):
        odd = always or any(c in text for c in f'{delimiter}"\r\n') or text != text.strip()
        return '"' + text.replace('"', '""') + '"' if odd else text

    def show(x):
        return "" if x is None else quote(repr(x).replace(".", decimal))

    lines = [delimiter.join(map(quote, ["which", *names, "last"]))]
    lines += [delimiter.join([quote(i), *map(show, row)]) for i, row in zip(ids, rows, strict=True)]
    content = (end.join(lines) + end).encode("utf-8-sig" if bom else "utf-8")
    path = tmp_path_factory.mktemp("dialect") / "t.csv"
    path.write_bytes(gzip.compress(content) if pack else content)
    table = read(path, id="which", keep=[*names, "last"] if _filled(rows, len(names)) else None)
    used = [j for j, name in enumerate([*names, "last"]) if name in table.columns]
    expected = np.array(rows, dtype=float)[:, used]
    np.testing.assert_array_equal(table.X, expected)
    assert list(table.ids) == ids
    others = {table.label_name} - {None}
    assert {*whys(table)} | others | {"which", *table.columns} == {"which", *names, "last"}


def _filled(rows, width):
    return all(any(row[j] is not None for row in rows) for j in range(width))


CONTENT = 'id,"a, b",c\n1,"1,5",x\n2,2.5,"y\nz"\n3,0.5,x\n'.encode("utf-8-sig")


@given(at=st.integers(0, len(CONTENT) - 1), value=st.integers(0, 255))
def test_one_changed_byte_is_refused_in_words_or_read(tmp_path_factory, at, value):
    path = tmp_path_factory.mktemp("byte") / "t.csv"
    path.write_bytes(CONTENT[:at] + bytes([value]) + CONTENT[at + 1 :])
    try:
        table = read(path)
    except DataError as error:
        message = str(error)
    else:
        message = f"{table.name}."
        assert table.X.shape[1] == len(table.columns)
    assert message.startswith("t.csv")


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_in_words_or_read(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "t.csv"
    path.write_bytes(content)
    try:
        read(path)
    except DataError as error:
        assert str(error).startswith("t.csv")  # noqa: PT017 (either outcome is right)


@pytest.mark.parametrize("text", ["a,b\n1,2\n3,4\n", "a,b\n1,2\n3,4,5\n"])
def test_no_thread_has_the_bytes_when_a_table_is_read_or_refused(write, monkeypatch, text):
    """One that gives them back while Python ends aborts the process."""
    real, gone = csv_files.pc.read_csv, []

    def slow(source, *options):
        def release(held):
            time.sleep(0.2)
            gone.append(True)
            held.clear()

        threading.Thread(target=release, args=([source],)).start()
        return real(source, *options)

    monkeypatch.setattr(csv_files.pc, "read_csv", slow)
    with suppress(FileError):
        read(write(text))
    assert gone
