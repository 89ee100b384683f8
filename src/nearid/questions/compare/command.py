"""`nearid compare`: the ladder for two or more runs."""

from __future__ import annotations

from collections.abc import Iterable

from nearid.show.command import Question
from nearid.show.help import COMPUTED


def _groups() -> Iterable[str]:
    from nearid.groups.ladder import GROUPS

    return GROUPS


QUESTION = Question(
    "nearid.questions.compare.run:compare",
    {"*": "A B [C ...]"},
    hidden=("names",),
    choices={"groups": _groups},
    paths="*",
    page="guide/compare",
    examples=(
        "nearid compare run1.npy run2.npy --report comparison.html",
        "nearid compare seed*.npy --groups all",
        "nearid compare a.parquet b.parquet --ids cell_id --blocks well",
    ),
    groups={"scale": COMPUTED},
)
