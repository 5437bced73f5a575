"""Shell completion by the protocol that the shells speak, without a shell."""

import pytest
from commands import gnomon

SHELLS = ["bash", "zsh", "fish"]


def completed(shell, folder, words, incomplete=""):
    """What is offered after `words`: pairs of a kind and a value."""
    # fish hands the unfinished word over apart from the others
    line = ["gnomon", *words, *([] if shell == "fish" else [incomplete])]
    at = incomplete if shell == "fish" else str(len(line) - 1)
    done = gnomon(
        folder=folder,
        _GNOMON_COMPLETE=f"{shell}_complete",
        COMP_WORDS=" ".join(line),
        COMP_CWORD=at,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    if shell == "zsh":  # kind, value and help, a line each
        return list(zip(lines[::3], lines[1::3], strict=True))
    return [tuple(line.split("\t")[0].split(",", 1)) for line in lines]


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_options_choices_samples_and_files_are_completed(tmp_path, shell):
    assert completed(shell, tmp_path, [], "res") == [("plain", "restore")]
    assert ("plain", "reduce") in completed(shell, tmp_path, [], "re")
    assert completed(shell, tmp_path, ["map"], "--mem") == [("plain", "--memory")]
    assert completed(shell, tmp_path, ["map", "--scale"], "s") == [("plain", "standard")]
    kinds = completed(shell, tmp_path, ["map"], "i")
    assert ("plain", "iris") in kinds
    assert "file" in [kind for kind, *_ in kinds]  # the shell looks for files itself
    assert [kind for kind, *_ in completed(shell, tmp_path, ["place", "new.csv", "-m"], "c")] == [
        "file"
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_for_a_shell_is_printed(tmp_path, shell):
    done = gnomon(folder=tmp_path, _GNOMON_COMPLETE=f"{shell}_source")
    assert done.returncode == 0, done.stderr
    assert "_GNOMON_COMPLETE" in done.stdout
    assert f"{shell}_complete" in done.stdout
