"""What columns are used for, as a user sees it: the same of a file and of a folder, everywhere."""

import json

import numpy as np
import pytest
from commands import gnomon, refused
from report.pages import Page

from gnomon.data.open import open_table
from gnomon.errors import ParameterError

N = 60
ROLES = ("features", "label", "id", "kept_for_colour", "ignored")
SAID = (
    "Features 2 numeric columns (length, width)\n"
    "Label    species\n"
    "Id       name\n"
    "Colour   kept for colour: year (few distinct whole numbers: --keep year to use it as a "
    "feature)\n"
    'Ignored  price (text such as "$1,000.00")\n'
)
PAGE = {
    "features": "2 numeric columns (length, width)",
    "label": "species",
    "id": "name",
    "colour": "kept for colour: year (few distinct whole numbers)",
    "ignored": "price (text such as “$1,000.00”)",
}


def write(path, part=slice(None)):
    rng = np.random.default_rng(0)
    rows = [
        f"f{i},{('lily', 'rose')[i % 2]},{2020 + i % 3},{rng.normal():.4f},{rng.normal():.4f},"
        f'"${1000 + i:,}.00"'
        for i in range(N)
    ]
    text = ["name,species,year,length,width,price", *rows[part]]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """One table as a file and as a folder of two."""
    folder = tmp_path_factory.mktemp("columns")
    write(folder / "flowers.csv")
    (folder / "flowers").mkdir()
    for number, part in enumerate((slice(30), slice(30, None))):
        write(folder / "flowers" / f"{number}.csv", part)
    return folder


def lines(done):
    assert done.returncode == 0, done.stderr
    return done.stderr.replace('\\"', '"')


@pytest.mark.parametrize("data", ["flowers.csv", "flowers"])
@pytest.mark.parametrize("command", ["map", "reduce", "inspect"])
def test_one_line_each_says_what_columns_are_for(here, command, data):
    out = [] if command == "inspect" else ["-o", f"{command}-{data}"]
    assert SAID in lines(gnomon(command, data, *out, folder=here))


@pytest.mark.parametrize("data", ["flowers.csv", "flowers"])
def test_record_and_page_say_the_same(here, data):
    lines(gnomon("map", data, "-o", f"m-{data}", folder=here))
    table = json.loads((here / f"m-{data}" / "run.json").read_text(encoding="utf-8"))["table"]
    assert [table[name] for name in ROLES[:3]] == [["length", "width"], "species", "name"]
    assert [left["column"] for left in table["kept_for_colour"]] == ["year"]
    assert [left["column"] for left in table["ignored"]] == ["price"]
    lines(gnomon("report", f"m-{data}", "-o", f"{data}.html", folder=here))
    for page in (here / f"m-{data}" / "report.html", here / f"{data}.html"):
        said = Page(page.read_text(encoding="utf-8")).words
        for role, text in PAGE.items():
            assert f"{role} {text}".replace("“", '"').replace("”", '"') in said.replace('\\"', '"')


def test_a_page_without_its_data_knows_what_columns_were_for(here, tmp_path):
    lines(gnomon("map", "flowers.csv", "-o", tmp_path / "alone", folder=here))
    done = gnomon("report", "alone", "--force", folder=tmp_path)
    assert "Without  the data" in lines(done)
    said = Page((tmp_path / "alone" / "report.html").read_text(encoding="utf-8")).words
    assert "features 2 numeric columns (length, width) label species id name colour" in said


@pytest.mark.parametrize("data", ["flowers.csv", "flowers"])
def test_features_are_what_the_user_names(here, data):
    def features(*asked):
        done = gnomon("inspect", data, "--json", *asked, folder=here)
        return json.loads(lines(done) and done.stdout)["table"]["features"]

    assert features("--features", "*th") == ["length", "width"]
    assert features("--features", "length", "--features", "year") == ["year", "length"]
    assert features("--features", "w*", "--keep", "year") == ["year", "width"]
    assert features("--drop", "width") == ["length"]
    assert features("--drop", "wi*") == ["length"]
    assert features("--keep", "ye*") == ["year", "length", "width"]
    done = gnomon("inspect", data, "--drop", "wi*,le*", folder=here)
    assert refused(done, 2, "named by the option --drop. Give the option once for each name")
    done = gnomon("inspect", data, "--features", "nope*", folder=here)
    assert refused(done, 2, 'has no column that fits "nope*", named by the option --features')
    done = gnomon("inspect", data, "--features", "price", folder=here)
    assert refused(done, 3, 'column "price" holds text, not numbers', "out of the option --feat")


