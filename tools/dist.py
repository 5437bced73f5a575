"""Build the sdist and the wheel into dist/, and try the wheel as a new user would.

1. Copy the files that git tracks into a temporary folder and build there, so that an untracked
   file in src/gnomon cannot get in.
2. Compare the contents of both archives with the tracked files.
3. Install the wheel into an empty environment, away from the repository, and run
   ``gnomon map digits`` there.

``python tools/dist.py`` is `make dist`; ``--no-install`` stops after step 2.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
PACKAGE = "src/gnomon/"
# What an sdist holds beside the package.
BESIDE = {
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "pyproject.toml",
}


def tracked_files(root: Path) -> list[str]:
    """Paths that git tracks, relative to `root`, without those that are deleted on disk."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def copy_tracked(root: Path, to: Path) -> None:
    """Copy the tracked files of `root` into `to`."""
    for name in tracked_files(root):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target)


def build(root: Path, out: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the sdist; return their paths."""
    with tempfile.TemporaryDirectory() as folder:
        copy_tracked(root, Path(folder))
        subprocess.run(
            [sys.executable, "-m", "build", "--outdir", str(out), folder],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def sdist_names(path: Path) -> set[str]:
    """Files of an sdist, without its top folder."""
    with tarfile.open(path) as archive:
        files = [PurePosixPath(member.name) for member in archive if not member.isdir()]
    return {str(PurePosixPath(*name.parts[1:])) for name in files}


def wheel_names(path: Path) -> set[str]:
    """Files of a wheel, without its metadata."""
    with zipfile.ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    return {name for name in names if not name.split("/")[0].endswith(".dist-info")}


def differences(sdist: set[str], wheel: set[str], tracked: list[str]) -> list[str]:
    """What the archives hold too much or too little, a line each."""
    package = {name for name in tracked if name.startswith(PACKAGE)}
    in_wheel = {name.removeprefix("src/") for name in package}
    return [
        *(f"the wheel must not hold {name}" for name in sorted(wheel - in_wheel)),
        *(f"the wheel lacks {name}" for name in sorted(in_wheel - wheel)),
        *(f"the sdist must not hold {name}" for name in sorted(sdist - package - BESIDE)),
        *(f"the sdist lacks {name}" for name in sorted((package | BESIDE) - sdist)),
    ]


def try_wheel(wheel: Path) -> str:
    """Install a wheel into an empty environment and map a sample; return the command's words."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        programs = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        subprocess.run([programs / "python", "-m", "pip", "install", "-q", wheel], check=True)
        done = subprocess.run(
            [programs / "gnomon", "map", "digits"], cwd=home, capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"`gnomon map digits` from {wheel.name} failed:\n{done.stderr}")
        if not (home / "digits_map" / "report.html").is_file():
            sys.exit(f"`gnomon map digits` from {wheel.name} wrote no report.html")
        return done.stderr


def main() -> None:
    """Build, compare, install and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument("--no-install", action="store_true", help="only build and compare")
    options = parser.parse_args()
    out = options.root / "dist"
    shutil.rmtree(out, ignore_errors=True)
    sdist, wheel = build(options.root, out)
    wrong = differences(sdist_names(sdist), wheel_names(wheel), tracked_files(options.root))
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"dist/{sdist.name} and dist/{wheel.name} hold the package and nothing else.")
    if not options.no_install:
        print(try_wheel(wheel), end="")
        print(f"dist/{wheel.name} works in an empty environment.")


if __name__ == "__main__":
    main()
