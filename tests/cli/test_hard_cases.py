"""Bad and hostile files through the command: the right exit code, one sentence, nothing written."""

import contextlib
import errno
import gzip
import io
import os
import pickle
import resource
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import gnomon, refused

ROWS = "".join(f"{i}.5,{i * i % 7}.25\n" for i in range(20))


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def header_of(shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"\0" * 64


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


FILES = {
    "cut.npy": (npy(np.ones((50, 3)))[:-100], "cut.npy"),
    "object.npy": (npy(np.array([Bomb()] * 4, object), allow_pickle=True), "object.npy"),
    "pickle.npy": (pickle.dumps(Bomb()), "pickle"),
    "pickle.csv": (pickle.dumps(Bomb()), "pickle"),
    "huge.npy": (header_of((10**7, 10**6)), "huge.npy"),
    "empty.csv": (b"", "empty.csv is empty"),
    "names.csv": (b"a,b,c\n", "no rows"),
    "ragged.csv": (b"a,b\n1,2\n3,4,5\n", "line 3"),
    "late.csv": (f"a,b\n{ROWS}N/A,2\n".encode(), 'line 22, "N/A"). Use --na N/A, or --drop a.'),
    "nul.csv": (b"a,b\n1,2\n3,\x004\n", "nul.csv"),
    "quote.csv": (b'a,b\n1,"2\n3,4\n', "line 2: a quote is opened and never closed"),
    "cut.csv.gz": (gzip.compress(ROWS.encode())[:-12], "cut short"),
    "book.xlsx": (b"PK\x05\x06" + b"\0" * 18, "is a damaged workbook"),
    "cut.parquet": (b"PAR1" + b"\0" * 40, "damaged Parquet"),
    "text.parquet": (b"a,b\n1,2\n", "is not a Parquet file"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_used_is_told_by_its_name_and_place(tmp_path, name):
    content, says = FILES[name]
    (tmp_path / name).write_bytes(content)
    for command in ("map", "reduce", "inspect"):
        assert refused(gnomon(command, name, folder=tmp_path), 3, name, says)
    assert os.listdir(tmp_path) == [name]  # no results, and no pickle ran


GOOD = {
    "bom.csv": b"\xef\xbb\xbfa,b\n" + ROWS.encode(),
    "crlf.csv": ("a,b\n" + ROWS).replace("\n", "\r\n").encode(),
    "comma.csv": ("a;b\n" + ROWS.replace(",", ";").replace(".", ",")).encode(),
    "newline.csv": ('a,b,"what\nit is"\n' + ROWS.replace("\n", ',"u\nv"\n')).encode(),
    "twice.csv": ("a,a,,\n" + ROWS.replace("\n", ",1,2\n")).encode(),
    "tabs.tsv.gz": gzip.compress(("a\tb\n" + ROWS.replace(",", "\t")).encode()),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_file_that_is_only_unusual_is_read(tmp_path, name):
    (tmp_path / name).write_bytes(GOOD[name])
    done = gnomon("reduce", name, "-k", "1", "--scale", "none", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    stem = name.split(".")[0]
    scores = pq.read_table(tmp_path / f"{stem}_reduced" / "scores.parquet")["pc1"].to_numpy()
    (tmp_path / "plain.csv").write_text("a,b\n" + ROWS)
    gnomon("reduce", "plain.csv", "-k", "1", "--scale", "none", folder=tmp_path)
    plain = pq.read_table(tmp_path / "plain_reduced" / "scores.parquet")["pc1"].to_numpy()
    assert np.allclose(scores, plain, rtol=1e-12, atol=1e-12)  # constant columns add roundings


def test_parquet_of_every_kind_is_used_or_its_column_is_named(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    kinds = pa.array(["a", "b", "c"] * 10).dictionary_encode()
    table = pa.table({"kind": kinds, "vector": pa.array(list(X)), "gap": [None, *X[1:, 0]]})
    pq.write_table(table, tmp_path / "t.parquet")
    done = gnomon("map", "t.parquet", folder=tmp_path)
    assert refused(done, 3, '1 missing value (first: row 0 (rows count from 0), column "gap")')
    done = gnomon("map", "t.parquet", "--drop", "gap", "--perplexity", "5", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        "Features 3 numeric columns (vector[0], vector[1], vector[2])\nLabel    kind\n"
        in done.stderr
    )


def test_a_folder_that_cannot_be_written_to_is_told_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n" + ROWS)
    (tmp_path / "file").write_text("mine")
    done = gnomon("reduce", "t.csv", "-o", "file/out/there", folder=tmp_path)
    assert refused(done, 1, "file' is no folder, so 'file/out/there' cannot be written")
    assert (tmp_path / "file").read_text() == "mine"
    assert len(done.stderr.splitlines()) == 1
    orders = ["map", "t.csv"], ["place", "t.csv", "-m", "m", "-o", "p.csv"]
    with a_full_disk():
        refusals = [gnomon(*order, folder=tmp_path) for order in orders]
    # Whoever runs the tests may write everywhere; the system says no instead.
    monkeypatch.setattr("tempfile.TemporaryFile", says_no)
    refusals += [gnomon(*order, folder=tmp_path) for order in orders]
    for done, why in zip(
        refusals, ["File too large"] * 2 + ["Read-only file system"] * 2, strict=True
    ):
        assert refused(done, 1, f"cannot be written to ({why})")
        assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "t.csv"]


@contextlib.contextmanager
def a_full_disk():
    """Files can be made and nothing be written to them, whatever the permissions say."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def says_no(**_):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.fixture(scope="module")
def reduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hard")
    (folder / "t.csv").write_text("a,b\n" + ROWS)
    assert gnomon("reduce", "t.csv", "-k", "1", folder=folder).returncode == 0
    return folder


def zip_of(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Bomb()),
        zip_of(**{"..__model.json": "{}"}),
        zip_of(**{"model.json": b" " * 50_000_000}),
        b"",
        b"a,b\n1,2\n",
    ],
    ids=["pickle", "outside", "bomb", "empty", "text"],
)
def test_a_model_that_is_none_is_refused_and_nothing_in_it_runs(reduced, content):
    (reduced / "bad.gnomon").write_bytes(content)
    before = sorted(os.listdir(reduced))
    done = gnomon("restore", "t_reduced/scores.parquet", "-m", "bad.gnomon", folder=reduced)
    assert refused(done, 3, "bad.gnomon")
    assert sorted(os.listdir(reduced)) == before


def test_a_flipped_byte_in_a_model_is_refused_or_changes_nothing(reduced):
    whole = (reduced / "t_reduced" / "model.gnomon").read_bytes()
    order = ("restore", "t_reduced/scores.parquet", "-m", "flipped.gnomon", "-q")
    (reduced / "flipped.gnomon").write_bytes(whole)
    right = gnomon(*order, folder=reduced).stdout
    refusals = 0
    for at in np.linspace(0, len(whole) - 1, 60).astype(int):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        (reduced / "flipped.gnomon").write_bytes(bytes(broken))
        done = gnomon(*order, folder=reduced)
        if done.returncode == 0:
            assert done.stdout == right
        else:
            refusals += refused(done, 3, "flipped.gnomon")
    assert refusals > 40
