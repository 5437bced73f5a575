import io
import os
import resource
import sys
import zipfile
from types import SimpleNamespace

import children
import numpy as np
import pytest
from killing import torn_files
from models.same import assert_same

import gnomon
from gnomon import PCA, TSNE, Procrustes, load, samples, save
from gnomon.errors import DataTypeError, ExistingFileError, ModelFileError, WriteError
from gnomon.models import registry as classes
from gnomon.models.file import read_model

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
NEW = RNG.standard_normal((5, 4))


def test_the_three_estimators_save_themselves(tmp_path):
    for model in (
        PCA(2).fit(X),
        TSNE(perplexity=5, max_iter=20).fit(X),
        Procrustes().fit(X, X[:, ::-1]),
    ):
        path = tmp_path / f"{type(model).__name__}.gnomon"
        model.save(path)
        loaded = load(str(path))
        assert type(loaded) is type(model)
        assert loaded.transform(NEW).tobytes() == model.transform(NEW).tobytes()
        assert [*zipfile.ZipFile(path).namelist()] == ["model.json", "arrays.safetensors"]


def test_a_model_is_overwritten_only_when_forced(tmp_path):
    path = tmp_path / "m.gnomon"
    PCA(2).fit(X).save(path)
    with pytest.raises(ExistingFileError, match=r"m\.gnomon exists .*force=True"):
        PCA(3).fit(X).save(path)
    assert load(path).n_components == 2
    save(PCA(3).fit(X), path, force=True)
    assert load(path).n_components == 3
    assert os.listdir(tmp_path) == ["m.gnomon"]


def test_the_same_model_is_the_same_file(tmp_path):
    pca = PCA(2).fit(X)
    pca.save(tmp_path / "a")
    pca.save(tmp_path / "b")
    load(tmp_path / "a").save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


def test_a_dictionary_of_parts_is_one_file(tmp_path):
    pca = PCA(2).fit(X)
    tsne = TSNE(perplexity=5, max_iter=20).fit(pca.transform(X))
    parts = {
        "preparation": {"columns": ["a", "b"], "mean": X.mean(axis=0), "scale": "standard"},
        "pca": pca,
        "tsne": tsne,
    }
    save(parts, tmp_path / "pipeline.gnomon")
    loaded = load(tmp_path / "pipeline.gnomon")
    assert_same(loaded, parts)
    mine = tsne.transform(pca.transform(NEW))
    assert loaded["tsne"].transform(loaded["pca"].transform(NEW)).tobytes() == mine.tobytes()


class Step:
    """A part with a state of its own."""

    def __init__(self, mean):
        self.mean = mean

    def _to_state(self):
        return {"mean": self.mean}

    @classmethod
    def _from_state(cls, state):
        return cls(state["mean"])


def test_a_part_of_a_class_in_the_table_follows_the_protocol(tmp_path, monkeypatch):
    monkeypatch.setitem(classes.CLASSES, "Step", "gnomon.steps")
    monkeypatch.setitem(sys.modules, "gnomon.steps", SimpleNamespace(Step=Step))
    save({"step": Step(X.mean(axis=0))}, tmp_path / "m")
    loaded = load(tmp_path / "m")["step"]
    assert type(loaded) is Step
    assert_same(loaded.mean, X.mean(axis=0))


