"""Files as people have them, and what each column must be used for.

A row of `CASES` is a table, the formats that it is written in, and what is expected of its columns.
Every one is read as a file and, where its format can be read in blocks, as a folder: the roles must
be the same. Expectations are those of a person who looks at the table, not what the code does.
"""

import csv
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

import gnomon
from gnomon.cli.failures import sentence
from gnomon.data.preparation import prepare
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError

N = 60
RNG = np.random.default_rng(0)
IN_BLOCKS = ("csv", "parquet", "feather", "npy")


def noise(j=0, n=N):
    """Measurements with fractions, about 5."""
    return np.round(5 + np.random.default_rng(j).normal(size=n), 3)


def whole(low, high, j=0, n=N):
    """Whole numbers from `low` to `high`, both of which occur."""
    found = np.random.default_rng(j).integers(low, high + 1, n)
    found[:2] = low, high
    return found


def several(stem, many, make):
    """Columns with one stem and a number."""
    return {f"{stem}{j}": make(j) for j in range(many)}


def names_of(many):
    """Distinct words that say nothing, such as names of genes."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [f"g{letters[j // 26]}{letters[j % 26]}x" for j in range(many)]


def cycle(*values, n=N):
    return [values[i % len(values)] for i in range(n)]


def shuffled(n=N, start=0):
    return np.random.default_rng(3).permutation(n) + start


@dataclass(frozen=True)
class Case:
    """A table and the roles of its columns; all columns that are not named otherwise are features.

    `files` maps what is written to the formats, where they are not all of `columns` as they are.
    """

    name: str
    columns: dict[str, Any]
    formats: tuple[str, ...] = ("csv", "parquet")
    label: str | None = None
    id: str | None = None
    kept: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    scale: str | None = None
    says: tuple[str, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict)
    text: str | None = None
    features: tuple[str, ...] | None = None

    def expected(self):
        out = {self.label, self.id, *self.kept, *self.ignored} - {*self.asked.get("keep", ())}
        features = self.features or tuple(name for name in self.columns if name not in out)
        return {
            "features": features, "label": self.label, "id": self.id,
            "kept_for_colour": self.kept, "ignored": self.ignored,
        }  # fmt: skip


PIXELS = several("pixel", 20, lambda j: whole(0, 16, j))
MEASURED = {"length": noise(1), "width": noise(2), "depth": noise(3)}
GENES = {name: np.round(np.abs(noise(j) - 5) * 2, 3) for j, name in enumerate(names_of(60))}
COUNTS = {
    name: np.random.default_rng(j).poisson(1 + j % 7, N) for j, name in enumerate(names_of(60))
}
RARE = {name: np.random.default_rng(j).poisson(0.2 + j % 7 / 5, N) for j, name in enumerate(COUNTS)}
VECTORS = pa.array(np.random.default_rng(9).normal(size=(N, 64)).tolist(), pa.list_(pa.float32()))
SHORT = pa.array(np.random.default_rng(9).normal(size=(N, 8)).tolist(), pa.list_(pa.float32()))
TEXTS = [f"remark number {i}" for i in range(N)]

CASES = [
    # Ids: two signals, and never a number with a fraction.
    Case("an id by its name", {"id": shuffled(start=1000), **MEASURED}, id="id"),
    Case("an id in camel case", {"PassengerId": shuffled(), **MEASURED}, id="PassengerId"),
    Case("ids of text", {"barcode": [f"AC{i}-1" for i in range(N)], **MEASURED}, id="barcode"),
    Case("countries", {"country": [f"land {i}" for i in range(N)], **MEASURED}, id="country"),
    Case("an index from 0", {"n": np.arange(N), **MEASURED}, id="n"),
    Case("an index from 1 at the end", {**MEASURED, "no": np.arange(1, N + 1)}, id="no"),
    Case("an unnamed first column", {"": shuffled(start=5), **MEASURED}, ("csv",), id="column 1",
         features=("length", "width", "depth")),
    Case("an unnamed first column of text", {"": [f"r{i}" for i in range(N)], **MEASURED},
         ("csv",), id="column 1", features=("length", "width", "depth")),
    Case("the index of pandas", {**MEASURED, "__index_level_0__": shuffled()}, ("parquet",),
         id="__index_level_0__"),
    Case("saved by pandas twice", {"Unnamed: 0": np.arange(N), "Unnamed: 0.1": np.arange(N),
         **MEASURED}, ("csv",), id="Unnamed: 0", ignored=("Unnamed: 0.1",)),
    Case("a name before an index", {"index": np.arange(N), "name": [f"p{i}" for i in range(N)],
         **MEASURED}, id="name", ignored=("index",)),
    Case("numbers of customers", {"Cust No.": shuffled(start=10_000), **MEASURED}, id="Cust No."),
    Case("a ranking", {"Overall rank": np.arange(1, N + 1), "Country or region":
         [f"land {i}" for i in range(N)], **MEASURED}, id="Overall rank",
         ignored=("Country or region",)),
    Case("unique salaries", {"salary": 30_000 + 37 * shuffled(), **MEASURED}, scale="standard"),
    Case("a refractive index", {"refractive_index": 1.5 + shuffled() / 1000, **MEASURED}),
    Case("a price index of whole numbers", {"price_index": 100 + shuffled(), **MEASURED}),
    Case("an id with fractions is none", {"id": shuffled() + 0.5, **MEASURED}),
    Case("patients seen twice", {"patient_id": shuffled() // 2, **MEASURED},
         kept=("patient_id",)),
    Case("few patients", {"patient_id": cycle(11, 12, 15), **MEASURED}, kept=("patient_id",)),
    Case("ranks in no order", {"rank": shuffled(start=1), **MEASURED}),
    Case("free text is neither id nor label", {"remark": TEXTS, **MEASURED}, ignored=("remark",)),
    Case("vectors of words without names", {}, ("csv",), text="".join(
         f"word{i} 0.{i + 10} -0.{i + 20} 0.{i * 7 % 60 + 10}\n" for i in range(N)), id="column 1",
         features=("column 2", "column 3", "column 4")),
    Case("a table of R with its row names", {}, ("csv",), text="mpg wt\n" + "".join(
         f'"car {i}" {i}.5 0.{i * 7 % 60 + 10}\n' for i in range(N)), id="column 1",
         features=("mpg", "wt")),
    # Labels.
    Case("species", {**MEASURED, "species": cycle("lily", "rose", "iris")}, label="species"),
    Case("two texts", {"island": cycle("a", "b"), "species": cycle("x", "y", "z"), **MEASURED},
         label="species", kept=("island",)),
    Case("penguins", {"species": cycle("Adelie", "Gentoo"), **MEASURED, "mass": whole(2700, 6300),
         "year": cycle(2007, 2008, 2009)}, label="species", kept=("year",)),
    Case("quality of wine", {**MEASURED, "ph": noise(4), "quality": whole(3, 8)}, label="quality"),
    Case("a class of digits among pixels", {"class": whole(0, 9, 50), **PIXELS}, label="class"),
    Case("a survey", several("q", 12, lambda j: whole(1, 5, j)), scale="none"),
    Case("a survey with ages", {"age": whole(18, 80), **several("q", 12, lambda j: whole(1, 5, j))},
         scale="standard"),
    Case("a survey of questions without numbers",
         {name: whole(1, 5, j) for j, name in enumerate(names_of(8))}, scale="none"),
    Case("genotypes", several("rs", 30, lambda j: whole(0, 2, j)), scale="none"),
    Case("genotypes with the population", {**several("rs", 30, lambda j: whole(0, 2, j)),
         "population": cycle("CEU", "YRI", "CHB")}, label="population", scale="none"),
    Case("pixels", PIXELS, ("csv", "parquet", "feather", "npy"), scale="none"),
    Case("rooms, floors, baths", {"rooms": whole(1, 6), "floors": whole(1, 3), "baths": whole(1, 4),
         "area": noise(1), "price": noise(2)}),
    Case("one of few values", {"rooms": whole(1, 6), "area": noise(1), "price": noise(2)},
         label="rooms"),
    Case("as many of few values as others", {"vs": whole(0, 1), "am": whole(0, 1, 1),
         "mpg": noise(1), "wt": noise(2)}),
    Case("a panel of counts with a rare one", {"rare": cycle(0, 0, 0, 1), "often": whole(0, 90),
         "more": whole(0, 70, 1), "most": whole(0, 99, 2)}),
    Case("children beside age and income", {"age": whole(18, 80), "income": whole(9000, 90_000),
         "children": whole(0, 4), "debt": whole(5000, 70_000)}, label="children"),
    Case("booleans", {**MEASURED, "smoker": np.array(cycle(True, False, False))}, label="smoker"),
    Case("booleans in three columns", {**MEASURED, "a": np.array(cycle(True, False)),
         "b": np.array(cycle(True, False, False)), "c": np.array(cycle(False, True, True))},
         label="a", kept=("b", "c")),
    Case("a table of nothing but booleans",
         several("bit", 16, lambda j: whole(0, 1, j).astype(bool)), scale="none"),
    Case("categories", {**MEASURED, "grade": pa.array(cycle("1", "2", "3")).dictionary_encode()},
         ("parquet", "feather"), label="grade"),
    Case("categories of text and of numbers", {**MEASURED,
         "batch": pa.array(cycle(7, 8)).dictionary_encode(),
         "tissue": pa.array(cycle("lung", "skin")).dictionary_encode()},
         ("parquet",), label="tissue", kept=("batch",)),
    Case("dates", {"day": pa.array(list(range(N)), pa.date32()), **MEASURED}, ("parquet",),
         ignored=("day",)),
    Case("dates as text", {"day": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)],
         **MEASURED}, ignored=("day",)),
    Case("a column without values", {**MEASURED, "void": pa.nulls(N, pa.float64())}, ("parquet",),
         ignored=("void",)),
    Case("postal codes", {**MEASURED, "zip": cycle("01067", "04109", "80331")}, label="zip"),
    # Text that is all numbers.
    Case("digits as text named like a label", {**PIXELS, "digit": cycle(*"0123456789")},
         ("parquet", "feather"), label="digit"),
    Case("measurements as text", {"a": [f"{x}" for x in noise(1)], "b": [f"{x}" for x in noise(2)]},
         ("parquet",), says=("a, b",)),
    # Arrays.
    Case("X and y", {"X": np.column_stack([noise(1), noise(2)]), "y": whole(0, 2)}, ("npz",),
         label="y", features=("column 1", "column 2")),
    Case("X and a target with fractions", {"X": np.column_stack([noise(1), noise(2)]),
         "target": noise(3)}, ("npz",), kept=("target",), features=("column 1", "column 2")),
    Case("X, labels and ids", {"X": np.column_stack([noise(1), noise(2)]),
         "labels": np.array(cycle("a", "b")), "ids": np.array([f"c{i}" for i in range(N)])},
         ("npz",), label="labels", id="ids", features=("column 1", "column 2")),
    Case("word vectors and their words", {"vectors": np.column_stack([noise(1), noise(2)]),
         "words": np.array([f"word {i}" for i in range(N)])}, ("npz",), id="words",
         features=("column 1", "column 2")),
    Case("cells with components and genes", {"X": np.column_stack([noise(1), noise(2)]),
         "X_pca": np.column_stack([noise(3), noise(4)]), "louvain": np.array(cycle("0", "1", "2")),
         "genes": np.array(["CD4", "CD8"])}, ("npz",), label="louvain", features=("CD4", "CD8"),
         says=('"X_pca" (60 × 2) not read',)),
    Case("X of whole numbers and y", {"X": np.column_stack([whole(0, 9, j) for j in range(6)]),
         "y": whole(0, 9, 7)}, ("npz",), label="y",
         features=tuple(f"column {j + 1}" for j in range(6)), scale="none"),
    # Files as they are published.
    Case("Titanic", {"PassengerId": np.arange(1, N + 1), "Survived": whole(0, 1),
         "Pclass": whole(1, 3, 1), "Name": [f"Mr. {i}" for i in range(N)],
         "Sex": cycle("male", "female"), "Age": noise(1), "SibSp": whole(0, 5, 2),
         "Parch": whole(0, 4, 3), "Fare": noise(2), "Embarked": cycle(*"SSCQ")}, label="Survived",
         id="PassengerId", kept=("Sex", "Embarked"), ignored=("Name",)),
    Case("breast cancer with the comma at the end", {}, ("csv",), text="id,diagnosis,radius,area,\n"
         + "".join(f"{842000 + i * 37 % 900},{'MB'[i % 2]},{i}.5,{i * 7 % 60}.25,\n"
         for i in range(N)), label="diagnosis", id="id", ignored=("column 5",),
         features=("radius", "area")),
    Case("flowers without names", {}, ("csv",), text="".join(
         f"{i * 7 % 30}.5,{i * 11 % 30}.25,Iris-{('setosa', 'virginica')[i % 2]}\n"
         for i in range(N)), label="column 3", features=("column 1", "column 2")),
    Case("fraud", {"Time": np.sort(whole(0, 170_000)), **{f"V{j + 1}": noise(j) - 5
         for j in range(28)}, "Amount": np.round(np.exp(noise(7)), 2), "Class": whole(0, 1)},
         label="Class", scale="standard"),
    Case("heart disease", {"age": whole(29, 77), "sex": whole(0, 1), "cp": whole(0, 3),
         "trestbps": whole(94, 200), "fbs": whole(0, 1, 1), "oldpeak": noise(1), "slope":
         whole(0, 2, 1), "target": whole(0, 1, 2)}, label="target", scale="standard"),
    Case("handwritten digits of Kaggle", {"label": whole(0, 9), **{f"{r}x{c}": whole(0, 255, 9 * r
         + c) for r in range(1, 9) for c in range(1, 9)}}, label="label", scale="none"),
    Case("cars", {"model": [f"Mazda {i}" for i in range(N)], "mpg": noise(1), "cyl": cycle(4, 6, 8),
         "disp": 40 * noise(2), "vs": whole(0, 1), "am": whole(0, 1, 1), "gear": whole(3, 5)},
         id="model", scale="standard"),
    Case("diamonds", {"": np.arange(1, N + 1), "carat": noise(1), "cut": cycle("Ideal", "Good"),
         "color": cycle(*"DEF"), "price": whole(300, 18_000), "x": noise(2), "y": noise(3),
         "z": noise(4)}, ("csv",), label="cut", id="column 1", kept=("color",),
         features=("carat", "price", "x", "y", "z")),
    Case("customers of a mall", {"CustomerID": np.arange(1, N + 1), "Gender": cycle("Male",
         "Female"), "Age": whole(18, 70), "Annual Income (k$)": whole(15, 137),
         "Spending Score (1-100)": whole(1, 100)}, label="Gender", id="CustomerID"),
    Case("shares", {"Date": [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)],
         "Open": noise(1), "Close": noise(2), "Volume": whole(10**6, 10**8)}, ignored=("Date",),
         scale="standard"),
    Case("customers who left", {"customerID": [f"{i}-XYZ" for i in range(N)],
         "SeniorCitizen": whole(0, 1), "tenure": whole(0, 72), "MonthlyCharges": noise(1),
         "TotalCharges": noise(2), "Churn": cycle("Yes", "No", "No")}, label="Churn",
         id="customerID", kept=("SeniorCitizen",)),
    Case("spectra of grain", {"Sample ID": np.arange(1, N + 1), **{f"{400 + 2 * j} nm": noise(j)
         for j in range(60)}, "moisture (%)": 2 * noise(7), "variety": cycle("a", "b")},
         label="variety", id="Sample ID", kept=("moisture (%)",)),
    Case("a survey with who answered", {"respondent_id": np.arange(1001, 1001 + N),
         "age_group": cycle("18-29", "30-49", "50+"), **several("Q", 20, lambda j: whole(1, 5, j))},
         label="age_group", id="respondent_id", scale="none"),
    # One kind, and strangers beside it.
    Case("a year beside genes", {"year": whole(1990, 2020), **GENES}, kept=("year",), scale="none"),
    Case("n_umi beside counts", {**COUNTS, "n_umi": sum(COUNTS.values()) + 100}, kept=("n_umi",),
         scale="none"),
    Case("two columns beside counts", {**COUNTS, "n_umi": sum(COUNTS.values()) + 100,
         "pct_mito": noise(3)}, kept=("n_umi", "pct_mito"), scale="none"),
    Case("one gene that is there by hundreds", {**RARE, "gzzx": 40 * whole(0, 9)}, scale="none"),
    Case("a share beside genes", {"pct_mito": noise(3) / 200, **GENES}, kept=("pct_mito",)),
    Case("pixels as fractions, without names", {}, ("csv",), text="".join(",".join(
         "0.004" if i == j == 3 else "0" if j == 3 else f"{(i * 7 + j * 13) % 256 / 256:.3f}"
         for j in range(60)) + "\n" for i in range(256)), scale="standard",
         features=tuple(f"column {j + 1}" for j in range(60))),
    Case("spectra with the mass of the sample", {**several("", 80, lambda j: noise(j)),
         "mass": 1000 + shuffled()}, kept=("mass",)),
    Case("spectra with half steps", {f"{400 + j / 2}": noise(j) for j in range(70)}),
    Case("an embedding by numbered columns", {"n_tokens": whole(3, 512),
         **several("e", 64, lambda j: noise(j) - 5)}, kept=("n_tokens",), scale="none"),
    Case("pixels named by row and column", {**{f"pixel_{r}_{c}": whole(0, 255, 8 * r + c)
         for r in range(8) for c in range(8)}, "weight": noise(1)}, kept=("weight",),
         scale="none"),
    Case("two groups of numbered columns", {**several("x", 60, noise), **several("y", 60, noise)}),
    Case("Amount beside V1 to V28", {**{f"V{j + 1}": noise(j) - 5 for j in range(28)},
         "Amount": np.round(np.exp(noise(7)), 2)}, scale="standard"),
    Case("a year beside twenty measurements", {"year": whole(1900, 2020), **{
         name: noise(j) for j, name in enumerate(names_of(20))}}, scale="standard"),
    Case("years as names", {"country": [f"c{i}" for i in range(N)],
         **{str(1960 + j): noise(j) for j in range(55)}, "area": 10_000 + shuffled()},
         id="country", kept=("area",)),
    Case("an embedding as lists", {"year": whole(1990, 2020), "vector": VECTORS},
         ("parquet", "feather"), kept=("year",),
         features=tuple(f"vector[{j}]" for j in range(64))),
    Case("a short vector beside a number", {"mass": noise(1), "vector": SHORT}, ("parquet",),
         features=("mass", *(f"vector[{j}]" for j in range(8)))),
    Case("one of two vectors by its name", {"a": SHORT, "b": SHORT, "mass": noise(1)},
         ("parquet",), asked={"features": "a"}, kept=("mass",), ignored=("b",),
         features=tuple(f"a[{j}]" for j in range(8))),
    # What was asked for.
    Case("features by a pattern", {**several("e", 5, noise), "mass": noise(9), "note": TEXTS},
         asked={"features": "e*"}, kept=("mass",), ignored=("note",)),
    Case("features, and one more, and one less", {**several("e", 5, noise), "mass": noise(9)},
         asked={"features": "e*", "keep": ["mass"], "drop": ["e0"]}, ignored=("e0",),
         features=("e1", "e2", "e3", "e4", "mass")),
    Case("a stranger that is kept", {"year": whole(1990, 2020), **GENES},
         asked={"keep": ["year"]}, scale="standard"),
    Case("a label that was asked for", {"rooms": whole(1, 6), "area": noise(1), "price": noise(2)},
         asked={"label": "area"}, label="area", features=("rooms", "price")),
    Case("dropping a measurement makes no feature of a year", {"year": cycle(2007, 2008, 2009),
         "length": noise(1), "width": noise(2)}, asked={"drop": ["width"]}, label="year",
         ignored=("width",)),
    Case("dropping one of three counts makes no labels of two", {"rooms": whole(1, 6),
         "floors": whole(1, 3), "baths": whole(1, 4), "area": noise(1), "price": noise(2),
         "age": noise(3)}, asked={"drop": ["baths"]}, ignored=("baths",)),
    Case("keeping one of three counts makes no labels of two", {"rooms": whole(1, 6),
         "floors": whole(1, 3), "baths": whole(1, 4), "area": noise(1), "price": noise(2),
         "age": noise(3)}, asked={"keep": ["baths"]}),
    Case("dropping some of sixty genes makes no feature of a year", {"year": whole(1990, 2020),
         **GENES}, asked={"drop": list(GENES)[:20]}, kept=("year",), ignored=tuple(GENES)[:20]),
    # Scale.
    Case("two whole numbers far apart", {"age": whole(18, 80), "income": whole(9000, 90_000)},
         ("csv", "parquet", "feather", "npy"), scale="standard"),
    Case("counts of one kind", several("gene", 60, lambda j: np.random.default_rng(j).poisson(
         1 + 4 * (j % 30), N)), ("csv", "parquet", "npy"), scale="none"),
    # Numbers as they are written elsewhere.
    Case("a German file", {}, ("csv",), text="Größe;Umsatz;Art\n" + "".join(
         f"{i},5;{i % 9 + 1}.{i * 7 % 900 + 100}.{i + 100},{i % 10}0;{'ab'[i % 2]}\n"
         for i in range(N)), label="Art", features=("Größe", "Umsatz"), says=('"."', "Umsatz")),
    Case("an American file", {}, ("csv",), text="sales,share\n" + "".join(
         f'"{i % 9 + 1},{i * 7 % 900 + 100},{i + 100}",{i}.5\n' for i in range(N)),
         features=("sales", "share"), says=('","', "sales")),
    Case("points and three digits are decimals", {}, ("csv",), text="a,b\n" + "".join(
         f"1.{i + 100},{i}.5\n" for i in range(N)), features=("a", "b")),
    Case("marks in text of Parquet", {"sales": [f"{i % 9 + 1}.{i + 100},50" for i in range(N)],
         "share": noise(1)}, ("parquet",), says=('"."', "sales")),
]  # fmt: skip


def write(path, case):
    """Write the table of `case` in the format that the file's name says."""
    if case.text is not None:
        path.write_text(case.text, encoding="utf-8")
    elif path.suffix == ".csv":
        cells = {
            name: each.to_pylist() if hasattr(each, "to_pylist") else np.asarray(each).tolist()
            for name, each in case.columns.items()
        }
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(cells)
            writer.writerows(zip(*cells.values(), strict=True))
    elif path.suffix == ".npy":
        np.save(path, np.column_stack(list(case.columns.values())))
    elif path.suffix == ".npz":
        np.savez(path, **case.columns)
    else:
        table = pa.table({name: pa.array(each) if not isinstance(each, pa.Array) else each
                          for name, each in case.columns.items()})  # fmt: skip
        (pq.write_table if path.suffix == ".parquet" else pf.write_feather)(table, path)


