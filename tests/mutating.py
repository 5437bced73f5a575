"""Bytes changed at random, and files of every format for that to be done to.

`mutants(seed, count)` of a `Mutator` gives the same files every time. Changes are those that find
faults: single bits, lengths and offsets that are a little or enormously wrong, pieces that are
missing, doubled or swapped; and, where a format has sums or compression in the way, changes behind
them.
"""

import gzip
import io
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import scipy.sparse as sp

WIDTHS = {1: "b", 2: "h", 4: "i", 8: "q"}
ROWS = 24


def mutate(content, chance):
    """`content` with one to four changes: a file with one is less often refused at once."""
    changed = bytearray(content)
    for _ in range(int(chance.choice([1, 2, 3, 4], p=[0.7, 0.1, 0.1, 0.1]))):
        if changed:
            changed = CHANGES[int(chance.integers(len(CHANGES)))](changed, chance)
    return bytes(changed)


def flip(content, chance):
    content[int(chance.integers(len(content)))] ^= 1 << int(chance.integers(8))
    return content


def other_byte(content, chance):
    content[int(chance.integers(len(content)))] = int(chance.integers(256))
    return content


def other_number(content, chance):
    """A whole number somewhere becomes 0, -1, one more, the largest, or any other."""
    width = int(chance.choice([2, 4, 8]))
    if len(content) <= width:
        return content
    at = int(chance.integers(len(content) - width))
    if chance.integers(2):
        at -= at % width  # where formats keep their numbers
    code = f"<{WIDTHS[width]}"
    (old,) = struct.unpack_from(code, content, at)
    largest = 2 ** (8 * width - 1) - 1
    new = [
        0,
        -1,
        1,
        old + 1,
        old - 1,
        -old,
        2 * old,
        old + 256,
        largest,
        -largest - 1,
        len(content),
        largest // 2,
        int(chance.integers(-largest, largest)),
    ]
    value = int(new[int(chance.integers(len(new)))])
    struct.pack_into(code, content, at, (value + largest + 1) % (2 * largest + 2) - largest - 1)
    return content


def piece(content, chance, longest=64):
    begin = int(chance.integers(len(content)))
    return slice(begin, begin + int(chance.integers(1, longest)))


def cut_off(content, chance):
    return content[: int(chance.integers(len(content)))]


def cut_out(content, chance):
    del content[piece(content, chance)]
    return content


def doubled(content, chance):
    where = piece(content, chance)
    content[where.start : where.start] = content[where]
    return content


def swapped(content, chance):
    one, other = piece(content, chance), piece(content, chance)
    size = min(len(content[one]), len(content[other]))
    a, b = slice(one.start, one.start + size), slice(other.start, other.start + size)
    content[a], content[b] = content[b], content[a]
    return content


def filled(content, chance):
    where = piece(content, chance)
    value = int(chance.choice([0, 0x20, 0x7F, 0x80, 0xFF]))
    content[where] = bytes([value]) * len(content[where])
    return content


def inserted(content, chance):
    at = int(chance.integers(len(content)))
    content[at:at] = chance.integers(0, 256, int(chance.integers(1, 9)), np.uint8).tobytes()
    return content


CHANGES = (
    *[flip] * 5,
    *[other_byte] * 4,
    *[other_number] * 6,
    cut_off,
    cut_out,
    doubled,
    swapped,
    filled,
    inserted,
)


