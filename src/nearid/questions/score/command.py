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
    choices={"measures": _measures},
    paths="latents",
    page="guide/score",
    examples=(
        "nearid score latents.npy factors.csv --report score.html",
        "nearid score z.npy u.csv --measures mcc,dci --periods angle=360",
        "nearid score z.npy u.csv --resolve ica --blocks film",
    ),
)
