"""`.npy` and `.npz`: hard case 22."""

import io
import pickle
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.data.open import open_table
from gnomon.data.read import read
from gnomon.errors import DataError, TooLargeError

X = np.random.default_rng(0).standard_normal((20, 3))


class Bomb:
    """Unpickling it would be seen."""

    def __reduce__(self):
        return (pytest.fail, ("it was unpickled",))


def refused(path):
    with pytest.raises(DataError) as info:
        read(path)
    return str(info.value)


def header(descr="'<f8'", shape="(20, 3)", version=1, fortran="False"):
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "u1", ">f8", ">i4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_is_the_one_that_was_saved(tmp_path, kind, order):
    array = np.asarray(X * 50, order=order).astype(kind, order="K")
    np.save(tmp_path / "t.npy", array)
    table = read(tmp_path / "t.npy")
    np.testing.assert_array_equal(table.X, array)
    assert table.columns == ("column 1", "column 2", "column 3")
    assert not table.X.flags.writeable
    assert not table.named


def test_a_large_array_stays_in_its_file(tmp_path):
    np.save(tmp_path / "t.npy", X)
    table = read(tmp_path / "t.npy")
    base = table.X
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_of_the_header_is_read(tmp_path, version):
    (tmp_path / "t.npy").write_bytes(header(version=version) + X.tobytes())
    np.testing.assert_array_equal(read(tmp_path / "t.npy").X, X)


def test_a_cut_file_is_refused_with_both_sizes(tmp_path):
    (tmp_path / "t.npy").write_bytes(header() + X.tobytes()[:-8])
    assert refused(tmp_path / "t.npy") == (
        "t.npy is cut short: its header promises 480 bytes (shape (20, 3), float64), and 472 bytes "
        "are there. Was it copied whole?"
    )
    (tmp_path / "t.npy").write_bytes(header() + X.tobytes() + b"more")
    assert "is longer than it should be" in refused(tmp_path / "t.npy")


@pytest.mark.parametrize("shape", ["(10000000000, 1000)", "(4611686018427387904, 4)"])
def test_a_header_that_claims_80_terabytes_allocates_nothing(tmp_path, shape):
    import tracemalloc

    (tmp_path / "t.npy").write_bytes(header(shape=shape) + b"12345678")
    tracemalloc.start()
    message = refused(tmp_path / "t.npy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "is cut short: its header promises" in message
    assert "TB" in message
    assert peak < 1_000_000


def test_objects_are_refused_and_not_unpickled(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[Bomb()]], dtype=object), allow_pickle=True)
    assert refused(tmp_path / "t.npy") == (
        "t.npy holds Python objects, which may run any code when they are read. Save numbers: "
        "numpy.save(…, array.astype(float))."
    )
    np.savez(tmp_path / "t.npz", X=np.array([[Bomb()]], dtype=object))
    assert '"X.npy" holds Python objects' in refused(tmp_path / "t.npz")


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "t.csv", "t.parquet"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_by_any_name_is_refused_and_not_unpickled(tmp_path, name, protocol):
    (tmp_path / name).write_bytes(pickle.dumps(Bomb(), protocol))
    assert refused(tmp_path / name) == (
        f"{name} is a Python pickle, which may run any code when it is read. Save the numbers with "
        "numpy.save(…, allow_pickle=False), or as CSV or Parquet."
    )


@pytest.mark.parametrize("protocol", [0, 1])
def test_an_old_pickle_is_not_an_npy_file(tmp_path, protocol):
    (tmp_path / "t.npy").write_bytes(pickle.dumps(Bomb(), protocol))
    assert refused(tmp_path / "t.npy").startswith("t.npy is not an .npy file: it begins with")


@pytest.mark.parametrize(
    "content",
    [
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{}",
        b"\x93NUMPY\x09\x00\x02\x00{}12345678",
        header(descr="'<f9'"),
        header(shape="(-1, 3)"),
        header(shape="(2.0, 3)"),
        header(shape="[2, 3]"),
        header(shape="(True, 3)"),
        header(fortran="0"),
        header(shape="(" * 3000 + ")" * 3000),
        header(shape="__import__('os').getpid()"),
        header(descr="'<U0'", shape="(1000000000000000,)"),
    ],
)
def test_a_broken_header_is_refused(tmp_path, content):
    (tmp_path / "t.npy").write_bytes(content + b"\0" * 20)
    assert refused(tmp_path / "t.npy") == (
        "t.npy is not an .npy file, or its header is damaged. Save it again."
    )


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.zeros(5),
            "t.npy must hold a table of rows and columns; its shape is (5,). Reshape it: "
            "array.reshape(len(array), -1) makes one row of each entry.",
        ),
        (np.zeros((2, 2, 2)), "t.npy must hold a table of rows and columns; its shape is (2, 2, "),
        (np.zeros((0, 3)), "t.npy has no rows: its shape is (0, 3)."),
        (np.zeros((3, 0)), "t.npy has no columns: its shape is (3, 0)."),
        (np.zeros((2, 2), complex), "t.npy holds complex numbers (complex128), not numbers."),
        (np.zeros((2, 2), "M8[s]"), "t.npy holds dates (datetime64[s]), not numbers."),
        (np.array([["a", "b"]]), "t.npy holds text (<U1), not numbers."),
        (np.zeros((2, 2), [("a", "f8")]), "t.npy holds records of several fields. Save it as CSV"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(tmp_path, array, message):
    np.save(tmp_path / "t.npy", array)
    assert refused(tmp_path / "t.npy").startswith(message)


def test_columns_of_an_array_can_be_dropped_and_be_labels(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[0, 1.5, 2], [1, 3, 4], [0, 5, 6]]))
    table = read(tmp_path / "t.npy", label="column 1", drop="column 3")
    assert table.X.tolist() == [[1.5], [3], [5]]
    assert list(table.labels) == ["0", "1", "0"]
    missing = read(tmp_path / "t.npy", na="5")
    assert np.isnan(missing.X[2, 1])


