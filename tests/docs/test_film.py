"""The moving picture of README.md: there in light and dark, small enough, and moving."""

import re
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
MOST_BYTES = 1_500_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_film_of_a_scheme(scheme):
    path = ROOT / "docs" / "pictures" / f"film-{scheme}.webp"
    assert path.stat().st_size < MOST_BYTES
    with Image.open(path) as film:
        assert film.n_frames > 30
        assert film.info["loop"] == 0
        corner = film.convert("L").getpixel((film.width - 4, film.height // 2))
    assert (corner > 128) == (scheme == "light")


def test_the_readme_shows_the_film_of_the_readers_scheme():
    text = (ROOT / "README.md").read_text("utf-8")
    (picture,) = re.findall(r"<picture>.*?</picture>", text, re.DOTALL)
    assert re.search(
        r'<source media="\(prefers-color-scheme: dark\)" srcset="\S+film-dark', picture
    )
    assert re.search(r'<img src="\S+film-light\.webp"[^>]* alt="[^"]{60,}"', picture)