def roles_of(found):
    """Names by role, of a table or of a source."""
    roles = found.roles
    return {
        "features": roles.features, "label": roles.label, "id": roles.id,
        "kept_for_colour": tuple(left.column for left in roles.kept_for_colour),
        "ignored": tuple(left.column for left in roles.ignored),
    }  # fmt: skip


def expected_of(case, ending):
    wanted = case.expected()
    if ending == "npy":
        d = len(wanted["features"])
        return {**wanted, "features": tuple(f"column {j + 1}" for j in range(d))}
    return wanted


def test_distinct_texts_without_a_second_signal_are_no_id_but_can_be(tmp_path):
    path = tmp_path / "t.csv"
    write(path, Case("", {"movie": [f"film {i}" for i in range(N)], **MEASURED}))
    table = read(path)
    (left,) = table.roles.ignored
    assert (left.why, left.can_name_rows) == ("text, different in every row", True)
    assert dict(table.words(command=True))["ignored"] == (
        "movie (text, different in every row: --id movie to name the rows by it)"
    )
    assert read(path, id="movie").id_name == "movie"


@pytest.mark.parametrize(
    ("name", "numbers", "counts"),
    [
        ("Sample Number", [*range(1, 31), *range(1, 21), *range(1, 11)], True),
        ("no.", [*range(25), *range(35)], True),
        # Rows were taken away.
        ("Sample Number", [*range(2, 14), *range(16, 35), *range(1, 9), *range(10, 31)], True),
        ("Sample Number", [*range(1, 90, 3), *range(1, 90, 3)], False),
        ("width", [*range(1, 31), *range(1, 31)], False),  # nothing but a sequence
        ("Sample Number", [*range(1, 31), *range(5, 35)], False),
        ("sample", [1, 2, 3] * 20, False),  # replicates
    ],
)
def test_numbers_of_the_rows_of_each_group_are_no_feature(tmp_path, name, numbers, counts):
    columns = {name: numbers, "a": noise(1), "b": noise(2)}
    pa.csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    for table in (read(tmp_path / "t.csv"), gnomon.source(tmp_path / "t.csv")):
        left = {each.column: each for each in table.roles.ignored}
        assert (name in left) is counts
        if counts:
            assert left[name].why == "numbers the rows of each group"
    assert name in read(tmp_path / "t.csv", keep=name).columns


