"""Linear identifiability seen from the heads: the map that two heads imply, beside the one that features show."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearid import __version__
from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.metadata import choose_columns, metadata_alerts
from nearid.arrays.open import read_vector, split_key, vector_in
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.base.options import Seed, checked
from nearid.geometry.diversity import LARGEST_CONDITION, Pairs, choose_pairs
from nearid.geometry.transforms import TransformComparison, compare_transforms
from nearid.moments import Floats
from nearid.questions.compare.verdict import LEAST_EXPLAINED, MARGIN
from nearid.questions.heads.result import HeadComparison, HeadVerdict

# Rows for each feature below which a fitted map is much worse than the best one.
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
    biases: Sequence[Any] | bool = True,
    pairs: bool = False,
    draws: int = 100,
    names: Sequence[str] | None = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    random_state: Seed = 0,
) -> HeadComparison:
    """Compare the linear map that two models' heads imply with the one that their features show.

    Models p(y | x) = softmax(f(x) . g(y) + b(y)) of equal likelihoods have features that are linear in each other, by
    a map that follows from the heads g alone, if these are diverse enough: at least M + 1 classes, whose vectors span
    the M features. The map is built from the heads, fitted to half of the rows, and both are judged on the other half.

    Parameters
    ----------
    head1, head2 : array of shape (K, M), file, FILE:ENTRY, or module with a weight
        Vectors of the K classes, tokens or samples y, in the same order: the weights of a classifier, the output
        embeddings of a language model, g(y) of a contrastive model at some y.
    features1, features2 : array of shape (n, M), file, FILE:ENTRY or FOLDER:LAYER
        What the heads read, for the same inputs; rows are paired by id where both have ids, by position otherwise.
    biases : True, False, or a pair of vectors, files, True or None, default=True
        Biases of the logits. True takes those that belong to the weights, of a module or of a checkpoint (the entry
        x.bias beside x.weight); False and None leave them out.
    pairs : bool, default=False
        Build the map from M pairs of classes, as published, the best conditioned of `draws` random choices, rather
        than from all differences in the sense of least squares, which is more exact.
    draws : int, default=100
    names : two of str, optional
        What to call the models.
    features, exclude : sequence of str or str, optional
        Columns of features that are tables to use, all numeric ones by default, and columns to leave out: names or
        patterns, as "emb_*", one by one or in a text with commas.
    random_state : int, default=0
        Seed of the halves and of the pairs.

    Returns
    -------
    HeadComparison
    """
    given = (head1, head2)
    each = [biases, biases] if isinstance(biases, bool) else list(biases)
    if len(each) != 2:
        raise InputError(f"{len(each)} biases were given; one for each of the 2 heads is expected, or None.")
    heads = [_open_head(head, f"head {i}", each[i - 1] is True) for i, head in enumerate(given, start=1)]
    found = [
        h.bias if b is None or isinstance(b, bool) else read_vector(b, f"bias {i}")
        for i, (h, b) in enumerate(zip(heads, each, strict=True), start=1)
    ]
    sides = [_open(f, f"features {i}") for i, f in enumerate((features1, features2), start=1)]
    rows = pair_rows(*choose_columns(sides, features, exclude))
    for head, side in zip(heads, (rows.x, rows.y), strict=True):
        _check_width(head.rows, side)
    m = heads[0].rows.shape[1]
    check_memory("The features", 6 * 8 * rows.n * m, "Give fewer rows: some thousand suffice.")
    vectors = heads[0].vectors, heads[1].vectors
    chosen = choose_pairs(*vectors, draws=draws, random_state=random_state) if pairs else None
    biased = any(b is not None for b in found)
    compared = compare_transforms(
        vectors,
        rows.take(np.arange(rows.n)),
        biases=found if biased else None,
        pairs=None if chosen is None else chosen.pairs,
        random_state=random_state,
    )
    options = {"biases": biased, "pairs": pairs, "draws": draws if pairs else None, "seed": random_state}
    inputs = [r.fingerprint() for r in (heads[0].rows, heads[1].rows, rows.x, rows.y)]
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
            *_cautions(compared, chosen, rows.n, m),
        ],
        provenance={"nearid": __version__, "options": options, "inputs": inputs},
    )


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
    entry = rows.name.removeprefix(f"{path.name}:")
    stem = entry.removesuffix("weight")
    bias = vector_in(path, f"{stem}bias") if stem != entry else None
    return _Head(rows, None if bias is None else read_vector(bias, f"{path.name}:{stem}bias"))


def _check_width(head: Rows, features: Rows) -> None:
    if head.shape[1] == features.shape[1]:
        return
    turned = " It seems to be turned: give its transpose." if head.shape[0] == features.shape[1] else ""
    raise InputError(
        f"{head.name} has shape {head.shape}, classes by features, but {features.name} has {features.shape[1]} "
        f"features.{turned} Give what the head reads: the features after pooling and the last normalisation."
    )


def _cautions(compared: TransformComparison, pairs: Pairs | None, n: int, width: int) -> list[Alert]:
    built = compared.heads
    found = []
    if n // 2 < FEW * width:
        said = (
            f"{n // 2} rows, half of all, are few to fit a map of {width} features: it may explain less than it could."
        )
        found.append(Alert("few_rows", said))
    if pairs is not None and pairs.pairs is not None and not pairs.holds:
        found.append(Alert("ill_conditioned", f"The best of {pairs.draws} choices of pairs has {pairs.note}."))
    for i, d in enumerate(built.diversity, start=1):
        if d.holds and d.condition > LARGEST_CONDITION:
            said = f"Head {i} has condition number {d.condition:.3g}: small errors of it become large ones of the map."
            found.append(Alert("ill_conditioned", said))
    return found


def _decide(compared: TransformComparison, width: int) -> HeadVerdict:
    """What the agreement of the maps is evidence of."""
    seen = compared.seen
    if seen is None or not seen.dimensions:
        return HeadVerdict("undetermined", "All classes have one vector in the second head, which says nothing.")
    whole = compared.heads.matrix is not None
    why = next((d.note for d in compared.heads.diversity if not d.holds), compared.heads.note)
    scope = (
        ""
        if whole
        else f"The diversity condition fails ({why}): the heads determine the map in {seen.dimensions} of {width} "
        f"dimensions only, which hold {seen.variance:.1%} of the variance of the second model's features. In these, "
    )
    figures = (
        f"{'T' if whole else 't'}he map from the heads alone explains {seen.heads.value:.1%} of the held-out variance, "
        f"a fitted one {seen.fitted.value:.1%}"
    )
    others = width - seen.dimensions
    rest = f" Of the other {others} dimensions the heads say nothing." if others else ""
    # A map that was fitted to few rows may do worse than the one from the heads.
    best = max(seen.fitted.value, seen.heads.value)
    if best < LEAST_EXPLAINED:
        outcome, said = "disagree", "the features are not linear in each other"
    elif seen.heads.low >= (1 - MARGIN) * best:
        # As many equations as unknowns or fewer: there the map restates that the logits are equal.
        restated = "the features agree there up to that map, which says no more than that the logits agree"
        outcome, said = "agree", "evidence of linear identifiability" if whole else restated
    elif seen.heads.low > 0:
        outcome, said = "in part", "the likelihoods of the models agree in part"
    else:
        outcome, said = "disagree", "the models' likelihoods differ too much for their heads to carry the map"
    return HeadVerdict(outcome, f"{scope}{figures}: {said}.{rest}")
