"""`nearid extract`."""

from collections.abc import Iterable, Mapping
from typing import Any

from nearid.show.command import Question
from nearid.show.help import OUTPUT


def _left(options: Mapping[str, Any]) -> str:
    from nearid.questions.extract.store import resume_hint

    return resume_hint(options["out"])


def _formats() -> Iterable[str]:
    from nearid.arrays.formats.registry import writable_names

    return writable_names()


QUESTION = Question(
    "nearid.questions.extract.run:extract",
    {"model": "MODEL", "data": "DATA"},
    choices={"format": _formats},
    short={"out": "-o"},
    required=("out",),
    left=_left,
    groups={"labels": OUTPUT, "dtype": OUTPUT},
    page="guide/extract",
    examples=(
        "nearid extract gpt2 texts.txt -o layers --pool words",
        "nearid extract resnet.pt images.npy -o layers --factory nets:resnet",
        "nearid extract model.onnx images.npy -o layers --layers output",
    ),
    done=lambda options: f"Layers written to {options['out']}",
)