@pytest.mark.parametrize(
    ("ids", "why", "offered"),
    [
        ([f"i{i}" for i in range(N)], "text", False),
        (range(N), "text, different in every row", True),  # rows are better named than counted
    ],
)
def test_a_table_whose_rows_have_names_needs_no_others(tmp_path, ids, why, offered):
    name = "rank" if offered else "id"
    columns = {name: ids, "movie": [f"film {i}" for i in range(N)]}
    write(tmp_path / "t.csv", Case("", columns | MEASURED))
    roles = read(tmp_path / "t.csv").roles
    (left,) = roles.ignored
    assert (roles.id, left.why, left.can_name_rows) == (name, why, offered)


@pytest.mark.parametrize(
    "form", ["${:,.2f}", "{:.0f} %", "€ {:.2f}", "{:.1f} kg", "{:,.0f} USD", "~{:.1f}", "({:.2f})"]
)
def test_numbers_in_other_dress_are_shown_where_they_are_ignored(tmp_path, form):
    cells = [form.format(1000 + 7.25 * i) if i else "1,234,567" for i in range(N)]
    write(tmp_path / "t.csv", Case("", {"name": [f"n{i}" for i in range(N)], "price": cells,
                                        **MEASURED}))  # fmt: skip
    (left,) = read(tmp_path / "t.csv").roles.ignored
    assert (left.column, left.why) == ("price", f'text such as "{cells[1]}"')