def test_what_is_no_model_is_not_saved(tmp_path):
    class PCA:  # of the name only
        def _to_state(self):
            return {}

        @classmethod
        def _from_state(cls, state): ...

    for other in (PCA(), X, "text", None, 5, [gnomon.PCA(2).fit(X)]):
        with pytest.raises(TypeError, match=r"`model` must be a PCA, TSNE, Procrustes or a dict"):
            save(other, tmp_path / "m")
    with pytest.raises(DataTypeError, match="plain values"):
        save({"a": {"b": object()}}, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_subclass_is_not_taken_for_its_parent(tmp_path):
    class Mine(gnomon.PCA):
        pass

    with pytest.raises(TypeError, match="Mine"):
        Mine(2).fit(X).save(tmp_path / "m")


def test_the_table_names_classes_that_exist_and_nothing_else_is_found():
    for name in classes.CLASSES:
        assert classes.class_named(name) is getattr(gnomon, name)
    for name in ("os", "gnomon.pca.PCA", "", "__class__", "Pipeline"):
        assert classes.class_named(name) is None


def test_loading_imports_and_runs_nothing_that_the_file_names(tmp_path):
    """No pickle, no eval, no exec, no process: the interpreter itself is asked."""
    plain, other = TSNE(perplexity=5, max_iter=20), np.random.default_rng(1)
    plain.fit(X).save(tmp_path / "first.gnomon")
    plain.set_params(random_state=other).fit(X).save(tmp_path / "m.gnomon")
    code = (
        "import sys, gnomon\n"
        "gnomon.load(sys.argv[1])\n"  # imports what is ours, once
        "seen = []\n"
        "watched = {'exec', 'compile', 'import', 'pickle.find_class', 'os.system', 'os.exec',\n"
        "           'subprocess.Popen', 'marshal.loads', 'socket.connect'}\n"
        "sys.addaudithook(lambda event, _: seen.append(event) if event in watched else None)\n"
        "model = gnomon.load(sys.argv[2])\n"
        "print('SEEN', sorted(set(seen)), type(model).__name__)\n"
    )
    done = children.run(["-c", tmp_path / "first.gnomon", tmp_path / "m.gnomon"], code=code)
    assert done.stdout.strip() == "SEEN [] TSNE", done.stderr


def small_model(tmp_path):
    """A few thousand bytes with arrays, text, tuples and a nested record."""
    tsne = TSNE(perplexity=2, max_iter=5).fit(np.round(X[:6, :2], 2))
    save({"tsne": tsne, "pca": PCA(1).fit(X[:6, :2])}, tmp_path / "small.gnomon")
    return (tmp_path / "small.gnomon").read_bytes()


def test_ten_thousand_flipped_bytes_are_refused_or_change_nothing(tmp_path):
    good = small_model(tmp_path)
    whole = read_model(io.BytesIO(good), "m")
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(10_000):
        bad = bytearray(good)
        at = int(rng.integers(len(good)))
        bad[at] ^= int(rng.integers(1, 256))
        try:
            loaded = read_model(io.BytesIO(bad), "m")
        except ModelFileError:
            refused += 1
            continue
        assert_same(loaded, whole)
    assert refused > 9_500  # only dates and versions in the headers are covered by nothing


def test_every_byte_of_the_headers_is_refused_or_changes_nothing(tmp_path):
    """Bytes that stand outside of both members, each with every other value."""
    good = small_model(tmp_path)
    whole = read_model(io.BytesIO(good), "m")
    second, listed = good.index(b"PK\x03\x04", 4), good.index(b"PK\x01\x02")
    headers = [*range(40), *range(second, second + 48), *range(listed, len(good))]
    for at in headers:
        for flip in (0x01, 0x08, 0x80, 0xFF):
            bad = bytearray(good)
            bad[at] ^= flip
            try:
                loaded = read_model(io.BytesIO(bad), "m")
            except ModelFileError:
                continue
            assert_same(loaded, whole)


def repacked(content, change):
    """The same archive with one member changed, and right sums in the archive itself."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), change(name, text))
    return file.getvalue()


def test_checksums_find_what_the_archive_does_not(tmp_path):
    good = small_model(tmp_path)

    def other_number(name, text):
        return text[:-1] + bytes([text[-1] ^ 1]) if name == "arrays.safetensors" else text

    def other_word(name, text):
        return text.replace(b'"n_iter_": 5', b'"n_iter_": 6') if name == "model.json" else text

    def longer(name, text):
        return text + b" "

    assert read_model(io.BytesIO(repacked(good, lambda _, text: text)), "m")
    for change in (other_number, other_word, longer):
        with pytest.raises(ModelFileError, match="damaged"):
            read_model(io.BytesIO(repacked(good, change)), "m")


def tensors(header, data=b""):
    return len(header).to_bytes(8, "little") + header + data


ONE = b'{"a":{"dtype":"%s","shape":[%d],"data_offsets":[0,%d]}}'


@pytest.mark.parametrize(
    "arrays",
    [
        b"",
        b"\xff" * 8,
        (80 * 10**12).to_bytes(8, "little") + b"{}",
        tensors(b"{}", b"x"),
        tensors(ONE % (b"F64", 1, 8))[:40],
        tensors(ONE % (b"F64", 1, 8), bytes(7)),
        tensors(ONE % (b"F64", 10**9, 8), bytes(8)),
        tensors(ONE % (b"F64", 2**61, 8), bytes(8)),
        tensors(ONE % (b"F4", 4, 2), bytes(2)),
        tensors(ONE % (b"OBJECT", 1, 8), bytes(8)),
    ],
    ids=[
        "nothing",
        "no length",
        "80 TB",
        "one byte more",
        "cut",
        "one byte less",
        "claims 8 GB",
        "overflows",
        "half bytes",
        "objects",
    ],
)
def test_arrays_that_are_not_what_they_claim_are_refused(tmp_path, arrays):
    from gnomon.models.archive import write_archive
    from gnomon.models.document import write_document

    write_archive(tmp_path / "m", write_document({"a": {"$array": "a"}}, arrays), arrays)
    with pytest.raises(ModelFileError, match="its arrays cannot be read"):
        load(tmp_path / "m")


def test_a_disk_that_is_full_leaves_the_old_model_whole(tmp_path):
    path = tmp_path / "m.gnomon"
    old = PCA(2).fit(X)
    old.save(path)
    large = PCA(2).fit(RNG.standard_normal((400, 300)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limits[1]))  # a write beyond it fails
    try:
        with pytest.raises(WriteError, match=r"m\.gnomon could not be written"):
            large.save(path, force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_same(load(path), old)
    assert os.listdir(tmp_path) == ["m.gnomon"]


@pytest.mark.rounds(test=15, soak=300, long=5000)
def test_a_model_whose_writer_is_killed_is_never_torn(tmp_path, rounds):
    prepare = """
    import numpy as np
    from gnomon import PCA, load, save
    X = np.random.default_rng(0).standard_normal((200, 150))
    models = [PCA(2).fit(X), PCA(3).fit(X)]

    def write(version):
        save(models[version], path, force=True)

    def is_whole():
        try:
            return load(path).n_components in (2, 3)  # every checksum is held against its bytes
        except ValueError:
            return False
    """
    assert torn_files(prepare, tmp_path / "m.gnomon", rounds) == 0


def test_a_model_of_a_wide_table_keeps_its_file_within_its_numbers(tmp_path):
    """Nothing is stored twice: sixteen thousand columns take what their arrays take."""
    pca = PCA(3, solver="krylov").fit(RNG.standard_normal((50, 16_000)))
    pca.save(tmp_path / "m.gnomon")
    numbers = 16_000 * (2 * 3 + 7)  # components, loadings, and a number for each column
    assert (tmp_path / "m.gnomon").stat().st_size < 8 * numbers + 20_000


def test_the_map_of_a_sample_comes_back(tmp_path):
    table = samples.load("iris").X
    tsne = TSNE(max_iter=50).fit(table)
    tsne.save(tmp_path / "iris.gnomon")
    loaded = load(tmp_path / "iris.gnomon")
    assert str(loaded.certificate_) == str(tsne.certificate_)
    assert loaded.transform(table[:9]).tobytes() == tsne.transform(table[:9]).tobytes()
