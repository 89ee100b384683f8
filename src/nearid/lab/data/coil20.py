"""COIL-20: 20 objects on a turntable, photographed every 5 degrees."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.data.base import Dataset, FactorInfo, LabelledImages, RemoteFile, grid
from nearid.lab.data.images import ArrayImages, decode
from nearid.lab.data.unarchive import opened

FILE = "coil-20-proc.zip"
# Another archive of the same pictures.
TAR = "coil20_png.tar.gz"
SIDE = 128
# Any picture of this size takes far fewer bytes.
MOST = 1 << 20
FACTORS = (
    FactorInfo("object", "categorical", 20),
    FactorInfo("pose", "circular", 72, 360.0, tuple((np.arange(72) * 5.0).tolist())),
)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Decode all pictures from the archive without unpacking it."""
    path = folder / FILE if (folder / FILE).is_file() else folder / TAR
    codes = grid(FACTORS)
    images = np.empty((len(codes), SIDE, SIDE, 1), np.uint8)
    seen = np.zeros(len(codes), bool)
    for name, data in _pictures(path):
        numbers = re.search(r"obj(\d+)__(\d+)\.png$", name)
        if numbers is None:
            continue
        at = (int(numbers[1]) - 1) * 72 + int(numbers[2])
        if not (1 <= int(numbers[1]) <= 20 and int(numbers[2]) < 72):
            raise InputError(f"{path.name} has a picture {name!r}, but obj1__0 to obj20__71 are expected.")
        images[at], seen[at] = decode(data, name, 1, (SIDE, SIDE)), True
    if not seen.all():
        obj, pose = codes[int(np.argmin(seen))]
        raise InputError(f"{path.name} lacks {int((~seen).sum())} pictures, the first obj{obj + 1}__{pose}.png.")
    return LabelledImages("coil20", ArrayImages("coil20", images), FACTORS, codes)


def _pictures(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file of the archive."""
    with opened(path) as members:
        for member in members:
            if member.size > MOST:
                raise InputError(
                    f"{path.name} declares {member.size} bytes for {member.name!r}, which is not a picture of this set."
                )
            file = member.open() if member.plain and not member.folder else None
            if file is not None:
                with file:
                    yield member.name, file.read()


COIL20 = Dataset(
    name="coil20",
    title="COIL-20",
    about="objects on a turntable: object, pose",
    images=1440,
    shape=(SIDE, SIDE, 1),
    factors=FACTORS,
    files=(
        RemoteFile(
            FILE,
            "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
        ),
    ),
    licence="for research that is not commercial",
    citation="Nene, Nayar, Murase: Columbia Object Image Library (COIL-20), CUCS-005-96, 1996",
    homepage="https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php",
    read=read,
    layouts=((TAR,),),
)
