"""Pictures of a folder: their order, ids, sizes and hash; what cannot be read is listed, nothing large is decoded."""

import struct
import zlib

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.questions.extract.pictures import Shaping, open_pictures, sides

Image = pytest.importorskip("PIL.Image")


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def declared(path, width, height):
    """A .png file that says to be large, and holds nothing."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 50)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


@pytest.fixture
def drawn(rng):
    return rng.integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, drawn):
    for name, pixels in zip(("b/2", "b/10", "a/x", "1", "b/c/3"), drawn, strict=False):
        save(tmp_path / "set" / f"{name}.png", pixels)
    (tmp_path / "set" / "notes.txt").write_text("no picture")
    (tmp_path / "set" / ".hidden.png").write_text("no picture")
    return tmp_path / "set"


def test_natural_order_ids_and_labels(folder, drawn):
    found = open_pictures(folder, Shaping())
    assert found.ids.tolist() == ["1.png", "a/x.png", "b/2.png", "b/10.png", "b/c/3.png"]
    assert found.labels.tolist() == [".", "a", "b", "b", "b/c"] and found.shape == (12, 10)
    [alert] = found.alerts
    assert alert.code == "other_files" and "left out 1 file of set: notes.txt" in alert.message
    for at, place in enumerate((3, 2, 0, 1, 4)):
        np.testing.assert_array_equal(found.decode(at).pixels, drawn[place])
    listed = open_pictures([folder / "b" / "10.png", str(folder / "b" / "c" / "3.png")], Shaping())
    assert listed.ids.tolist() == ["10.png", "c/3.png"]
    named = open_pictures(folder, Shaping(), ids=[5, 4, 3, 2, 1])
    assert named.ids.tolist() == [5, 4, 3, 2, 1]


def test_resized_and_cropped_as_pillow_does(tmp_path, rng):
    tall = rng.integers(0, 256, (40, 31, 3), dtype=np.uint8)
    for name in ("a.png", "b.png"):
        save(tmp_path / name, tall)
    found = open_pictures(tmp_path, Shaping(20, (16, 18))).decode(0).pixels
    expected = Image.fromarray(tall).resize((20, 25), Image.Resampling.BILINEAR).crop((1, 4, 19, 20))
    np.testing.assert_array_equal(found, np.asarray(expected))
    both = open_pictures(tmp_path, Shaping((8, 6), resample=3)).decode(0).pixels
    np.testing.assert_array_equal(both, np.asarray(Image.fromarray(tall).resize((6, 8), Image.Resampling.BICUBIC)))
    grey = open_pictures(tmp_path, Shaping(grey=True)).decode(0).pixels
    np.testing.assert_array_equal(grey[:, :, 0], np.asarray(Image.fromarray(tall).convert("L")))


def test_the_hash_is_of_the_picture_not_of_its_file_or_size(tmp_path, drawn):
    save(tmp_path / "a.png", drawn[0])
    save(tmp_path / "b.png", drawn[0], compress_level=0)
    save(tmp_path / "c.webp", drawn[0], lossless=True)
    save(tmp_path / "d.png", drawn[1])
    plain, small = open_pictures(tmp_path, Shaping()), open_pictures(tmp_path, Shaping((6, 6)))
    hashes = [plain.decode(at).given for at in range(4)]
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]
    assert [small.decode(at).given for at in range(4)] == hashes


def test_pictures_of_all_kinds_become_three_colours(tmp_path, drawn):
    rgb = Image.fromarray(drawn[0])
    for mode in ("L", "1", "P", "RGBA", "LA"):
        rgb.convert(mode).save(tmp_path / f"{mode}.png")
    rgb.convert("CMYK").save(tmp_path / "inks.jpg")
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(drawn[1].transpose(1, 0, 2)).save(tmp_path / "turned.jpg", exif=turned, quality=95)
    found = open_pictures(tmp_path, Shaping())
    assert found.shape == (12, 10) and [alert.code for alert in found.alerts] == ["cmyk_pictures"]
    for at in range(len(found.paths)):
        pixels = found.decode(at).pixels
        assert pixels.shape == (12, 10, 3) and pixels.dtype == np.uint8
    np.testing.assert_array_equal(found.decode(found.names.index("RGBA.png")).pixels, drawn[0])


@pytest.mark.parametrize("orientation", [3, 6])
def test_pictures_that_are_turned(tmp_path, drawn, orientation):
    from PIL import ImageOps

    turned = Image.Exif()
    turned[0x0112] = orientation
    for name in ("0.png", "1.png", "2.jpg", "3.webp"):
        save(tmp_path / name, drawn[0], exif=turned)
    found = open_pictures(tmp_path, Shaping())
    assert found.shape == ((10, 12) if orientation == 6 else (12, 10))
    for at, path in enumerate(found.paths):
        expected = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        np.testing.assert_array_equal(found.decode(at).pixels, np.asarray(expected))


def test_a_turn_that_stands_behind_the_pixels_is_seen_nowhere(tmp_path, drawn):
    turned = Image.Exif()
    turned[0x0112] = 6
    for name in ("0.png", "1.png"):
        whole = save(tmp_path / name, drawn[0]).read_bytes()
        tags = turned.tobytes().removeprefix(b"Exif\0\0")
        more = struct.pack(">I", len(tags)) + b"eXIf" + tags + struct.pack(">I", zlib.crc32(b"eXIf" + tags))
        # Before the last chunk, which has 12 bytes.
        (tmp_path / name).write_bytes(whole[:-12] + more + whole[-12:])
    found = open_pictures(tmp_path, Shaping())
    np.testing.assert_array_equal(found.decode(0).pixels, drawn[0])


def test_thin_pictures_are_not_enlarged_beyond_all_bounds(tmp_path):
    for name in ("a.png", "b.png"):
        save(tmp_path / name, np.zeros((1, 100_000, 3), np.uint8))
    with pytest.raises(InputError, match=r"a.png .* resizing would make 224 x 22400000: too many.*--resize 224,224"):
        open_pictures(tmp_path, Shaping(224, (224, 224)))
    with pytest.raises(InputError, match="resizing would make 16384 x 16384: too many"):
        open_pictures(tmp_path, Shaping((1 << 14, 1 << 14)))
    assert open_pictures(tmp_path, Shaping((8, 8))).decode(0).pixels.shape == (8, 8, 3)


def test_a_list_of_absolute_and_relative_paths(folder, drawn, monkeypatch):
    monkeypatch.chdir(folder)
    found = open_pictures(["a/x.png", folder / "b" / "10.png"], Shaping())
    assert found.ids.tolist() == ["a/x.png", "b/10.png"]
    np.testing.assert_array_equal(found.decode(1).pixels, drawn[1])


@pytest.fixture
def spoilt(folder, drawn):
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.jpg").write_text("no picture")
    (folder / "list.png").mkdir()
    declared(folder / "large.png", 30_000, 30_000)
    declared(folder / "big.png", 10_000, 9_000)
    Image.fromarray(drawn[0][:, :, 0].astype(np.uint16) * 200).save(folder / "deep.png")
    frames = [Image.fromarray(pixels) for pixels in drawn[:3]]
    frames[0].save(folder / "film.webp", save_all=True, append_images=frames[1:])
    frames[0].save(folder / "film.png", save_all=True, append_images=frames[1:])
    return folder


def test_what_cannot_be_read_is_listed_and_refused_or_left_out(spoilt):
    with pytest.raises(InputError) as told:
        open_pictures(spoilt, Shaping())
    for part in (
        "7 pictures of set cannot be read",
        "empty.png (0 bytes)",
        "text.jpg (no PNG, JPEG or WEBP)",
        "large.png (more than 89 million pixels)",
        "big.png (9000 x 10000 pixels, more than 89 million)",
        "deep.png (more than 8 bits a channel",
        "film.webp (3 frames: it is animated)",
        "film.png (3 frames: it is animated)",
        "--drop-unreadable",
    ):
        assert part in str(told.value)
    found = open_pictures(spoilt, Shaping(), drop=True)
    assert found.ids.tolist() == ["1.png", "a/x.png", "b/2.png", "b/10.png", "b/c/3.png"]
    alert = next(alert for alert in found.alerts if alert.code == "unreadable_pictures")
    assert alert.code == "unreadable_pictures" and "empty.png" in alert.message


def test_what_is_no_set_of_pictures_is_told(folder, tmp_path, drawn):
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="contains no pictures"):
        open_pictures(tmp_path / "none", Shaping())
    with pytest.raises(InputError, match="single picture"):
        open_pictures(folder / "1.png", Shaping())
    with pytest.raises(InputError, match="no picture"):
        open_pictures([folder / "1.png", folder / "7.png"], Shaping())
    with pytest.raises(InputError, match="smaller than the crop of 20 x 20"):
        open_pictures(folder, Shaping(crop=(20, 20)))
    save(folder / "wide.png", drawn[0][:8])
    with pytest.raises(InputError, match=r"different sizes: 1.png has 12 x 10 pixels, wide.png 8 x 10"):
        open_pictures(folder, Shaping())
    assert open_pictures(folder, Shaping((7, 7))).shape == (7, 7)
    assert open_pictures(["a cat", "a dog"], Shaping()) is None


@pytest.mark.parametrize(
    ("given", "found"), [(None, None), (224, (224,)), ("224", (224,)), ("8,9", (8, 9)), ((8, 9), (8, 9))]
)
def test_sides(given, found):
    assert sides("resize", given) == found


@pytest.mark.parametrize("given", ["a", 0, -3, 1.5, (1, 2, 3), 10**6, ""])
def test_sides_that_are_none(given):
    with pytest.raises(InputError, match="one side, or height and width"):
        sides("crop", given)