@pytest.mark.parametrize("where", ["t.csv", "t"])
def test_thousands_are_read_as_the_user_says(tmp_path, where):
    (tmp_path / "t").mkdir()
    rows = "".join(f'"{i + 1},{100 + i}",{i * i % 7}.5\n' for i in range(20))
    for path in (tmp_path / "t.csv", tmp_path / "t" / "0.csv"):
        path.write_text("sales,share\n" + rows)
    done = gnomon("inspect", where, folder=tmp_path)
    assert refused(done, 3, 'column "sales" holds "1,100"', "--decimal ., --decimal ,, or --drop")
    done = gnomon("inspect", where, "--decimal", ".", folder=tmp_path)
    assert 'sales: thousands are separated by ","' in lines(done)


def test_names_that_cannot_be_seen_are_quoted(tmp_path):
    (tmp_path / "t.csv").write_text(
        '"a\nb","\x1b[31mred",'
        + "x" * 90
        + ",c\n"
        + "".join(f"{i * i % 7}.5,{i * i % 5}.5,t{i},{i * i % 11}.5\n" for i in range(20))
    )
    said = lines(gnomon("inspect", "t.csv", folder=tmp_path))
    assert 'Features 3 numeric columns ("a\\nb", "\\x1b[31mred", c)\n' in said
    assert f'Ignored  "{"x" * 59}…" (text, different in every row: --id ' in said
    assert "\x1b" not in said


@pytest.mark.parametrize("data", ["flowers.csv", "flowers"])
def test_two_tables_that_are_compared_say_it_too_and_offer_no_option_that_there_is_not(here, data):
    said = lines(gnomon("compare", data, data, folder=here))
    shown = SAID.replace(": --keep year to use it as a feature", "")
    assert said.count(shown) == 2
    said = lines(gnomon("compare", data, data, "--columns", "length", folder=here))
    assert said.count("Features 1 numeric column (length)\n") == 2
    assert said.count('Ignored  price (text such as "$1,000.00"), width (not in --columns)\n') == 2


def test_ids_of_blocks_are_said_to_be_the_ones_that_were_asked_for(here, tmp_path):
    (tmp_path / "t").mkdir()
    rows = "".join(f"r{i},{3 * i},{i * i % 7}.5,{i * i % 11}.5\n" for i in range(20))
    (tmp_path / "t" / "0.csv").write_text("name,code,x,y\n" + rows)
    said = lines(gnomon("compare", "t", "t", "--id", "code", folder=tmp_path))
    shown = "Features 2 numeric columns (x, y)\nId       code\nIgnored  name (another id)\n"
    assert said.count(shown) == 2


@pytest.mark.parametrize("where", ["t.csv", "t"])
def test_every_command_that_reads_numbers_is_told_how_they_are_written(tmp_path, where):
    (tmp_path / "t").mkdir()
    rows = "".join(f'"{i + 1},{100 + i * i % 97}",{i * i % 7}.5\n' for i in range(40))
    for path in (tmp_path / "t.csv", tmp_path / "t" / "0.csv"):
        path.write_text("sales,share\n" + rows)
    lines(gnomon("map", "t.csv", "--decimal", ".", "-o", "m", folder=tmp_path))
    for command in (
        ["place", where, "-m", "m", "-o", "p.parquet"],
        ["align", where, "--to", where, "-o", "a.parquet"],
        ["compare", where, where],
        ["compare", where, where, "--columns", "sales"],
    ):
        assert refused(gnomon(*command, folder=tmp_path), 3, '"sales" holds "1,100"', "--decimal .")
        done = gnomon(*command, "--decimal", ".", folder=tmp_path)
        assert "Features" in lines(done)


@pytest.mark.parametrize("data", ["flowers.csv", "flowers", "iris"])
def test_options_of_anndata_files_are_refused_for_all_others(here, data):
    done = gnomon("reduce", data, "--layer", "counts", "-o", "refused", folder=here)
    assert refused(done, 2, "layer")


def test_options_of_anndata_files_are_refused_for_a_table_in_blocks(here):
    with pytest.raises(ParameterError, match="are for AnnData files"):
        open_table(here / "flowers", in_blocks=True, layer="counts")


def test_an_id_that_two_rows_share_is_refused_before_anything_is_computed(tmp_path):
    rows = [f"r{i % 19},{i * i % 7}.5,{i * i % 11}.25\n" for i in range(20)]
    (tmp_path / "t.csv").write_text("who,a,b\n" + "".join(rows))
    done = gnomon("map", "t.csv", "--id", "who", folder=tmp_path)
    said = 'error: t.csv: column "who" names two rows "r0": line 2 and line 21, and a map takes a '
    assert refused(done, 3, "line 2 and line 21", "Use --text who. Another column may name")
    assert said in done.stderr
    assert "PCA " not in done.stderr
    assert gnomon("reduce", "t.csv", "--id", "who", "-k", "1", folder=tmp_path).returncode == 0
    assert gnomon("map", "t.csv", "--text", "who", folder=tmp_path).returncode == 0
