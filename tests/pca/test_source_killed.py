import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from killing import torn_files


@pytest.mark.rounds(test=15, soak=300, long=5000)
@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_scores_written_in_blocks_are_whole_after_kill_9(tmp_path, ending, rounds):
    prepare = f"""
        import numpy as np, gnomon, pyarrow.parquet as pq
        X = np.random.default_rng(0).standard_normal((4000, 6))
        model = gnomon.PCA(3, n_jobs=1).fit(X)
        sources = [gnomon.source(X * scale, rows=300) for scale in (1.0, 2.0)]
        wanted = [model.transform(source) for source in sources]

        def write(version):
            model.transform(sources[version], to=path, force=True)

        def is_whole():
            found = (np.load(path) if {ending == "npy"} else
                     np.column_stack(pq.read_table(path).columns))
            return any(np.array_equal(found, each) for each in wanted)
    """
    assert torn_files(prepare, tmp_path / f"scores.{ending}", rounds) == 0


def test_ctrl_c_ends_a_running_transform_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "scores.npy"
    np.save(path, np.arange(3.0))
    old = path.read_bytes()
    code = """
        import sys, time, numpy as np, gnomon
        X = np.random.default_rng(0).standard_normal((3000, 6))
        model = gnomon.PCA(3, n_jobs=2).fit(X)
        def on(event):
            print(event.done, flush=True)
            time.sleep(0.02)
        model.transform(gnomon.source(X, rows=10), to=sys.argv[1], force=True, on=on)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout.readline() == "10\n"  # it is writing
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode != 0
    assert "KeyboardInterrupt" in said
    assert path.read_bytes() == old
    assert [file.name for file in tmp_path.iterdir()] == ["scores.npy"]
