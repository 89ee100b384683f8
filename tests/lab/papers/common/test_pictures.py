"""Pictures as text: what a library of pictures reads back is what was drawn."""

import base64
import io

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.papers.common.pictures import GAP, grid_picture


def read(address):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    kind, data = address.split(",")
    assert kind == "data:image/png;base64"
    return np.asarray(image.open(io.BytesIO(base64.b64decode(data))))


@pytest.mark.parametrize("channels", [1, 3])
def test_images_stand_where_they_belong(channels):
    images = np.random.default_rng(0).uniform(size=(2, 3, channels, 5, 4))
    found = read(grid_picture(images)).reshape(2 * (5 + GAP) - GAP, 3 * (4 + GAP) - GAP, channels)
    corner = found[5 + GAP :, 2 * (4 + GAP) :]
    np.testing.assert_allclose(corner / 255, images[1, 2].transpose(1, 2, 0), atol=0.5 / 255 + 1e-12)
    assert (found[5] == 128).all() and (found[:, 4] == 128).all()


def test_what_is_beyond_black_and_white_is_cut_off():
    assert read(grid_picture(np.array([-1.0, 2.0]).reshape(1, 1, 1, 1, 2))).tolist() == [[0, 255]]


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (2, 3, 2, 5, 4), (0, 3, 1, 5, 4)])
def test_what_is_no_grid_gets_a_sentence(shape):
    with pytest.raises(InputError, match=r"1 or 3\s+channels is expected"):
        grid_picture(np.zeros(shape))
