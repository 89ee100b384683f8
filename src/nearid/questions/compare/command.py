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
    summary="Compare two or more runs: are they the same representation, up to which maps, and how closely?",
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
    texts={
        "*": "Two or more runs with one row per example. Rows are paired by position, or by --ids.",
        "groups": "Groups of maps to fit, separated by commas. Default: permutation, rigid and linear. ica is fitted "
        "on each run alone, which costs two fits per fold, and takes no part in the verdict. all fits every group.",
        "ids": "Column (or entry) of the files that holds row ids. Rows with the same id are paired.",
    },
)
