"""What the data are: texts, or arrays; wrong ones are refused here, before torch is imported."""

from __future__ import annotations

import os
from typing import Any

from nearid.arrays.formats.registry import format_of, suffixes
from nearid.arrays.paths import known_format
from nearid.arrays.reading import missing, reached
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.questions.extract.texts import LINES, RECORDS, Texts, open_texts


def open_inputs(data: Any, *, column: str | None = None, ids: Any = None) -> Texts | None:
    """The texts that the data are; None for arrays, of which a path is checked.

    Parameters
    ----------
    column : str, optional
        Column with the texts. Default: the one named text, or the only one.
    ids : array, path or str, optional
        Names of the inputs; a text names a column with them.
    """
    if not isinstance(data, str | os.PathLike):
        return open_texts(data, column, ids)
    path = local_path(data)
    if not os.path.exists(path):
        raise missing(path)
    texts = open_texts(path, column, ids)
    if texts is None:
        with reached(path):
            if format_of(path) is None:
                known = ", ".join((*LINES, *RECORDS, *suffixes()))
                raise InputError(f"{path.name} cannot be opened as inputs. Give texts or arrays: {known}.")
            known_format(path)
    return texts


def refuse_options(kind: str, **options: Any) -> None:
    """Refuse options that the data have no use for."""
    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None:
        raise InputError(f"{given} (--{given.replace('_', '-')}) is for {kind}, which the data are not. Leave it out.")
