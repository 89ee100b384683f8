"""`nearid unmix`: independent components of a file, the model that gives them, and whether to trust it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nearid.show.command import Question


def _left(options: Mapping[str, Any]) -> str:
    from nearid.questions.unmix.run import left_behind

    return left_behind(Path(options["out"]))


def _formats() -> Iterable[str]:
    from nearid.arrays.formats.registry import writable_names

    return writable_names()


QUESTION = Question(
    "nearid.questions.unmix.run:unmix",
    {"x": "X"},
    choices={"format": _formats},
    paths="x",
    short={"out": "-o"},
    required=("out",),
    makes="out",
    left=_left,
    page="guide/unmix",
    examples=(
        "nearid unmix embeddings.npy -o ica --stability 2",
        "nearid unmix cells.parquet -o ica --features 'emb_*' --n-components 20",
    ),
    done=lambda options: f"Components and model written to {options['out']}",
)
