"""ImageNet-X: sixteen factors, judged by people, in which an image of ImageNet differs from its class.

The annotations come with the Python package imagenet-x (CC BY-NC 4.0), or as a file in the same layout: one line of
JSON per image, or a table with the same column names. nearid reads the files of the package and does not import it.
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
# The factor in which an image differs most, or all factors in which it differs.
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
        Whether the image differs from its class in this factor.
    classes : ndarray of int, shape (n,)
        From 0 to 999.
    digest : str
        Hash of all annotations: 16 hex digits.
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
        Which annotations of the package to read: only the factor in which an image differs most, or all of them. The
        prototypes (the images that the others were compared with) are left out, as in the package.
    """
    if path:
        return _annotations(local_path(path), frozenset())
    folder = package_folder()
    if folder is None:
        raise InputError(
            "The annotations of ImageNet-X are missing. Run: pip install imagenet-x (CC BY-NC 4.0). Or give a file of "
            "annotations (imagenet_x_val_top_factor.jsonl of its repository) with --set annotations=FILE."
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
            f"The package imagenet-x is damaged: a table with the column file_name cannot be read from {path}. "
            f"Install it again, or give a file of annotations with --set annotations=FILE."
        )
    return prototypes


def _annotations(path: Path, without: frozenset[str]) -> Annotations:
    if not path.is_file():
        raise InputError(f"There is no file {path}. It was given as the annotations of ImageNet-X.")
    if path.suffix.lower() not in (".jsonl", ".csv"):
        raise InputError(
            f"{path.name} cannot be read as annotations: lines of JSON (.jsonl) or a table (.csv) are expected."
        )
    rows = [(image_name(r["file_name"]), _numbers(path.name, line, r)) for line, r in _records(path)]
    kept = {name: numbers for name, numbers in rows if name not in without}
    if len(kept) < sum(name not in without for name, _ in rows):
        raise InputError(f"{path.name} has several lines for the same image, but one line per image is expected.")
    if len(kept) < 2:
        raise InputError(f"{path.name} annotates {len(kept)} images, but at least 2 are expected.")
    table = np.array(list(kept.values()), dtype=np.int64)
    images = np.array(list(kept))
    factors = {name: table[:, k + 1] == 1 for k, name in enumerate(FACTORS)}
    digest = hashlib.sha256("\n".join(kept).encode() + table.astype("<i8").tobytes()).hexdigest()[:16]
    return Annotations(images, factors, table[:, 0], digest)


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the lines of a file with their numbers, after checking that each has all needed names."""
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
        # An integer with thousands of digits in JSON raises a different ValueError.
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
