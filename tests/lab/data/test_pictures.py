"""Pictures of the one format that is expected."""

import io

import numpy as np
import pytest
from PIL import Image

from canonical_files import picture
from nearid.base.errors import InputError
from nearid.lab.data.pictures import decode


def test_a_picture_comes_as_it_is(rng):
    pixels = rng.integers(0, 256, (5, 4, 4), dtype=np.uint8)
    np.testing.assert_array_equal(decode(picture(pixels), "a.png", 3), pixels[..., :3])
    np.testing.assert_array_equal(decode(picture(pixels[..., 0]), "a.png", 1, (5, 4))[..., 0], pixels[..., 0])


@pytest.mark.parametrize("kind", ["EPS", "BMP", "TIFF", "GIF"])
def test_other_formats_are_refused(kind):
    file = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(file, kind)
    with pytest.raises(InputError, match=r"a\.png is not a whole picture"):
        decode(file.getvalue(), "a.png", 1)


def test_more_than_eight_bits_are_refused_rather_than_cut_off():
    with pytest.raises(InputError, match=r"a\.png is a picture of 16 bits, but 8 bits are expected"):
        decode(picture(np.full((4, 4), 1000, np.uint16)), "a.png", 1)


def test_another_size_is_refused_before_it_is_decoded():
    with pytest.raises(InputError, match=r"\(4, 4\) pixels, but \(5, 5\) are expected"):
        decode(picture(np.zeros((4, 4), np.uint8))[:-20], "a.png", 1, (5, 5))
