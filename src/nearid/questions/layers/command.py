"""`nearid layers`: which layers of two networks hold the same representation?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nearid.questions.extract.command import TEXTS as EXTRACTION
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
    summary="Compare every layer of one model with every layer of another: how similar are they?",
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
    texts={
        **EXTRACTION,
        "x": "The source: a folder that nearid extract wrote. With --data: a model, as in nearid extract.",
        "y": "The target, given like A. Default: the layers of A are compared with each other. Rows are paired by id "
        "if both sides have ids, otherwise by position.",
        "layers": "Layers of both models to compare: names or patterns, separated by commas. Default: all.",
        "data": "Inputs of two models: texts, pictures or arrays, as in nearid extract. A and B are then models.",
        "names": "Names of the two models in the output, separated by a comma. Default: the names of their files.",
        "measures": "Measures, separated by commas. cka: linear CKA, debiased. cca, svcca: mean canonical correlation. "
        "mcc: mean correlation of matched columns. r2: share of the target's variance that a linear map explains; "
        "r2_rigid and so on: the same for other groups. epsilon, epsilon_rigid and so on: error of these maps over the "
        "target's diameter (slower). All but cka are measured on held-out rows.",
        "options_a": "Option of nearid extract for the first model only, such as prefix=encoder. May be repeated.",
        "options_b": "Option of nearid extract for the second model only. May be repeated.",
    },
    # Inputs for two models instead of layers that were extracted before.
    instead=Instead(
        "data",
        "nearid.questions.models.run:compare_models",
        "nearid.questions.extract.run:extract",
        hidden=("model", "out", "format", "restart", "overwrite"),
    ),
)
