"""Pictures of rows: pixels that are recognised, pictures that are given, and what is refused."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from gnomon.errors import ParameterError
from gnomon.report import pictures as module
from gnomon.report.pictures import GivenPictures, PixelPictures, Variant, pack_pictures, png
from gnomon.report.pixels import Pixels, find_pixels, parse_pixels


def smooth(n=40, side=12, channels=1, seed=0):
    """Pictures (n, side, side, channels) of whole numbers from 0 to 255."""
    rng = np.random.default_rng(seed)
    rough = rng.normal(size=(n, side + 6, side + 6, channels))
    for axis in (1, 2):
        rough = np.cumsum(rough, axis=axis)
    low, high = rough.min(axis=(1, 2, 3), keepdims=True), rough.max(axis=(1, 2, 3), keepdims=True)
    return np.rint(255 * (rough - low) / (high - low))[:, 3:-3, 3:-3]


def columns(d, stem="column "):
    return [f"{stem}{j + 1}" for j in range(d)]


def test_pixels_are_recognised_by_their_names():
    lines = [f"pixel_{r}_{c}" for r in range(4) for c in range(3)]
    assert find_pixels(lines, np.zeros((2, 12))) == Pixels(4, 3)
    turned = [f"px {r + 1}x{c + 1}" for c in range(3) for r in range(4)]
    assert find_pixels(turned, np.zeros((2, 12))) == Pixels(4, 3, by_column=True)
    assert find_pixels([*lines[:-1], "pixel_9_9"], np.zeros((2, 12))) is None


@pytest.mark.parametrize(
    ("channels", "layout", "expected"),
    [
        (1, (0, 1, 2, 3), Pixels(12, 12)),
        (3, (0, 1, 2, 3), Pixels(12, 12, 3)),
        (3, (0, 3, 1, 2), Pixels(12, 12, 3, planes=True)),
    ],
)
def test_squares_of_smooth_numbers_are_pixels(channels, layout, expected):
    pictures = smooth(channels=channels)
    X = pictures.transpose(layout).reshape(len(pictures), -1)
    assert find_pixels(columns(X.shape[1]), X) == expected
    assert np.array_equal(expected.pictures(X), pictures)
    # The same numbers in another order are none, nor are names that mean something, nor others.
    mixed = X[:, np.random.default_rng(0).permutation(X.shape[1])]
    assert find_pixels(columns(X.shape[1]), mixed) is None
    named = [*columns(X.shape[1])[:-1], "area"]
    assert find_pixels(named, X) is None
    assert find_pixels(columns(X.shape[1]), X - 10) is None
    assert find_pixels(columns(X.shape[1]), 2 * X) is None


def test_the_user_may_say_how_columns_make_a_picture():
    X = np.arange(24.0)[None]
    assert parse_pixels("4x6", 24) == Pixels(4, 6)
    assert np.array_equal(parse_pixels("4x6,F", 24).pictures(X)[0, :, :, 0], X.reshape(6, 4).T)
    planes = parse_pixels("3x2x4", 24).pictures(X)[0]
    assert np.array_equal(planes, X.reshape(3, 2, 4).transpose(1, 2, 0))
    assert np.array_equal(parse_pixels("2x4x3", 24).pictures(X)[0], X.reshape(2, 4, 3))
    down = parse_pixels("2x4x3,F", 24).pictures(X)[0]
    assert np.array_equal(down, X.reshape(4, 2, 3).transpose(1, 0, 2))
    assert parse_pixels("none", 24) is None
    for wrong in ("5x5", "4x6x2", "0x24", "four", "4x6;rm"):
        with pytest.raises(ParameterError, match="pixels"):
            parse_pixels(wrong, 24)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_is_read_by_others_pixel_by_pixel(channels):
    image = np.random.default_rng(0).integers(256, size=(17, 23, channels), dtype=np.uint8)
    image[5:9] = 7
    read = np.asarray(Image.open(io.BytesIO(png(image))))
    assert np.array_equal(read.reshape(image.shape), image)


def unpacked(part):
    """Tiles by row, read by Pillow."""
    tiles, each = [], part["across"] * (4096 // part["height"])
    for sheet in part["sheets"]:
        image = np.asarray(Image.open(io.BytesIO(base64.b64decode(sheet["data"]))))
        image = image.reshape(*image.shape[:2], -1)
        height, width = part["height"], part["width"]
        for t in range(min(each, part["tiles"] - len(tiles))):
            top, left = (t // part["across"]) * height, (t % part["across"]) * width
            tiles.append(image[top : top + height, left : left + width])
    return np.array(tiles)


def test_sheets_hold_every_row_in_its_order(monkeypatch):
    monkeypatch.setattr(module, "SHEET", 64)
    X = smooth(40).reshape(40, -1)
    part, notes = pack_pictures(PixelPictures(X, Pixels(12, 12)), np.zeros((40, 2)), 10**6)
    assert (part["tiles"], part["rows"], notes) == (40, None, ())
    assert len(part["sheets"]) > 1
    expected = np.rint(255 * (X - X.min()) / (X.max() - X.min())).reshape(40, 12, 12, 1)
    shown = []
    each = part["across"] * (64 // 12)
    for start, sheet in zip(range(0, 40, each), part["sheets"], strict=True):
        image = np.asarray(Image.open(io.BytesIO(base64.b64decode(sheet["data"]))))
        for t in range(min(each, 40 - start)):
            top, left = 12 * (t // part["across"]), 12 * (t % part["across"])
            shown.append(image[top : top + 12, left : left + 12, None])
    assert np.array_equal(shown, expected)


def test_where_room_is_scarce_tiles_get_smaller_then_fewer_and_spread_over_the_map():
    rng = np.random.default_rng(0)
    X = rng.integers(256, size=(900, 24 * 24)).astype(float)
    at = rng.uniform(size=(900, 2))
    source = PixelPictures(X, Pixels(24, 24))
    half, said = pack_pictures(source, at, 240_000)
    assert (half["width"], half["tiles"], half["rows"]) == (12, 900, None)
    assert said == ("Pictures are shown at half their size (--page-budget).",)
    some, said = pack_pictures(source, at, 40_000)
    assert 50 < some["tiles"] < 300
    assert sum(len(sheet["data"]) for sheet in some["sheets"]) <= 40_000
    assert f"The page holds {some['tiles']} of 900" in said[0]
    rows = module._spread(at, some["tiles"])
    counts = np.histogram2d(*at[rows].T, bins=4, range=[[0, 1], [0, 1]])[0]
    assert counts.min() > 0.5 * counts.mean()  # every part of the map has some
    none, said = pack_pictures(source, at, 500)
    assert none is None
    assert "left out" in said[0]


def encoded(kind, size=(30, 20), colour="red"):
    octets = io.BytesIO()
    Image.new("RGB", size, colour).save(octets, kind)
    return octets.getvalue()


SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><image href='http://example.invalid/x'/></svg>"


def test_given_pictures_are_decoded_again_and_all_else_is_refused(tmp_path, monkeypatch):
    root = tmp_path / "data"
    root.mkdir()
    (root / "a.png").write_bytes(encoded("PNG", colour="blue"))
    (tmp_path / "secret.png").write_bytes(encoded("PNG"))
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    (root / "fine.png").symlink_to(root / "a.png")
    monkeypatch.setattr(module, "MOST_PIXELS", 10_000)
    good = [
        encoded("PNG"),
        encoded("JPEG"),
        encoded("WEBP"),
        encoded("GIF"),
        "a.png",
        "fine.png",
        {"bytes": encoded("PNG"), "path": None},
    ]
    bad = {
        "no PNG, JPEG, WebP or GIF": [SVG, b"", b"GIF89a", encoded("BMP"), encoded("TIFF")],
        "too large": [encoded("PNG", (200, 200))],
        "outside of the folder": ["../secret.png", "/etc/hostname", "..\\secret.png", "C:/x.png"],
        "a link out of the folder": ["link.png"],
        "an address, not a file": [
            "https://example.invalid/a.png",
            "file:///etc/passwd",
            "data:image/png;base64,AAAA",
        ],
        "no such file": ["missing.png"],
        "neither bytes nor a path": [7],
    }
    values = [*good, None, *(value for refused in bad.values() for value in refused)]
    source = GivenPictures(values, root)
    part, notes = pack_pictures(source, np.zeros((len(values), 2)), 10**6)
    assert part["tiles"] == len(good)
    assert {sheet["type"] for sheet in part["sheets"]} == {"image/webp"}
    middles = unpacked(part)[:, 32, 32]
    assert np.abs(middles[:4].astype(int) - [255, 0, 0]).max() < 12
    assert np.abs(middles[4].astype(int) - [0, 0, 255]).max() < 12
    assert np.abs(unpacked(part)[:, 2, 2].astype(int) - 255).max() < 12  # white around it
    for why, refused in bad.items():
        assert f"{why} ({len(refused)})" in notes[-1]


def test_no_metadata_travels_with_a_picture():
    octets, exif = io.BytesIO(), Image.Exif()
    exif[0x010E] = "a secret place"
    Image.new("RGB", (20, 20), "red").save(octets, "JPEG", exif=exif, comment=b"a secret place")
    assert b"a secret place" in octets.getvalue()
    part, _ = pack_pictures(GivenPictures([octets.getvalue()], None), np.zeros((1, 2)), 10**6)
    assert b"secret" not in base64.b64decode(part["sheets"][0]["data"])


def test_half_the_size_is_the_mean_of_four_pixels():
    X = smooth(3).reshape(3, -1)
    source = PixelPictures(X, Pixels(12, 12))
    whole = source.tiles(np.arange(3), Variant()).astype(float)
    half = source.tiles(np.arange(3), Variant(2)).astype(float)
    assert np.abs(whole.reshape(3, 6, 2, 6, 2, 1).mean(axis=(2, 4)) - half).max() <= 1
