"""`nearid layers`: which layers of two networks hold the same representation?"""

from __future__ import annotations

from collections.abc import Iterable

from nearid.show.command import Instead, Question


def _measures() -> Iterable[str]:
    from nearid.questions.layers.result import measures

    return measures()


QUESTION = Question(
    "nearid.questions.layers.run:compare_layers",
    {"x": "A", "y": "[B]"},
    hidden=("names",),
    choices={"measures": _measures},
    # Inputs for two models instead of layers that were extracted before.
    instead=Instead(
        "data",
        "nearid.questions.models.run:compare_models",
        "nearid.questions.extract.run:extract",
        hidden=("model", "out", "format", "restart", "overwrite"),
    ),
)
