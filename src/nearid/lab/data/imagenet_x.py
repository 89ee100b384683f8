"""ImageNet-X: what sets each image of ImageNet apart from its class, as people judged it, in sixteen factors.

The annotations come with the Python package imagenet-x (CC BY-NC 4.0), or as a file in its layout: a line of JSON for
each image, or a table with the same names. The package is found, not imported, and nothing of it is kept.
"""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.base.files import local_path

FACTORS = (
    *("pose", "background", "pattern", "color", "smaller", "shape", "partial_view", "subcategory", "texture", "larger"),
    *("darker", "object_blocking", "person_blocking", "style", "brighter", "multiple_objects"),
)
PACKAGE = "imagenet_x"
# The factor that sets an image apart most, or all of them.
SELECTIONS = ("top", "multi")
PROTOTYPES = "prototypical_paths.csv"
PICTURES = (".jpeg", ".jpg", ".png", ".webp")
CLASSES = 1000


@dataclass(frozen=True)
class Annotations:
    """Annotated images.

    Attributes
    ----------
    images : ndarray of str, shape (n,)
        Names of the images, without folder and suffix.
    factors : dict of ndarray of bool, shape (n,)
        Whether a factor sets an image apart.
    classes : ndarray of int, shape (n,)
        From 0 to 999.
    digest : str
        16 hex digits that follow from all of them.
    """

    images: np.ndarray
    factors: dict[str, np.ndarray]
    classes: np.ndarray
    digest: str


def image_name(text: object) -> str:
    """The name of an image without its folder and suffix."""
    name = str(text).replace("\\", "/").rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix.lower() in PICTURES else name


def load_annotations(path: str = "", selection: str = "top") -> Annotations:
    """Read the annotations of a file, or those of the validation images in the installed package.

    Parameters
    ----------
    path : str
        A file of lines of JSON (.jsonl) or a table (.csv); empty for the package.
    selection : {"top", "multi"}
        Of the package: the one factor that sets an image apart most, or all of them. The prototypes that the others
        were compared with are left out, as the package does.
    """
    if path:
        return _annotations(local_path(path), frozenset())
    folder = package_folder()
    if folder is None:
        raise InputError(
            "The annotations of ImageNet-X are not here: pip install imagenet-x (CC BY-NC 4.0), or name a file of them "
            "(imagenet_x_val_top_factor.jsonl of its repository) with --set annotations=FILE."
        )
    return _annotations(folder / f"imagenet_x_val_{selection}_factor.jsonl", _prototypes(folder / PROTOTYPES))


def package_folder() -> Path | None:
    """The folder of the package's annotations, where it is installed."""
    spec = find_spec(PACKAGE)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    return next((folder for place in places if (folder := Path(place, "annotations")).is_dir()), None)


def _prototypes(path: Path) -> frozenset[str]:
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            prototypes = frozenset(image_name(row["file_name"]) for row in csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error, KeyError):
        prototypes = frozenset()
    if not prototypes:
        raise InputError(
            f"The package imagenet-x is damaged: a table with the column file_name cannot be read from {path}. Install "
            "it again, or name a file of annotations with --set annotations=FILE."
        )
    return prototypes


def _annotations(path: Path, without: frozenset[str]) -> Annotations:
    if not path.is_file():
        raise InputError(f"There is no file {path} to read the annotations of ImageNet-X from.")
    if path.suffix.lower() not in (".jsonl", ".csv"):
        raise InputError(f"{path.name} must be lines of JSON (.jsonl) or a table (.csv) to be read as annotations.")
    rows = [(image_name(r["file_name"]), _numbers(path.name, line, r)) for line, r in _records(path)]
    kept = {name: numbers for name, numbers in rows if name not in without}
    if len(kept) < sum(name not in without for name, _ in rows):
        raise InputError(f"{path.name} annotates some image more than once: every image must have one line.")
    if len(kept) < 2:
        raise InputError(f"{path.name} annotates {len(kept)} images, but at least 2 are expected.")
    table = np.array(list(kept.values()), dtype=np.int64)
    images = np.array(list(kept))
    factors = {name: table[:, k + 1] == 1 for k, name in enumerate(FACTORS)}
    digest = hashlib.sha256("\n".join(kept).encode() + table.astype("<i8").tobytes()).hexdigest()[:16]
    return Annotations(images, factors, table[:, 0], digest)


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Lines of a file with their numbers, each with all names that are needed."""
    with path.open(encoding="utf-8", newline="") as lines:
        try:
            parsed: Iterable[tuple[int, Any]] = (
                enumerate(csv.DictReader(lines), start=2)
                if path.suffix.lower() == ".csv"
                else ((k, json.loads(line)) for k, line in enumerate(lines, start=1) if line.strip())
            )
            for number, record in parsed:
                lacking = [
                    n for n in ("file_name", "class", *FACTORS) if not isinstance(record, dict) or n not in record
                ]
                if lacking:
                    raise InputError(f"Line {number} of {path.name} lacks {', '.join(lacking[:4])}: {_LAYOUT}")
                if not isinstance(record["file_name"], str):
                    raise InputError(f"Line {number} of {path.name} has a file_name that is not text: {_LAYOUT}")
                yield number, record
        except InputError:
            raise
        # JSON with an integer of thousands of digits is a ValueError of another kind.
        except (ValueError, RecursionError, csv.Error) as error:
            raise InputError(f"{path.name} cannot be read as annotations: {error}. {_LAYOUT.capitalize()}") from None


def _numbers(name: str, line: int, record: Mapping[str, Any]) -> list[int]:
    """The class and the factors of an image."""
    given = [record["class"], *(record[factor] for factor in FACTORS)]
    try:
        numbers = [float(value) for value in given]
    except (TypeError, ValueError, OverflowError):
        numbers = [-1.0]
    whole = [int(number) if number.is_integer() else -1 for number in numbers]
    if not 0 <= whole[0] < CLASSES or not set(whole[1:]) <= {0, 1}:
        raise InputError(
            f"Line {line} of {name} has a class that is not from 0 to {CLASSES - 1}, or a factor that is not 0 or 1."
        )
    return whole


_LAYOUT = "each image needs its file_name, class and a 0 or 1 for each of the sixteen factors."