EVERY = [
    pytest.param(case, ending, id=f"{case.name} ({ending})")
    for case in CASES
    for ending in case.formats
]


def test_there_are_enough_of_them_and_none_twice():
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize(("case", "ending"), EVERY)
def test_columns_are_used_as_a_person_would(tmp_path, case, ending):
    path = tmp_path / f"t.{ending}"
    write(path, case)
    table = read(path, **case.asked)
    assert roles_of(table) == expected_of(case, ending)
    assert table.columns == table.roles.features
    assert len(table.columns) == table.X.shape[1]
    if case.scale is not None:
        assert prepare(table).preparation.scale == case.scale
    said = "; ".join(table.notes)
    assert all(word in said for word in case.says)


@pytest.mark.parametrize(
    ("case", "ending"), [each for each in EVERY if each.values[1] in IN_BLOCKS]
)
def test_a_folder_has_the_roles_of_the_file(tmp_path, case, ending):
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder / f"t.{ending}", case)
    source = gnomon.source(folder, **case.asked)
    assert roles_of(source) == expected_of(case, ending)
    table = read(folder / f"t.{ending}", **case.asked)
    assert source.roles == table.roles
    blocks = [source.read(part) for part in source.partitions]
    np.testing.assert_array_equal(np.concatenate(blocks), table.X.astype(source.dtype))


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("columns", [{"digit": 0}, {"batch": 3}, {"batch": 3, "plate": 12}])
def test_a_folder_with_one_group_in_each_file_does_not_use_the_groups(tmp_path, columns, ending):
    """The first file, which roles are seen from, holds one value of each."""
    for part in range(3):
        groups = {name: np.full(N, value + part) for name, value in columns.items()}
        write(tmp_path / f"{part}.{ending}", Case("", groups | MEASURED))
    roles = gnomon.source(tmp_path).roles
    assert roles.features == tuple(MEASURED)
    assert {roles.label, *(left.column for left in roles.kept_for_colour)} == {*columns}


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_groups_that_come_one_after_the_other_are_no_features_of_blocks(tmp_path, ending):
    many = 11_000
    columns = {name: np.resize(values, many) for name, values in MEASURED.items()}
    columns["class"] = np.repeat([0, 1], [many - 500, 500])
    write(tmp_path / f"t.{ending}", Case("", columns))
    source = gnomon.source(tmp_path / f"t.{ending}")
    assert (source.roles.features, source.roles.label) == (tuple(MEASURED), "class")
    assert read(tmp_path / f"t.{ending}").roles.label == "class"