def table(vectors):
    """Columns of every kind that readers know; those of vectors stand alone."""
    rng = np.random.default_rng(0)
    names = {
        "id": [f"r{i}" for i in range(ROWS)],
        "kind": pa.array(["a", "b", "c"] * (ROWS // 3)).dictionary_encode(),
    }
    if vectors:
        rows = [rng.normal(size=3).tolist() for _ in range(ROWS)]
        kind = pa.list_(pa.float64(), 3) if vectors == "fixed" else pa.list_(pa.float32())
        return pa.table({**names, "vector": pa.array(rows, kind)})
    words = [f"word {i % 5}" * (i % 3) for i in range(ROWS)]
    return pa.table(
        {
            **names,
            "text": pa.array(words),
            "large": pa.array(words, pa.large_string()),
            "view": pa.array(words, pa.string_view()),
            "gap": pa.array([None if i % 4 else i for i in range(ROWS)], pa.int16()),
            "x": rng.normal(size=ROWS),
            "half": pa.array(rng.normal(size=ROWS).astype(np.float32)),
            "price": pa.array([None, *range(1, ROWS)], pa.decimal128(9, 2)),
            "day": pa.array(range(ROWS), pa.date32()),
            "flag": pa.array([i % 3 == 0 for i in range(ROWS)]),
            "number text": pa.array([f"{i},5" for i in range(ROWS)]),
            "struct": pa.array([{"a": i, "b": str(i)} for i in range(ROWS)]),
            "bytes": pa.array([b"x" * i for i in range(ROWS)]),
            "runs": pa.RunEndEncodedArray.from_arrays(
                pa.array([5, 9, ROWS], pa.int32()), pa.array([1.0, 2.0, None])
            ),
        }
    )


def feather_file(compression, vectors=""):
    file, columns = io.BytesIO(), table(vectors)
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_file(file, columns.schema, options=options) as writer:
        writer.write_table(columns, max_chunksize=ROWS // 2)
    return file.getvalue()


def parquet_file(vectors="", **options):
    file, columns = io.BytesIO(), table(vectors)
    known = [name for name in columns.column_names if name not in ("view", "runs")]
    pq.write_table(columns.select(known), file, row_group_size=ROWS // 2, **options)
    return file.getvalue()


def npy_file(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz_file(compressed):
    rng = np.random.default_rng(0)
    file = io.BytesIO()
    arrays = {
        "X": rng.normal(size=(ROWS, 3)),
        "y": np.arange(ROWS),
        "feature_names": np.array(list("abc")),
        "kind": np.array(["a", "b"] * (ROWS // 2)),
    }
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def sparse_npz():
    file = io.BytesIO()
    sp.save_npz(
        file, sp.random_array((ROWS, 6), density=0.4, rng=np.random.default_rng(0), format="csr")
    )
    return file.getvalue()


def csv_file(delimiter=",", decimal="."):
    rng = np.random.default_rng(0)
    lines = [delimiter.join(["id", "kind", "x", "größe", '"a ""b"" c"', "date", "n", "flag"])]
    for i in range(ROWS):
        x, y = rng.normal(size=2)
        cells = [
            f"r{i}",
            "ab"[i % 2],
            f"{x:.4f}",
            f"{y:.2e}",
            f'"1{decimal}5"',
            f"2026-01-{i + 1:02d}",
            "" if i % 7 == 3 else str(i),
            str(i % 2 == 0),
        ]
        lines.append(delimiter.join(cells).replace(".", decimal))
    return "\r\n".join(lines).encode() + b"\r\n"


FILES = {
    "a.csv": csv_file(),
    "b.csv": csv_file(";", ","),
    "c.tsv": csv_file("\t"),
    "d.csv": csv_file().decode().encode("utf-16"),
    "a.npy": npy_file(np.random.default_rng(0).normal(size=(ROWS, 3))),
    "b.npy": npy_file(np.asfortranarray(np.arange(3 * ROWS, dtype=np.int16).reshape(ROWS, 3))),
    "a.npz": npz_file(compressed=False),
    "b.npz": npz_file(compressed=True),
    "sparse.npz": sparse_npz(),
    "a.parquet": parquet_file(compression="none", use_dictionary=False),
    "b.parquet": parquet_file(compression="snappy"),
    "c.parquet": parquet_file(compression="zstd", data_page_version="2.0", write_page_index=True),
    "d.parquet": parquet_file("lists", compression="none", use_dictionary=False),
    "e.parquet": parquet_file("fixed", compression="zstd"),
    "a.feather": feather_file(None),
    "b.feather": feather_file("lz4"),
    "c.feather": feather_file("zstd"),
    "d.arrow": feather_file(None, "lists"),
    "e.arrow": feather_file("lz4", "fixed"),
}


def behind(content, chance):
    """A change behind a zip's sums and compression: in a member, which is packed anew."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        packing = archive.infolist()[0].compress_type
    name = list(members)[int(chance.integers(len(members)))]
    members[name] = mutate(members[name], chance)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for each, text in members.items():
            archive.writestr(each, text)
    return file.getvalue()


def other_offset(content, chance):
    """A wrong offset, index or length in a column: in one of the arrays that Arrow keeps aligned.

    Metadata stand before and after; what is between is hit eight times as often as by `mutate`.
    """
    content = bytearray(content)
    for _ in range(int(chance.integers(1, 3))):
        at = 4 * int(chance.integers(len(content) // 4 - 1))
        (old,) = struct.unpack_from("<i", content, at)
        new = [old + 1, old - 1, old + 2**16, -1, 2**31 - 1, -(2**31), 10**6, old ^ 2**24]
        value = new[int(chance.integers(len(new)))]
        struct.pack_into("<i", content, at, (value + 2**31) % 2**32 - 2**31)
    return bytes(content)


def mutants(seed, count):
    """`count` names and damaged contents, every format in turn."""
    names = list(FILES)
    for number in range(count):
        chance = np.random.default_rng([seed, number])
        name = names[number % len(names)]
        content = FILES[name]
        if name.endswith(".npz") and chance.integers(2):
            content = behind(content, chance)
        elif name.endswith((".feather", ".arrow")) and chance.integers(2):
            content = other_offset(content, chance)
        else:
            content = mutate(content, chance)
        if name.endswith(".csv") and not chance.integers(8):
            name, content = f"{name}.gz", gzip.compress(content)
        yield name, content
