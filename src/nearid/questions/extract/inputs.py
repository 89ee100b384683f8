"""Type of the data: texts, pictures or arrays. Wrong data are refused here, before torch is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nearid.arrays.formats.registry import format_of, suffixes
from nearid.arrays.paths import known_format
from nearid.arrays.reading import missing, reached
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.questions.extract.pictures import SUFFIXES, Pictures, Shaping, are_pictures, open_pictures, sides
from nearid.questions.extract.processor import open_processor
from nearid.questions.extract.texts import LINES, RECORDS, Texts, given_ids, is_saved, open_texts, refuse_no_tokeniser

Options = Mapping[str, Any]


class Given(NamedTuple):
    """Inputs that are opened without torch; for arrays, both texts and pictures are None.

    Attributes
    ----------
    colours : mapping
        scale, mean and std, as given or from the model's image processor.
    shaping : mapping
        How pictures were resized, for the provenance.
    of_model : bool
        Whether all of it comes from the model's own image processor.
    """

    texts: Texts | None
    pictures: Pictures | None
    colours: Options
    shaping: Options
    of_model: bool


def open_inputs(
    data: Any,
    model: Any,
    *,
    pool: Any,
    ids: Any,
    revision: str | None,
    for_texts: Options,
    for_pictures: Options,
    for_images: Options,
    for_arrays: Options,
) -> Given:
    """Open and check texts and pictures; for arrays only the path is checked. Options for other data are refused.

    Parameters
    ----------
    ids : array, path or str, optional
        Names of the inputs; a string is the name of a column.
    for_texts, for_pictures, for_images, for_arrays : mapping
        Options by name: for texts; for picture files; for images (files or arrays); for arrays.
    """
    if isinstance(data, str | os.PathLike):
        data = local_path(data)
        if not os.path.exists(data):
            raise missing(data)
    pictures, colours, shaping, of_model = None, for_images, Shaping(), False
    if _is_pictures(data):
        shaping, colours, of_model = _prepared(model, revision, for_pictures, for_images)
        pictures = open_pictures(data, shaping, ids=given_ids(ids), drop=bool(for_pictures["drop_unreadable"]))
    if pictures is not None:
        _refuse("texts", for_texts)
        _refuse("arrays", for_arrays)
        _refuse_words(pool)
        return Given(None, pictures, colours, shaping.to_dict(), of_model)
    _refuse("files of pictures", for_pictures)
    texts = open_texts(data, for_texts["column"], ids)
    if texts is not None:
        _refuse("images", for_images)
        _refuse("arrays", for_arrays)
        if for_texts["tokenizer"] is None:
            refuse_no_tokeniser(model)
        return Given(texts, None, for_images, {}, False)
    _refuse("texts", for_texts)
    _refuse_words(pool)
    if isinstance(data, Path):
        if format_of(data) is None:
            known = ", ".join((*LINES, *RECORDS, *suffixes()))
            raise InputError(
                f"{data.name} cannot be opened as inputs. Give texts or arrays ({known}), or a folder of pictures "
                f"({', '.join(SUFFIXES)})."
            )
        with reached(data):
            known_format(data)
    return Given(None, None, for_images, {}, False)


def _is_pictures(data: Any) -> bool:
    """Whether data are a picture, a folder of pictures, or a list of paths of pictures."""
    if isinstance(data, Path):
        return data.suffix.lower() in SUFFIXES or (data.is_dir() and format_of(data) is None and not is_saved(data))
    return are_pictures(data)


def _prepared(
    model: Any, revision: str | None, for_pictures: Options, for_images: Options
) -> tuple[Shaping, Options, bool]:
    """Sizes and colours: the given ones, and otherwise those of the model's image processor."""
    resize, crop = (sides(name, for_pictures[name]) for name in ("resize", "crop"))
    chosen = {
        "resize": None if resize is None else resize[0] if len(resize) == 1 else resize,
        "crop": None if crop is None else (crop[0], crop[-1]),
        "grey": for_pictures["grey"],
    }
    chosen = {name: value for name, value in chosen.items() if value is not None}
    colours = {name: value for name, value in for_images.items() if value is not None}
    # If all are given, the model's image processor is not needed.
    complete = {"resize", "crop", "mean", "std"} <= {*chosen, *colours}
    processor = None if complete else open_processor(model, revision)
    if processor is None:
        return Shaping(**chosen), for_images, False
    own = {"scale": processor.scale, "mean": processor.mean, "std": processor.std}
    return replace(processor.shaping, **chosen), {**own, **colours}, not chosen and not colours


def _refuse(kind: str, options: Options) -> None:
    """Refuse options that do not apply to the data."""
    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None:
        raise InputError(
            f"{given} (--{given.replace('_', '-')}) is for {kind}, but the data are not {kind}. Leave it out."
        )


def _refuse_words(pool: Any) -> None:
    if pool == "words":
        raise InputError("pool is 'words', but the data are not texts. For token ids choose 'tokens'.")
