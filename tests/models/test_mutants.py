"""Models and folders of runs changed at random: used, or refused in a sentence.

`make soak` reads hundreds, `make soak-long` 20,000, in a child process that a crash would end. A
third of the models have other bytes; the others hold something else, with every checksum made right
again, so that only the checks of values stand in the way.
"""

import json

import numpy as np
import pytest
from commands import gnomon
from hostile_files import Reader, survey
from models.forging import put_together
from models.mutants import bases, change_content, model_mutants
from mutating import mutate


def test_models_without_damage_are_used(tmp_path):
    with Reader() as reader:
        for number, base in enumerate(bases()):
            path = tmp_path / f"{number}.gnomon"
            path.write_bytes(put_together(*base))
            assert reader.ask("model", path) == ["read", ""]


@pytest.mark.rounds(test=600, soak=1500, long=20_000)
def test_a_changed_model_is_used_or_refused_in_a_sentence(tmp_path, rounds):
    counts, faults = survey(["model"], model_mutants(0, rounds), tmp_path)
    assert not faults, "\n".join(faults[:5])
    read, refused = counts["model", "read"], counts["model", "refused"]
    assert read + refused == rounds
    assert min(read, refused) > rounds // 10  # or the changes prove little


@pytest.mark.rounds(test=120, soak=400, long=3000)
def test_a_folder_with_a_changed_file_gives_a_page_or_is_refused_in_a_sentence(tmp_path, rounds):
    rng = np.random.default_rng(0)
    rows = [
        f"r{i},{'ab'[i % 2]},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(rng.normal(size=(24, 2)))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,kind,x,y", *rows]) + "\n")
    assert gnomon("map", "t.csv", "-q", folder=tmp_path).returncode == 0
    (tmp_path / "t.csv").unlink()  # the page is then made of the folder alone
    folder = tmp_path / "t_map"
    whole = {name: (folder / name).read_bytes() for name in ("run.json", "map.parquet")}
    faults, counts = [], {"read": 0, "refused": 0}
    with Reader() as reader:
        for number in range(rounds):
            chance = np.random.default_rng([7, number])
            name = list(whole)[number % 2]
            changed = mutate(whole[name], chance)
            if name == "run.json" and chance.integers(3):
                changed = json.dumps(change_content(json.loads(whole[name]), chance)).encode()
            (folder / name).write_bytes(changed)
            answer, text = reader.ask("report", folder)
            (folder / name).write_bytes(whole[name])
            if answer in counts:
                counts[answer] += 1
            else:
                faults.append(f"{name} {number} {answer}: {text}")
    assert not faults, "\n".join(faults[:5])
    assert min(counts.values()) > rounds // 10
