"""`nearid compare`: the ladder for two or more runs."""

from __future__ import annotations

from collections.abc import Iterable

from nearid.show.command import Question


def _groups() -> Iterable[str]:
    from nearid.groups.ladder import GROUPS

    return GROUPS


QUESTION = Question(
    "nearid.questions.compare.run:compare",
    {"*": "A B [C ...]"},
    hidden=("names",),
    choices={"groups": _groups},
    paths="*",
)
