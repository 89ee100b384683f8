import io
import tarfile
import zipfile

import numpy as np
import pytest

from canonical_files import picture
from nearid.base.errors import InputError
from nearid.lab.data.coil20 import FILE, TAR
from nearid.lab.data.load import load


def pixels(obj, pose):
    return np.full((128, 128), 5 * obj + pose, np.uint8)


def write_zip(folder, leave_out=()):
    with zipfile.ZipFile(folder / FILE, "w") as archive:
        archive.writestr("coil-20-proc/", "")
        archive.writestr("coil-20-proc/readme.txt", "text")
        for obj in range(1, 21):
            for pose in range(72):
                if (obj, pose) not in leave_out:
                    archive.writestr(f"coil-20-proc/obj{obj}__{pose}.png", picture(pixels(obj, pose)))


def test_pictures_straight_from_the_archive(home):
    write_zip(home("coil20"))
    found = load("coil20")
    assert found.images.shape == (1440, 128, 128, 1)
    obj, pose = found.codes.T
    np.testing.assert_array_equal(found.images.read()[:, 3, 4, 0], 5 * (obj + 1) + pose)
    np.testing.assert_array_equal(found.columns["pose"], pose * 5)


def test_a_missing_picture_is_told(home):
    write_zip(home("coil20"), leave_out=[(3, 7), (4, 0)])
    with pytest.raises(InputError, match=r"lacks 2 pictures, the first obj3__7\.png"):
        load("coil20")


@pytest.mark.parametrize(
    "name, data, message",
    [
        ("dataset/obj21__0.png", b"", "obj20__71"),
        ("dataset/obj1__0.png", b"x", "not a whole picture.* NAME --again"),
    ],
)
def test_odd_pictures_are_refused(home, name, data, message):
    with tarfile.open(home("coil20") / TAR, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    with pytest.raises(InputError, match=message):
        load("coil20")


def test_the_real_ones(real_data):
    if not (real_data / "coil20").is_dir():
        pytest.skip(f"COIL-20 is not in {real_data}")
    found = load("coil20")
    assert found.images.shape == (1440, 128, 128, 1) and len(np.unique(found.codes, axis=0)) == 1440
    # A turntable: neighbours in pose are alike, and the last is a neighbour of the first.
    views = found.images.read().reshape(20, 72, -1).astype(np.float32)
    apart = [np.abs(views - np.roll(views, shift, axis=1)).mean() for shift in (1, 36)]
    assert apart[0] < 0.5 * apart[1]
    last_to_first = np.abs(views[:, 71] - views[:, 0]).mean()
    assert last_to_first < 0.6 * apart[1]
