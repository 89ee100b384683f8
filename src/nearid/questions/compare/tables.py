"""What questions share whose tables are not yet a View."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from nearid.groups.ladder import GROUPS
from nearid.show.terminal import WIDE
from nearid.show.view import number, span

__all__ = ["COLOURS", "WIDE", "number", "span", "warned"]

COLOURS = {name: group.colour for name, group in GROUPS.items()} | {"none": "red", "undefined": "yellow"}


def warned(messages: Iterable[str]) -> list[Text]:
    """Cautions, a line each."""
    return [Text(f"! {m}", style="yellow") for m in messages]