@pytest.mark.parametrize("many", [1, 2])
def test_a_constant_column_of_a_whole_table_is_a_feature_in_a_folder_too(tmp_path, many):
    """With other files it may be a group; three pixels that are 0 in the first file are pixels."""
    constant = {"batch": np.zeros(N, int)} if many == 1 else several("pixel", 3, lambda _: [0] * N)
    columns = {**constant, **(MEASURED if many == 1 else PIXELS | constant)}
    for part in range(many):
        write(tmp_path / f"{part}.csv", Case("", columns))
    assert gnomon.source(tmp_path).roles.features == tuple(columns)


@pytest.mark.parametrize("opened", [read, gnomon.source])
def test_two_columns_of_vectors_are_refused_and_one_of_them_can_be_named(tmp_path, opened):
    path = tmp_path / "t.parquet"
    write(path, Case("", {"title": SHORT, "body": VECTORS, **MEASURED}))
    with pytest.raises(FileError) as told:
        opened(path)
    assert sentence(told.value) == (
        't.parquet has 2 columns of vectors, "title", "body", and a map is made of one. '
        "Use --features title, or --features body."
    )
    assert len(opened(path, features="title").roles.features) == 8
    assert len(opened(path, features=["title", "body"]).roles.features) == 8 + 64
    assert len(opened(path, drop="title").roles.features) == 64  # others are beside 64 of a kind


