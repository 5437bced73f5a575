"""Files of every format with bytes changed at random: read, or refused in a sentence.

`make soak` reads hundreds, `make soak-long` 5,000, each as a whole and in blocks, in a child
process that a crash would end.
"""

import numpy as np
import pytest
from hostile_files import Reader, survey
from mutating import FILES, mutants


def test_files_without_damage_are_read(tmp_path):
    with Reader() as reader:
        for name, content in FILES.items():
            (tmp_path / name).write_bytes(content)
            whole, blocks = (reader.ask(work, tmp_path / name) for work in ("input", "blocks"))
            assert whole[0] == "read", (name, whole)
            assert blocks[0] == "read", (name, blocks)


@pytest.mark.rounds(test=340, soak=850, long=5000)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(tmp_path, rounds):
    counts, faults = survey(("input", "blocks"), mutants(0, rounds), tmp_path)
    assert not faults, "\n".join(faults[:5])
    for work in ("input", "blocks"):
        read, refused = counts[work, "read"], counts[work, "refused"]
        assert read + refused == rounds
        assert min(read, refused) > rounds // 10  # or the changes prove little


def test_mutants_are_the_same_every_time_and_damaged():
    first, again = list(mutants(0, 60)), list(mutants(0, 60))
    assert first == again
    whole = set(FILES.values())
    assert np.mean([content in whole for _, content in first]) < 0.1
