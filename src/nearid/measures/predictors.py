"""Predictors of one factor from all latents, and how much each of them used each latent."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from nearid.base.errors import InputError
from nearid.moments import Floats

MODELS = ("boost", "forest", "l1")
TREES = 100
# Trees as shallow as those that the measure was published with (depth 3).
LEAVES = 8


class Prediction(NamedTuple):
    """What a predictor makes of rows it has not seen, and the importance of each latent to it, shape (d,)."""

    values: np.ndarray
    importance: Floats


def predict(model: str, x: Floats, y: np.ndarray, unseen: Floats, *, classes: bool, random_state: int) -> Prediction:
    """Fit a model on rows x, targets y, and predict unseen rows.

    Importances are the model's own: the gain of all splits on a latent ("boost"), the decrease of impurity
    ("forest"), or the size of the coefficients of standardised latents ("l1").

    Parameters
    ----------
    model : {"boost", "forest", "l1"}
    classes : bool
        Whether y holds classes; otherwise it is a number to regress on.
    """
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, not {model!r}.")
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
    objective: dict[str, Any] = {"objective": "regression"}
    if labels is not None:
        objective = (
            {"objective": "binary"} if len(labels) == 2 else {"objective": "multiclass", "num_class": len(labels)}
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
    # The gains are not public, but no other importance of theirs comes without a hundred predictions.
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
