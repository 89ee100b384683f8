r"""Labels, batches and blocks that are part of the text of a column: Metadata_Plate:Week\d+ is the week of each plate.

A column is named COLUMN or COLUMN:PATTERN, where PATTERN is a regular expression. The class of a row is what its first
group matches, or without a group the whole match.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from nearid.arrays import Columns
from nearid.arrays.names import few, not_found
from nearid.arrays.tables import as_text
from nearid.base.alerts import Alert
from nearid.base.errors import InputError


def possible_names(given: Iterable[Any]) -> list[str]:
    """Names of columns that texts of the form COLUMN or COLUMN:PATTERN may mean, whatever columns there are."""
    names: list[str] = []
    for text in given:
        if isinstance(text, str):
            names += [text, *(text[: found.start()] for found in re.finditer(":", text))]
    return names


def text_column(what: str, given: str, table: Columns) -> tuple[np.ndarray, list[Alert]]:
    """The values of a column of a table, or the part of their text that a pattern matches, and alerts.

    Parameters
    ----------
    what : str
        The option in messages, such as "batches".
    given : str
        COLUMN or COLUMN:PATTERN.
    """
    name = max((each for each in possible_names([given]) if each in table.values), key=len, default=None)
    if name is None:
        raise not_found(table.name, what, given.partition(":")[0], table.values)
    values = table.values[name]
    if name == given:
        return values, []
    pattern = given[len(name) + 1 :]
    try:
        search = re.compile(pattern).search
    except re.error as error:
        raise InputError(
            f"{what}={given!r}: {pattern!r} is no regular expression ({error}). The form is COLUMN:PATTERN, such as "
            rf"Plate:Week\d+."
        ) from None
    # NaN is found in a dict only as the same object, so the list is made once.
    listed = values.tolist()
    texts = {value: as_text(value) for value in dict.fromkeys(listed)}
    found = {value: None if text is None else search(text) for value, text in texts.items()}
    parts = {value: match and (match[1] if match.re.groups else match[0]) for value, match in found.items()}
    lost = [text for value, text in texts.items() if text is not None and not parts[value]]
    if len(lost) == len([text for text in texts.values() if text is not None]):
        raise InputError(
            f"{what}={given!r}: {pattern!r} matches no value of the column {name!r}, which holds "
            f"{few(map(repr, lost), 5)}. The form is COLUMN:PATTERN, where PATTERN is a regular expression."
        )
    alerts = []
    if lost:
        unmatched = set(lost)
        rows = sum(texts[value] in unmatched for value in listed)
        alerts.append(
            Alert(
                "missing_metadata",
                f"{pattern!r} does not match {few(map(repr, lost), 5)} in the column {name!r}, so {rows:,} rows have "
                f"no value of {what} and are left out.",
            )
        )
    part = np.empty(len(values), dtype=object)
    part[:] = [parts[value] or None for value in listed]
    return part, alerts
