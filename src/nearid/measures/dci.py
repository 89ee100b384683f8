"""Disentanglement, completeness and informativeness (Eastwood & Williams 2018).

A predictor of each factor from all latents gives importances R (latents x factors) and a held-out score. A latent is
disentangled if it matters to one factor alone, a factor is complete if one latent alone matters to it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed
from nearid.base.progress import Progress, silent
from nearid.engines.local import libraries, ordered_map
from nearid.folds import assign
from nearid.measures.factors import Factor, Factors, repeated_pairs
from nearid.measures.registry import INFINITY, Measured, Part, measure, variant
from nearid.moments import Floats

TREES = 100
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
)
def dci(
    x: Floats,
    factors: Factors,
    *,
    model: Literal["boost", "forest", "l1"] = "boost",
    folds: int = 3,
    random_state: Seed = 0,
    progress: Progress = silent,
) -> Measured:
    """Disentanglement, completeness and informativeness.

    Parameters
    ----------
    factors : anything `open_factors` takes, of m factors
        Integer and categorical factors are predicted by classification, the others by regression (circular factors by
        their cosine and sine).
    model : {"boost", "forest", "l1"}
        Gradient boosting (LightGBM if it is installed, else scikit-learn's histogram trees), random forests, or Lasso
        and L1 logistic regression. Importances are those of the models, see `nearid.measures.dci.predict`.
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
    tasks = [(factor, k) for factor in factors.items for k in range(folds)]

    def run(task: tuple[Factor, int]) -> Fit:
        factor, k = task
        test = fold == k
        return _fit(factor, x, test, ~test if folds > 1 else test, model, random_state)

    # There are many small fits, so one thread per fit is faster than many threads for one fit. But fits of scikit-learn
    # change the warning filters of the process, so two at a time would lose the filters of the caller.
    workers = None if model == "boost" and find_spec("lightgbm") else 1
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


def _fit(factor: Factor, x: Floats, test: np.ndarray, train: np.ndarray, model: str, seed: int) -> Fit:
    classes = factor.discrete
    importance, error, worst = np.zeros(x.shape[1]), 0.0, 0.0
    for y in [factor.codes()] if classes else _centred(factor.columns).T:
        made = predict(model, x[train], y[train], x[test], classes=classes, random_state=seed)
        importance += made.importance
        if classes:
            error += float(np.sum(made.values != y[test]))
            worst += float(np.sum(test))
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


def predict(model: str, x: Floats, y: np.ndarray, unseen: Floats, *, classes: bool, random_state: int) -> Prediction:
    """Fit a model to rows x and targets y, and return its predictions for unseen rows with importances.

    The importance of a latent is the gain of all splits on it ("boost"), the decrease of impurity ("forest"), or the
    size of the coefficients of standardised latents ("l1").

    Parameters
    ----------
    model : {"boost", "forest", "l1"}
    classes : bool
        Whether y holds classes. Otherwise y holds numbers for a regression.
    """
    if (y == y[0]).all():
        return Prediction(np.full(len(unseen), y[0]), np.zeros(x.shape[1]))
    if model == "l1":
        spread = x.std(axis=0)
        centre, scale = x.mean(axis=0), np.where(spread > 0, spread, 1.0)
        x, unseen = (x - centre) / scale, (unseen - centre) / scale
    fitted, importance = _FITS[model](x, y, classes, random_state)
    return Prediction(np.asarray(fitted.predict(unseen)), importance)


def _boost(x: Floats, y: np.ndarray, classes: bool, seed: int) -> tuple[Any, Floats]:
    return (_lightgbm if find_spec("lightgbm") else _histogram)(x, y, classes, seed)


class _Boosted(NamedTuple):
    """Trees of LightGBM; its own estimators take as long to set up as small fits do to run."""

    booster: Any
    labels: np.ndarray | None

    def predict(self, x: Floats) -> np.ndarray:
        made = np.asarray(self.booster.predict(x, num_threads=1))
        if self.labels is None:
            return made
        return np.asarray(self.labels[made.argmax(axis=1) if made.ndim > 1 else (made > 0.5).astype(np.intp)])


def _lightgbm(x: Floats, y: np.ndarray, classes: bool, seed: int) -> tuple[Any, Floats]:
    import lightgbm

    labels, codes = np.unique(y, return_inverse=True) if classes else (None, y)
    several = {"objective": "multiclass", "num_class": len(np.unique(y))}
    objective = (
        {"objective": "regression"} if labels is None else {"objective": "binary"} if len(labels) == 2 else several
    )
    options = {
        **objective,
        "num_leaves": LEAVES,
        "max_bin": 127,
        "seed": seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    booster = lightgbm.train(options, lightgbm.Dataset(x, codes), TREES, keep_training_booster=True)
    return _Boosted(booster, labels), np.asarray(booster.feature_importance("gain"), dtype=np.float64)


def _histogram(x: Floats, y: np.ndarray, classes: bool, seed: int) -> tuple[Any, Floats]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = make(max_iter=TREES, max_leaf_nodes=LEAVES, max_bins=127, early_stopping=False, random_state=seed).fit(x, y)
    # The gains are not public, but any other importance of these trees needs a hundred predictions.
    importance = np.zeros(x.shape[1])
    for trees in model._predictors:
        for tree in trees:
            splits = tree.nodes[tree.nodes["is_leaf"] == 0]
            np.add.at(importance, splits["feature_idx"], splits["gain"])
    return model, importance


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


_FITS = {"boost": _boost, "forest": _forest, "l1": _l1}
