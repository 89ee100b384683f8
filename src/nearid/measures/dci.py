"""Disentanglement, completeness and informativeness (Eastwood & Williams 2018).

A predictor of each factor from all latents gives importances R (latents x factors) and a held-out score. A latent is
disentangled if it matters to one factor alone, a factor is complete if one latent alone matters to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed
from nearid.base.progress import Progress, silent
from nearid.engines.local import libraries, ordered_map
from nearid.folds import assign
from nearid.measures.factors import Factor, Factors, repeated_pairs
from nearid.measures.registry import INFINITY, MANY_LATENTS, Earlier, Measured, Part, measure, variant
from nearid.moments import Floats

if TYPE_CHECKING:
    from nearid.measures.trees import Binned

TREES = 100
# Trees of the fits that only tell how much the value varies when rows are left out; with many latents fewer, as their
# intervals are wide enough (docs/guide/score.md).
SPREAD_TREES, SPREAD_TREES_WIDE = 30, 20
# Trees as shallow as those that the measure was published with (depth 3).
LEAVES = 8


@measure(
    "DCI (D), boosting",
    # Trees cut between neighbouring values, in the order of the columns where two cuts are equally good.
    invariances=("scale",),
    parts={
        "disentanglement": Part(),
        "completeness": Part(title="completeness"),
        "informativeness": Part(-INFINITY, title="informativeness"),
    },
    each="informativeness, boosting",
    each_low=-INFINITY,
    heat_map="Importance to boosted trees",
    heat_map_of="importance",
    costly=True,
    steady=True,
)
def dci(
    x: Floats,
    factors: Factors,
    *,
    model: Literal["boost", "forest", "l1"] = "boost",
    folds: int = 3,
    random_state: Seed = 0,
    progress: Progress = silent,
    earlier: Earlier | None = None,
) -> Measured:
    """Disentanglement, completeness and informativeness.

    Parameters
    ----------
    factors : anything `open_factors` takes, of m factors
        Integer and categorical factors are predicted by classification, the others by regression (circular factors by
        their cosine and sine).
    model : {"boost", "forest", "l1"}
        Gradient boosting (100 trees of 8 leaves, on latents cut into at most 127 bins), random forests, or Lasso and L1
        logistic regression. Importances are those of the models, see `nearid.measures.dci.predict`.
        If there are more than 256 latents, boosted trees see 128 of them. These are chosen in every 20th round: those
        with the largest gains of a cut of all rows.
    folds : int
        Number of folds; importances are means over the fits. 1 gives in-sample scores.

    Returns
    -------
    Measured
        The value is the disentanglement; `per_factor` holds the informativeness. `matrix` holds importances; those of
        each factor sum to 1, or are 0 if its predictor used no latent. Parts: `disentanglement`, `completeness` and
        `informativeness`. Arrays:

        - `chance`, of shape (m,): the informativeness without latents: the share of the largest class, or an R2 of 0.
        - `per_latent`, of shape (d,): disentanglement of each latent. It is 0 for a latent that no predictor used. Such
          a latent has no weight in the mean.
        - `completeness_per_factor`, of shape (m,).

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).normal(size=(200, 2))
    >>> m = nearid.dci(u[:, ::-1], u, model="l1")
    >>> m.disentanglement > 0.95, m.completeness > 0.95, m.matrix.argmax(axis=0).tolist()
    (True, True, [1, 0])
    """
    fold = assign(len(x), folds, random_state, factors.block_codes)
    latents = _latents(x, model, earlier)
    trees = TREES
    if earlier is not None and not earlier.permuted:
        trees = SPREAD_TREES if x.shape[1] <= MANY_LATENTS else SPREAD_TREES_WIDE
    tasks = [(factor, k) for factor in factors.items for k in range(folds)]

    def run(task: tuple[Factor, int]) -> Fit:
        factor, k = task
        test = fold == k
        train = ~test if folds > 1 else test
        rows = np.flatnonzero(train), np.flatnonzero(test)
        return _fit(factor, latents, *rows, model=model, random_state=random_state, trees=trees)

    # There are many small fits, so one thread per fit is faster than many threads for one fit. But fits of scikit-learn
    # change the warning filters of the process, so two at a time would lose the filters of the caller.
    workers = None if model == "boost" else 1
    with libraries.limit():
        fits = list(ordered_map(run, tasks, workers=workers, tick=progress("predictors", len(tasks))))
    matrix = np.zeros((x.shape[1], len(factors.items)))
    informativeness, chance = np.zeros(len(factors.items)), np.zeros(len(factors.items))
    for at, factor in enumerate(factors.items):
        own = fits[at * folds : (at + 1) * folds]
        importance = np.sum([fit.importance for fit in own], axis=0)
        matrix[:, at] = importance / (importance.sum() or 1.0)
        informativeness[at] = 1 - sum(fit.error for fit in own) / sum(fit.worst for fit in own)
        chance[at] = np.bincount(factor.codes()).max() / len(x) if factor.discrete else 0.0
    per_latent, per_factor = _concentration(matrix), _concentration(matrix.T)
    weight = matrix.sum(axis=1)
    disentanglement = float(np.sum(per_latent * weight) / weight.sum()) if weight.any() else 0.0
    return Measured(
        disentanglement,
        matrix,
        factors.names,
        informativeness,
        {
            "disentanglement": disentanglement,
            "completeness": float(per_factor.mean()),
            "informativeness": float(informativeness.mean()),
        },
        {"chance": chance, "per_latent": per_latent, "completeness_per_factor": per_factor},
        repeated_pairs(x, factors, folds) + _degenerate(matrix, factors.names),
        latents,
    )


for _model, _title in (("forest", "forest"), ("l1", "L1")):
    variant(
        "dci",
        f"dci_{_model}",
        f"DCI (D), {_title}",
        options={"model": _model},
        each=f"informativeness, {_title}",
        heat_map="",
        by_default=False,
    )


class Fit(NamedTuple):
    """Importances of one fit, its error in test rows, and the error that scores 0.

    Errors are numbers of wrong classes (score 0 if all are wrong), or squared errors (score 0 for the mean).
    """

    importance: Floats
    error: float
    worst: float


def _latents(x: Floats, model: str, earlier: Earlier | None) -> Floats | Binned:
    """The latents in the form that a model needs."""
    if model != "boost":
        return x
    from nearid.measures.trees import bin_latents

    # The same bins for all folds, and where rows are left out.
    return bin_latents(x) if earlier is None else earlier.kept.take(earlier.rows)


def _fit(factor: Factor, latents: Floats | Binned, train: np.ndarray, test: np.ndarray, **options: Any) -> Fit:
    classes = factor.discrete
    importance: Floats = np.zeros(1)
    error = worst = 0.0
    for y in [factor.codes()] if classes else _centred(factor.columns).T:
        made = predict(latents, y, train, test, classes=classes, **options)
        importance = importance + made.importance
        if classes:
            error += float(np.sum(made.values != y[test]))
            worst += len(test)
        else:
            error += float(np.sum((made.values - y[test]) ** 2))
            worst += float(np.sum((y[test] - y[train].mean()) ** 2))
    return Fit(importance, error, worst)


def _centred(columns: Floats) -> Floats:
    """Return targets minus their means, rounded to float32, so that an offset does not break ties between cuts."""
    centred = columns - columns.mean(axis=0)
    return np.asarray((centred / np.linalg.norm(centred) * np.sqrt(len(columns))).astype(np.float32), dtype=np.float64)


def _concentration(importances: Floats) -> Floats:
    """Return 1 minus the entropy of the shares of each row, relative to the largest possible; 0 for a row of zeros."""
    total = importances.sum(axis=1, keepdims=True)
    share = np.divide(importances, total, out=np.zeros_like(importances), where=total > 0)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    largest = np.log(importances.shape[1]) or 1.0
    return np.asarray(np.where(total[:, 0] > 0, 1 + np.sum(share * logs, axis=1) / largest, 0.0))


def _degenerate(matrix: Floats, names: tuple[str, ...]) -> tuple[Alert, ...]:
    alerts: tuple[Alert, ...] = ()
    if matrix.shape[1] == 1:
        alerts += (
            Alert("one_factor", "Disentanglement is not meaningful with one factor: every latent is disentangled."),
        )
    if matrix.shape[0] == 1:
        alerts += (Alert("one_latent", "Completeness is not meaningful with one latent: every factor is complete."),)
    unused = ", ".join(repr(name) for name, column in zip(names, matrix.T, strict=True) if not column.any())
    if unused:
        alerts += (Alert("no_importance", f"The predictor of {unused} used no latent: its completeness counts as 0."),)
    return alerts


class Prediction(NamedTuple):
    """Predictions for unseen rows, and the importance of each latent for the predictor, shape (d,)."""

    values: np.ndarray
    importance: Floats


def predict(
    latents: Floats | Binned,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    *,
    model: str,
    classes: bool,
    random_state: int,
    trees: int = TREES,
) -> Prediction:
    """Fit a model to some rows, and return its predictions for others with importances.

    The importance of a latent is the gain of all splits on it ("boost"), the decrease of impurity ("forest"), or the
    size of the coefficients of standardised latents ("l1").

    Parameters
    ----------
    latents : ndarray of shape (n, d), or Binned for the model "boost"
    y : ndarray of shape (n,)
        Targets.
    train, test : ndarray of int
        Rows to fit on and to predict.
    model : {"boost", "forest", "l1"}
    classes : bool
        Whether y holds classes. Otherwise y holds numbers for a regression.
    trees : int
        Number of boosted trees.
    """
    width = latents.shape[1] if isinstance(latents, np.ndarray) else latents.width
    if (y[train] == y[train[0]]).all():
        return Prediction(np.full(len(test), y[train[0]]), np.zeros(width))
    if not isinstance(latents, np.ndarray):
        return _boost(latents, y[train], train, test, classes, trees)
    x, unseen = latents[train], latents[test]
    if model == "l1":
        spread = x.std(axis=0)
        centre, scale = x.mean(axis=0), np.where(spread > 0, spread, 1.0)
        x, unseen = (x - centre) / scale, (unseen - centre) / scale
    fitted, importance = _FITS[model](x, y[train], classes, random_state)
    return Prediction(np.asarray(fitted.predict(unseen)), importance)


def _boost(
    latents: Binned, y: np.ndarray, train: np.ndarray, test: np.ndarray, classes: bool, trees: int
) -> Prediction:
    from nearid.measures.trees import boost

    if not classes:
        scores, gains = boost(latents, train, y, test, classes=0, trees=trees, leaves=LEAVES)
        return Prediction(scores[0], gains)
    labels, codes = np.unique(y, return_inverse=True)
    scores, gains = boost(latents, train, codes, test, classes=len(labels), trees=trees, leaves=LEAVES)
    chosen = scores.argmax(axis=0) if len(labels) > 2 else (scores[0] > 0).astype(np.intp)
    return Prediction(labels[chosen], gains)


def _forest(x: Floats, y: np.ndarray, classes: bool, seed: int) -> tuple[Any, Floats]:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    make = RandomForestClassifier if classes else RandomForestRegressor
    model = make(n_estimators=TREES, random_state=seed).fit(x, y)
    return model, np.asarray(model.feature_importances_)


def _l1(x: Floats, y: np.ndarray, classes: bool, seed: int) -> tuple[Any, Floats]:
    import sklearn
    from sklearn.linear_model import LassoCV, LogisticRegression

    if not classes:
        model = LassoCV(cv=min(3, len(x)), random_state=seed).fit(x, y)
        return model, np.abs(model.coef_)
    # scikit-learn 1.8 replaced the name of the penalty by its mixing ratio.
    recent = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
    penalty = {"l1_ratio": 1.0} if recent else {"penalty": "l1"}
    model = LogisticRegression(solver="saga", tol=1e-3, max_iter=1000, random_state=seed, **penalty).fit(x, y)
    return model, np.abs(model.coef_).sum(axis=0)


_FITS = {"forest": _forest, "l1": _l1}
