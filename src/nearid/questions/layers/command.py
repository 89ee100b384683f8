"""`nearid layers`: which layers of two networks hold the same representation?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nearid.show.command import Instead, Question
from nearid.show.help import OUTPUT


def _measures() -> Iterable[str]:
    from nearid.questions.layers.result import measures

    return measures()


def _left(options: Mapping[str, Any]) -> str:
    if options.get("data") is None or not options.get("cache"):
        return "nothing was written"
    return "the rows so far are in the cache; run the same command again to continue"


QUESTION = Question(
    "nearid.questions.layers.run:compare_layers",
    {"x": "A", "y": "[B]"},
    hidden=("names",),
    choices={"measures": _measures},
    left=_left,
    groups={"labels": OUTPUT},
    page="guide/models",
    examples=(
        "nearid layers layers1 layers2 --measures cka,r2",
        "nearid layers gpt2 distilgpt2 --data texts.txt --pool words",
        "nearid layers a.onnx b.onnx --data images.npy --report models.html",
    ),
    # Inputs for two models instead of layers that were extracted before.
    instead=Instead(
        "data",
        "nearid.questions.models.run:compare_models",
        "nearid.questions.extract.run:extract",
        hidden=("model", "out", "format", "restart", "overwrite"),
    ),
)