def test_new_rows_without_names_take_those_of_the_model(tmp_path):
    np.save(tmp_path / "t.npy", X)
    assert read(tmp_path / "t.npy", columns=["a", "b", "c"]).columns == ("a", "b", "c")
    with pytest.raises(DataError, match="lacks 2 of the 2 columns"):
        read(tmp_path / "t.npy", columns=["a", "b"])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_brings_its_labels_ids_and_names(tmp_path, save):
    ids = np.array([f"r{i}" for i in range(20)])
    names = np.array(["u", "v", "w"])
    label = np.arange(20) % 3
    save(tmp_path / "t.npz", X=X, label=label, id=ids, feature_names=names, other=np.zeros(7))
    table = read(tmp_path / "t.npz")
    np.testing.assert_array_equal(table.X, X)
    assert table.columns == ("u", "v", "w")
    assert list(table.labels[:4]) == ["0", "1", "2", "0"]
    assert table.ids[3] == "r3"


def test_an_npz_with_several_tables_is_refused_unless_one_is_x(tmp_path):
    np.savez(tmp_path / "t.npz", train=X, test=X)
    assert refused(tmp_path / "t.npz") == (
        't.npz holds 2 tables ("train", "test"). Save the one to use with numpy.save.'
    )
    np.savez(tmp_path / "t.npz", y=np.zeros(3))
    assert "t.npz holds no table of two dimensions." in refused(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", X=X, test=X)
    np.testing.assert_array_equal(read(tmp_path / "t.npz").X, X)


def test_another_zip_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    assert refused(tmp_path / "t.zip") == (
        "t.zip is a zip file without arrays. Is it an Excel file? Save it as CSV."
    )


def test_a_cut_zip_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=X)
    content = (tmp_path / "t.npz").read_bytes()
    (tmp_path / "t.npz").write_bytes(content[:-30])
    assert refused(tmp_path / "t.npz").startswith("t.npz is a damaged zip file (")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((1_000_000, 4)))
    assert (tmp_path / "t.npz").stat().st_size < 100_000
    with pytest.raises(TooLargeError, match=r"t\.npz: its table needs about 64\.0 MB"):
        read(tmp_path / "t.npz", memory=10_000_000)


@given(at=st.integers(0, 200), value=st.integers(0, 255))
def test_one_changed_byte_is_refused_or_a_table(tmp_path_factory, at, value):
    path = tmp_path_factory.mktemp("byte") / "t.npy"
    stream = io.BytesIO()
    np.save(stream, X)
    content = bytearray(stream.getvalue())
    content[at] = value
    path.write_bytes(bytes(content))
    try:
        size = read(path).X.nbytes
    except DataError:
        return
    assert size == X.nbytes


@pytest.mark.parametrize("shape", [(0, 2**62, 2**62), (0, 10**30), (1,) * 65])
def test_a_shape_that_no_array_has_is_refused(tmp_path, shape):
    content = X.tobytes()[: 8 * int(np.prod(shape, dtype=object))]
    (tmp_path / "t.npy").write_bytes(header(shape=str(shape)) + content)
    assert "which no array has" in refused(tmp_path / "t.npy")


def npz(path, **arrays):
    np.savez(path, X=X, **arrays)
    return path


def test_an_array_beside_the_table_that_is_no_column_is_named(tmp_path):
    path = npz(tmp_path / "t.npz", y=np.zeros(20, complex))
    assert refused(path) == (
        't.npz: "y" holds complex128, which is neither numbers nor text. Save the table alone with '
        "numpy.save."
    )
    assert read(npz(tmp_path / "t.npz", y=np.arange(20, dtype=np.longdouble))).X.shape == (20, 3)


@pytest.mark.parametrize("code", [0x110000, 2**32 - 1, 0xD800])
@pytest.mark.parametrize("order", "<>")
def test_text_of_characters_that_do_not_exist_is_refused(tmp_path, code, order):
    names = np.full(20, "ab", f"{order}U2")
    names.view(f"{order}u4")[7] = code
    assert '"kind.npy" holds characters that do not exist' in refused(
        npz(tmp_path / "t.npz", kind=names)
    )


def test_a_zip_that_lost_its_first_bytes_is_refused(tmp_path):
    """Its first member then begins before the file, a plain ValueError of zipfile (case 44)."""
    whole = npz(tmp_path / "t.npz").read_bytes()
    (tmp_path / "t.npz").write_bytes(b"PK\x03\x04" + whole[13:])
    assert refused(tmp_path / "t.npz").startswith("t.npz is a damaged zip file (")


@pytest.mark.parametrize("in_blocks", [False, True])
def test_an_array_without_names_has_the_columns_of_a_model_in_their_order(tmp_path, in_blocks):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "t.npy", X)
    table = open_table(tmp_path / "t.npy", in_blocks=in_blocks, columns=["c", "a", "b"])
    assert table.columns == ("c", "a", "b")
    rows = table.X if not in_blocks else table.X.read(table.X.partitions[0])
    assert np.array_equal(rows, X)
    with pytest.raises(DataError, match=r"lacks 4 of the 4 columns of the model"):
        open_table(tmp_path / "t.npy", in_blocks=in_blocks, columns=["c", "a", "b", "d"])
