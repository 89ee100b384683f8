"""`nearid score`: latents against known factors."""

from __future__ import annotations

from collections.abc import Iterable

from nearid.show.command import Question


def _measures() -> Iterable[str]:
    from nearid.measures.registry import measures

    return [name + (" (not by default)" if not m.by_default else "") for name, m in measures().items()]


QUESTION = Question(
    "nearid.questions.score.run:score",
    {"latents": "Z", "factors": "FACTORS"},
    summary="Score latents against known factors: are they the true ones, up to which maps, and how closely?",
    choices={"measures": _measures},
    paths="latents",
    page="guide/score",
    examples=(
        "nearid score latents.npy factors.csv --report score.html",
        "nearid score z.npy u.csv --measures mcc,dci --periods angle=360",
        "nearid score z.npy u.csv --resolve ica --blocks film",
    ),
    texts={
        "factors": "One column per true factor. Rows are paired by position, or by --ids.",
        "kinds": "Kind of a factor, such as shape=categorical: continuous, integer, categorical or circular. none: the "
        "column is no factor. May be repeated. Default: nearid infers the kinds.",
        "periods": "Period of a circular factor, such as angle=360. May be repeated.",
        "ids": "Column of both files that holds row ids. Rows with the same id are paired.",
        "measures": "Measures of recovery, separated by commas; all for every one.",
        "folds": "Number of folds. Default: 5, and 3 for dci, sap and explicitness.",
        "max_rows": "Largest number of rows for measures that hold them in memory. If there are more, nearid takes a "
        "random sample. mcc, r2 and the verdict always use all rows.",
    },
)
