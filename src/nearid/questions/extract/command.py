"""`nearid extract`."""

from collections.abc import Mapping
from typing import Any

from nearid.show.command import Question


def _left(options: Mapping[str, Any]) -> str:
    from nearid.questions.extract.store import resume_hint

    return resume_hint(options["out"])


QUESTION = Question(
    "nearid.questions.extract.run:extract",
    {"model": "MODEL", "data": "DATA"},
    short={"out": "-o"},
    required=("out",),
    left=_left,
    done=lambda options: f"Layers written to {options['out']}",
)
