"""Linear identifiability seen from the heads: the map that two heads imply, beside a map fitted to the features."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.metadata import choose_columns, metadata_alerts
from nearid.arrays.open import read_vector, vector_in
from nearid.arrays.paths import name_of, split_key
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.base.options import Count, Seed, Size, as_given, checked
from nearid.base.progress import Reporting, reporting
from nearid.base.provenance import provenance
from nearid.geometry.diversity import LARGEST_CONDITION, Pairs, choose_pairs
from nearid.geometry.transforms import TransformComparison, compare_transforms
from nearid.moments import Floats
from nearid.questions.compare.verdict import LEAST_EXPLAINED, MARGIN
from nearid.questions.heads.result import HeadComparison, HeadVerdict

# With fewer rows per feature, a fitted map is much worse than the best one.
FEW = 5


@dataclass(frozen=True)
class _Head:
    rows: Rows
    bias: Floats | None

    @property
    def vectors(self) -> np.ndarray:
        return self.rows.read(0, self.rows.shape[0])


@checked
def compare_heads(
    head1: Any,
    head2: Any,
    features1: Any,
    features2: Any,
    /,
    *,
    biases: Sequence[Any] | str | bool = "own",
    pairs: bool = False,
    draws: Count = 100,
    ridge: Size | Literal["auto"] = "auto",
    names: Sequence[str] | None = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    random_state: Seed = 0,
    progress: Reporting = False,
) -> HeadComparison:
    """Return how well the heads of two models predict the linear map between their features.

    Take two models p(y | x) = softmax(f(x) . g(y) + b(y)) with equal likelihoods. Their features f are then related by
    a linear map that follows from the heads g alone. This needs at least M + 1 classes whose vectors span the M
    features. nearid computes this map from the heads, fits another one to half of the rows, and judges both on the
    other half. Agreement is evidence of linear identifiability.

    Parameters
    ----------
    head1 : array of shape (K, M), file, FILE:ENTRY, or module with a weight
        Vectors of the K classes, tokens or samples y: the weights of a classifier, the output embeddings of a language
        model, g(y) of a contrastive model at some y.
    head2 : the same
        The head of the second model, with the classes in the same order.
    features1 : array of shape (n, M), file, FILE:ENTRY or FOLDER:LAYER
        Input of the first head.
    features2 : the same
        Input of the second head, for the same examples. If both sides have ids, rows are paired by id, otherwise by
        position.
    biases : {"own", "none"}, or one of these, a vector or a file for each head, default="own"
        Biases of the logits. "own" uses the biases of the module, or the entry x.bias beside x.weight of a checkpoint.
        "none" ignores them. Give two files in one text with a comma between them.
    pairs : bool, default=False
        Compute the map from M pairs of classes, as in the paper: the best conditioned of `draws` random choices.
        Default: from all differences of classes by least squares, which is more exact.
    draws : int, default=100
        Random choices of pairs to try with `pairs`.
    ridge : float or "auto", default="auto"
        Ridge penalty of the fitted map. "auto" chooses it by cross-validation within the half that it is fitted to.
        0 is plain least squares.
    names : two of str, optional
        Names of the models in the output.
    features : sequence of str or str, optional
        If the features are tables: columns to use, by name or pattern ("emb_*"), in a list or a text with commas.
        Default: all numeric columns.
    exclude : sequence of str or str, optional
        If the features are tables: columns to leave out, such as "plate,well_*".
    random_state : int, default=0
        Seed of the halves of the rows and of the pairs.
    progress : bool or function, default=False
        Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.

    Returns
    -------
    HeadComparison
        Both maps, what each explains on held-out rows, and a verdict.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> rng = np.random.default_rng(0)
    >>> head, features, turn = rng.normal(size=(9, 3)), rng.normal(size=(100, 3)), rng.normal(size=(3, 3))
    >>> comparison = nearid.compare_heads(head, head @ np.linalg.inv(turn).T, features, features @ turn)
    >>> comparison.verdict.outcome, round(comparison.explained["map from heads"].value, 6)
    ('agree', 1.0)
    """
    own = _biases(biases)
    heads = [_open_head(head, f"head {i}", own[i - 1] is True) for i, head in enumerate((head1, head2), start=1)]
    shifts = [
        h.bias if b is None or b is True else read_vector(b, f"bias {i}")
        for i, (h, b) in enumerate(zip(heads, own, strict=True), start=1)
    ]
    sides = [_open(f, f"features {i}") for i, f in enumerate((features1, features2), start=1)]
    features, exclude = as_given(features), as_given(exclude)
    rows = pair_rows(*choose_columns(sides, features, exclude))
    for head, side in zip(heads, (rows.x, rows.y), strict=True):
        _check_width(head.rows, side)
    _refuse_orders(heads[0].rows, heads[1].rows, (rows.x, rows.y))
    m = heads[0].rows.shape[1]
    fewest, classes = 2 * (m + 1), min(head.rows.shape[0] for head in heads)
    if rows.n < fewest <= classes:
        raise InputError(
            f"{rows.x.name} and {rows.y.name} have {rows.n} rows of {m} features, which are too few, and the heads "
            f"have {classes} classes. The arguments may be swapped: give the heads first, then the features (at least "
            f"{fewest} rows)."
        )
    check_memory("The features", 6 * 8 * rows.n * m, "Give fewer rows: a few thousand are enough.")
    vectors = heads[0].vectors, heads[1].vectors
    biased = any(b is not None for b in shifts)
    with reporting(progress) as stages:
        chosen = None
        if pairs:
            tick = stages("choices of pairs", draws)
            chosen = choose_pairs(*vectors, draws=draws, random_state=random_state, tick=tick)
        compared = compare_transforms(
            vectors,
            rows.take(np.arange(rows.n)),
            biases=shifts if biased else None,
            pairs=None if chosen is None else chosen.pairs,
            ridge=ridge,
            random_state=random_state,
            tick=stages("maps", 3),
        )
    options = {
        "biases": biased,
        "pairs": pairs,
        "draws": draws if pairs else None,
        "ridge": ridge,
        "random_state": random_state,
        "features": features,
        "exclude": exclude,
    }
    opened = (heads[0].rows, heads[1].rows, rows.x, rows.y)
    called = tuple(names) if names is not None else (heads[0].rows.name, heads[1].rows.name)
    if len(called) != 2:
        raise InputError(f"{len(called)} names were given for 2 models.")
    return HeadComparison(
        names=called,
        classes=len(vectors[0]),
        width=m,
        n=rows.n,
        biased=biased,
        pairs=chosen,
        compared=compared,
        verdict=_decide(compared, m),
        alerts=[
            *(Alert("pairing", note) for note in rows.notes),
            *metadata_alerts(rows.x),
            *metadata_alerts(rows.y),
            *_alerts(compared, chosen, rows.n, m),
        ],
        provenance=provenance(options, zip((head1, head2, features1, features2), opened, strict=True)),
    )


def _biases(given: Sequence[Any] | str | bool) -> list[Any]:
    """For each head True (its own), None, or a vector."""
    words = {"own": True, "none": None, True: True, False: None}
    if isinstance(given, str):
        given = given.split(",") * (2 if given in words else 1)
    each = [given] * 2 if isinstance(given, bool) else list(given)
    if len(each) != 2:
        raise InputError(f"{len(each)} biases were given for 2 heads. Give one for each head, 'own' or 'none'.")
    return [words[b] if isinstance(b, str | bool) and b in words else b for b in each]


def _open(source: Any, name: str) -> Rows:
    own = isinstance(source, str | os.PathLike | Rows)
    return open_rows(source, name=None if own else name)


def _open_head(head: Any, name: str, with_bias: bool) -> _Head:
    if hasattr(head, "weight"):
        bias = getattr(head, "bias", None) if with_bias else None
        return _Head(open_rows(head.weight.detach(), name=name), None if bias is None else read_vector(bias, name))
    rows = _open(head, name)
    if not with_bias or not isinstance(head, str | os.PathLike):
        return _Head(rows, None)
    path = split_key(head)[0]
    entry = rows.name.removeprefix(f"{name_of(path)}:")
    stem = entry.removesuffix("weight")
    bias = vector_in(path, f"{stem}bias") if stem != entry else None
    return _Head(rows, None if bias is None else read_vector(bias, f"{name_of(path)}:{stem}bias"))


def _check_width(head: Rows, features: Rows) -> None:
    if head.shape[1] == features.shape[1]:
        return
    turned = " It seems to be transposed: give its transpose." if head.shape[0] == features.shape[1] else ""
    raise InputError(
        f"{head.name} has shape {head.shape}, classes by features, but {features.name} has {features.shape[1]} "
        f"features.{turned} Give what the head reads: the features after pooling and the last normalisation."
    )


def _refuse_orders(head1: Rows, head2: Rows, sides: tuple[Rows, Rows]) -> None:
    """Refuse names of classes or features that say that heads, or a head and its features, are in different orders."""

    def refuse(what: str, a: Rows, b: Rows, names: Any, others: Any) -> None:
        if names is not None and others is not None and list(names) != list(others) and set(names) == set(others):
            raise InputError(f"{a.name} and {b.name} have the same {what} in another order. Sort one like the other.")

    refuse("classes, by their index,", head1, head2, head1.index, head2.index)
    for head, side in zip((head1, head2), sides, strict=True):
        refuse("columns", head, side, head.columns, side.columns)


def _alerts(compared: TransformComparison, pairs: Pairs | None, n: int, width: int) -> list[Alert]:
    built = compared.heads
    alerts = []
    if n // 2 < FEW * width:
        text = (
            f"The fitted map uses {n // 2} rows, half of all, for {width} features. These are few, so it may explain "
            f"less than a linear map could. Aim for {2 * FEW * width:,} rows or more."
        )
        alerts.append(Alert("few_rows", text))
    if pairs is not None and pairs.pairs is not None and not pairs.holds:
        text = f"The best of {pairs.draws} choices of pairs is ill conditioned: {pairs.note}."
        alerts.append(Alert("ill_conditioned", text))
    for i, d in enumerate(built.diversity, start=1):
        if d.holds and d.condition > LARGEST_CONDITION:
            text = (
                f"Head {i} has condition number {d.condition:.3g}, so small errors in the head become large errors in "
                "the map."
            )
            alerts.append(Alert("ill_conditioned", text))
    return alerts


def _explains(r2: float) -> str:
    return f"does worse than guessing the mean (R2 {r2:.3g})" if r2 < 0 else f"explains {r2:.1%} of the variance"


def _decide(compared: TransformComparison, width: int) -> HeadVerdict:
    """The verdict from the agreement of the maps."""
    seen = compared.seen
    for which, diversity in zip(("first", "second"), compared.heads.diversity, strict=True):
        if not diversity.rank:
            return HeadVerdict("undetermined", f"All classes have the same vector in the {which} head.")
    if seen is None or not seen.dimensions:
        return HeadVerdict("undetermined", "The heads determine the map in no direction.")
    whole = compared.heads.matrix is not None
    why = next((d.note for d in compared.heads.diversity if not d.holds), compared.heads.note)
    scope = (
        ""
        if whole
        else f"The diversity condition fails ({why}). The heads determine the map in only {seen.dimensions} of {width} "
        f"directions, which hold {seen.variance:.1%} of the variance of the second model's features. In these "
        "directions, "
    )
    figures = (
        f"{'T' if whole else 't'}he map from the heads alone {_explains(seen.heads.value)} on held-out rows. A fitted "
        f"map {_explains(seen.fitted.value)}."
    )
    others = width - seen.dimensions
    rest = f" The heads say nothing about the other {others} directions." if others else ""
    # A map that was fitted to few rows may do worse than the one from the heads.
    best = max(seen.fitted.value, seen.heads.value)
    if best < LEAST_EXPLAINED:
        outcome, meaning = "disagree", "No linear map relates the features of the two models"
    elif seen.heads.low >= (1 - MARGIN) * best:
        # With at most as many equations as unknowns, the map only restates that the logits are equal.
        restated = "There the features agree up to that map, which only restates that the logits agree"
        outcome, meaning = "agree", "This is evidence of linear identifiability" if whole else restated
    elif seen.heads.low > 0:
        outcome, meaning = "in part", "The likelihoods of the two models agree in part"
    else:
        outcome, meaning = "disagree", "The models' likelihoods differ too much for the heads to predict the map"
    return HeadVerdict(outcome, f"{scope}{figures} {meaning}.{rest}")