@pytest.mark.parametrize("opened", [read, gnomon.source])
@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"features": "q*"}, OptionError, 'has no column that fits "q*", named by the option'),
        ({"features": "lenght"}, OptionError, 'Did you mean "length"?'),
        ({"features": ["remark"]}, FileError, 'column "remark" holds text, not numbers. Leave it'),
        ({"features": ["length"], "drop": ["length"]}, FileError, "has no column of numbers"),
        ({"label": "width", "drop": "width"}, OptionError, "is named by both label and drop"),
        ({"keep": "remark"}, FileError, 'column "remark" holds text, not numbers. Leave it'),
        ({"features": 7}, TypeError, "`features` must be a name or a list of names"),
    ],
)
def test_what_cannot_be_a_feature_is_refused(tmp_path, opened, asked, error, says):
    path = tmp_path / "t.csv"
    write(path, Case("", {**MEASURED, "remark": TEXTS}))
    with pytest.raises(error) as told:
        opened(path, **asked)
    assert says in str(told.value)


def test_a_name_with_the_signs_of_a_pattern_is_meant_as_it_is(tmp_path):
    columns = {"a[1]": noise(1), "a1": noise(2), "a*": noise(3), "b": noise(4)}
    write(tmp_path / "t.csv", Case("", columns))
    assert read(tmp_path / "t.csv", features="a[1]").columns == ("a[1]",)
    assert read(tmp_path / "t.csv", features="a*").columns == ("a*",)
    assert read(tmp_path / "t.csv", features="a?").columns == ("a1", "a*")


@pytest.mark.parametrize(
    ("words", "id"),
    [
        (["king", "queen", "making"], "token"),
        (["king", "queen", "king"], None),  # names no row
        (["a king", "a queen", "making"], None),  # a text, not a name
    ],
)
def test_a_text_of_single_words_that_differ_names_the_rows_too(tmp_path, words, id):
    file = tmp_path / "words.csv"
    rows = [f"{word},{j}.5,{j * j}" for j, word in enumerate(words)]
    file.write_text("\n".join(["token,x,y", *rows]) + "\n")
    table = read(file, text="token")
    assert table.id_name == id
    assert table.text[1].tolist() == words
    assert table.roles.features == ("x", "y")


def test_texts_beside_an_array_name_the_rows_though_they_are_shown(tmp_path):
    words = np.array(["new york", "king", "queen"])
    np.savez(tmp_path / "w.npz", vectors=np.eye(3) + 0.5, words=words)
    assert read(tmp_path / "w.npz", text="words").ids.tolist() == words.tolist()
    assert read(tmp_path / "w.npz").ids.tolist() == words.tolist()
