"""`nearid layers`: which layers of two networks hold the same representation?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nearid.show.command import Instead, Question


def _measures() -> Iterable[str]:
    from nearid.questions.layers.result import measures

    return measures()


def _left(options: Mapping[str, Any]) -> str:
    if options.get("data") is None or not options.get("cache"):
        return "nothing was written"
    return "what was extracted is in the cache, and the same command goes on from there"


QUESTION = Question(
    "nearid.questions.layers.run:compare_layers",
    {"x": "A", "y": "[B]"},
    hidden=("names",),
    choices={"measures": _measures},
    left=_left,
    # Inputs for two models instead of layers that were extracted before.
    instead=Instead(
        "data",
        "nearid.questions.models.run:compare_models",
        "nearid.questions.extract.run:extract",
        hidden=("model", "out", "format", "restart", "overwrite"),
    ),
)
