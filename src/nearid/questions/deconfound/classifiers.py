"""Classifiers of a perturbation, the components that they use, and their scores in other batches."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nearid.base.errors import InputError, brief
from nearid.measures.auroc import auroc
from nearid.moments import Floats
from nearid.questions.deconfound.conditions import HELD_BYTES, PIECE, ComponentRows, Components
from nearid.questions.deconfound.plan import Plan

# Table 6 of the paper.
PUBLISHED: dict[str, Any] = {
    "is_unbalance": True,
    "learning_rate": 0.05,
    "num_leaves": 31,
    "feature_fraction": 0.6,
    "reg_alpha": 5.0,
    "reg_lambda": 1.0,
    "min_gain_to_split": 0.8,
    "min_data_in_leaf": 30,
}
# Not published: the default of the library.
TREES = 100
# Fixed here; users cannot set these.
SETTLED = (
    "objective",
    "seed",
    "num_threads",
    "num_iterations",
    "deterministic",
    "force_col_wise",
    "bin_construct_sample_cnt",
    "verbosity",
)
# Rows that bins are made from: the library's default of 200,000 would be held in float64, which may be more than the
# embedding itself.
BIN_ROWS = 5000
ITERATIONS = 300


class Learned(NamedTuple):
    """A classifier: scores of rows of its components, and the share of each of them in it (all 0 for a constant)."""

    predict: Callable[[Floats], Floats]
    shares: Floats


def check_boosting(options: Mapping[str, Any]) -> None:
    """Refuse hyperparameters that LightGBM does not know, silently ignores, or cannot use."""
    import lightgbm
    from lightgbm.basic import _ConfigAliases

    same = {name: {main, *names} for main, names in _ConfigAliases._get_all_param_aliases().items() for name in names}
    trees = options.get("trees", TREES)
    if isinstance(trees, bool) or not isinstance(trees, int | np.integer) or trees < 1:
        raise InputError(f"trees of boosting must be a whole number from 1 on, not {trees!r}.")
    others = {name: value for name, value in options.items() if name != "trees"}
    for name in others:
        if name not in same:
            near = get_close_matches(str(name), ["trees", *same], n=2)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise InputError(f"LightGBM has no hyperparameter named {name!r}.{meant} See boosting (--boosting).")
        if same[name] & set(SETTLED):
            raise InputError(f"{name} of LightGBM cannot be set with boosting. For the number of trees use 'trees'.")
        published = next((known for known in PUBLISHED if known in same[name]), name)
        if published != name:
            raise InputError(
                f"{name} of boosting is another name of {published}, the name in the paper. Use {published}."
            )
    settings = {**PUBLISHED, **others, "objective": "binary", "verbosity": -1}
    try:
        data = lightgbm.Dataset(np.arange(8.0)[:, None], np.array([0, 1] * 4), params=settings)
        lightgbm.train(settings, data, 1)
    except (lightgbm.basic.LightGBMError, TypeError, ValueError) as error:
        # Remove the position in the source of LightGBM from the message.
        why = brief(error).partition(" at /")[0]
        raise InputError(f"LightGBM refuses boosting={others}: {why}.") from None


def learn(
    name: str, components: Components, places: np.ndarray, positive: np.ndarray, plan: Plan, threads: int
) -> Learned:
    """A classifier of positive rows against the others, learned from the rows at `places`; both of shape (n,)."""
    if name == "boost":
        return _boost(components, places, positive, plan, threads)
    return _logistic(components, places, positive)


def _boost(components: Components, places: np.ndarray, positive: np.ndarray, plan: Plan, threads: int) -> Learned:
    import lightgbm

    class Blocks(lightgbm.Sequence):
        """Rows that are mapped while they are binned, so that the mapped matrix never exists."""

        batch_size = PIECE

        def __getitem__(self, at: Any) -> Floats:
            if isinstance(at, slice):
                return components.take(places[at])
            return np.asarray(components.take(places[at : at + 1])[0], dtype=np.float64)

        def __len__(self) -> int:
            return len(places)

    chosen = {**PUBLISHED, **plan.boosting}
    trees = int(chosen.pop("trees", TREES))
    settings = {
        **chosen,
        "objective": "binary",
        "seed": plan.random_state,
        "num_threads": threads,
        "deterministic": True,
        # By columns: by rows LightGBM keeps a second copy of the bins.
        "force_col_wise": True,
        "bin_construct_sample_cnt": BIN_ROWS,
        "verbosity": -1,
    }
    rows = components.take(places) if _small(components, places) else Blocks()
    # LightGBM sets its log level per thread, and reads blocks before. Standard output must stay clean.
    lightgbm.Dataset(np.zeros((2, 1)), np.array([0, 1]), params=settings).construct()
    data = lightgbm.Dataset(rows, positive.astype(np.float32), params=settings)
    booster = lightgbm.train(settings, data, trees)
    splits = np.asarray(booster.feature_importance("split"), dtype=np.float64)

    def predict(x: Floats) -> Floats:
        return np.asarray(booster.predict(x, num_threads=threads, raw_score=True))

    return Learned(predict, splits / (splits.sum() or 1.0))


def _logistic(components: Components, places: np.ndarray, positive: np.ndarray) -> Learned:
    """L2-penalised (C = 1), classes balanced.

    Components have unit variance over all rows. They are not scaled again on the training rows, which would undo the
    whitening: conditions that are rotations of each other would then differ, although the penalty is
    rotation-invariant.
    """
    if not _small(components, places):
        return _linear(*fit_streamed(*components.linear(places), positive, ITERATIONS))
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(class_weight="balanced", max_iter=ITERATIONS).fit(components.take(places), positive)
    return _linear(model.coef_[0].astype(np.float64), float(model.intercept_[0]))


def _linear(weights: Floats, offset: float) -> Learned:
    """A linear classifier; the shares follow from the weights, because components have unit variance."""
    sizes = np.abs(weights)
    return Learned(lambda rows: rows @ weights + offset, sizes / (sizes.sum() or 1.0))


def _small(components: Components, places: np.ndarray) -> bool:
    """Whether the mapped rows are small enough to keep in memory."""
    return 4 * len(places) * components.width <= HELD_BYTES


def auroc_within(positive: np.ndarray, scores: Floats, batches: np.ndarray) -> float:
    """Share of pairs in the right order among pairs within a batch; differences between batches alone give 0.5.

    NaN if no batch has rows of both classes.
    """
    right, pairs = pairs_within(positive, scores, batches, int(batches.max()) + 1)
    return float(_share(right.sum(keepdims=True), pairs.sum(keepdims=True))[0])


def pairs_within(positive: np.ndarray, scores: Floats, batches: np.ndarray, count: int) -> tuple[Floats, Floats]:
    """Of each of `count` batches, the pairs of a positive and a negative row in the right order, and all pairs."""
    order = np.argsort(batches, kind="stable")
    right, pairs = np.zeros(count), np.zeros(count)
    for mine in np.split(order, np.flatnonzero(np.diff(batches[order])) + 1):
        hits = int(positive[mine].sum())
        if 0 < hits < len(mine):
            batch = batches[mine[0]]
            pairs[batch] = hits * (len(mine) - hits)
            right[batch] = pairs[batch] * auroc(positive[mine], scores[mine])
    return right, pairs


def aurocs_without(positive: np.ndarray, scores: Floats, batches: np.ndarray, count: int) -> tuple[Floats, Floats]:
    """AUROC, and AUROC within batches, without each of `count` batches; NaN if no pair remains.

    The remaining pairs are all pairs except those with a row in the batch.
    """
    from scipy.stats import rankdata

    ranks, own = rankdata(scores), np.empty(len(scores))
    own[positive], own[~positive] = rankdata(scores[positive]), rankdata(scores[~positive])
    # Negative rows below a positive one, positive rows above a negative one.
    wins = np.where(positive, ranks - own, positive.sum() - (ranks - own))
    right, pairs = pairs_within(positive, scores, batches, count)
    hits, others = (side.sum() - np.bincount(batches[side], minlength=count) for side in (positive, ~positive))
    every = _share(wins[positive].sum() - np.bincount(batches, wins, count) + right, hits * others)
    return every, _share(right.sum() - right, pairs.sum() - pairs)


def _share(right: Floats, pairs: Floats) -> Floats:
    return np.asarray(np.divide(right, pairs, out=np.full(len(right), np.nan), where=pairs > 0))


def fit_streamed(
    components: ComponentRows, places: np.ndarray, positive: np.ndarray, iterations: int
) -> tuple[Floats, float]:
    """Weights of components and the intercept, for rows that are too many to keep a mapped copy.

    Components are linear in the rows, and so is the score: each evaluation of the loss takes two products with the
    rows as they are, block by block. Rows outside of the training set have weight 0. The loss is that of scikit-learn's
    `LogisticRegression` with C = 1 and balanced classes.

    Parameters
    ----------
    places : ndarray of int, shape (n,)
        Rows to learn from.
    positive : ndarray of bool, shape (n,)
    iterations : int
        At most.
    """
    from scipy.optimize import minimize

    condition, n = components.condition, components.rows.shape[0]
    share = positive.mean()
    weights, truth = np.zeros(n), np.zeros(n)
    # Both classes weigh the same, and all rows together 1.
    weights[places] = np.where(positive, 0.5 / share, 0.5 / (1 - share)) / len(places)
    truth[places] = positive

    def loss(parameters: Floats) -> tuple[float, Floats]:
        w, offset = parameters[:-1], parameters[-1]
        direction = condition.lift(w)
        value, pull, total = 0.0, np.zeros(len(direction)), 0.0
        for a in range(0, n, PIECE):
            mine = weights[a : a + PIECE]
            if not mine.any():
                continue
            x = components.rows.read(a, min(a + PIECE, n))
            x = np.subtract(x, condition.mean, dtype=x.dtype if x.dtype.kind == "f" else np.float64)
            margin = (x @ direction.astype(x.dtype)).astype(np.float64) + offset
            y = truth[a : a + PIECE]
            value += float(mine @ (np.logaddexp(0, margin) - y * margin))
            residual = mine * (np.exp(-np.logaddexp(0, -margin)) - y)
            pull += residual.astype(x.dtype) @ x
            total += float(residual.sum())
        slope = condition.gather(pull) + w / len(places)
        penalty = float(w @ w) / (2 * len(places))
        return value + penalty, np.append(slope, total)

    options = {"maxiter": iterations, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    best = minimize(loss, np.zeros(components.width + 1), jac=True, method="L-BFGS-B", options=options).x
    return best[:-1], float(best[-1])


def hoyer(weights: ArrayLike) -> float:
    """Hoyer's sparsity of weights of at least 0: (sqrt(d) - sum / norm) / (sqrt(d) - 1).

    It is 1 if only one weight is not 0, and 0 if all are equal. NaN if all are 0, or if there is only one weight.
    """
    w = np.abs(np.asarray(weights, dtype=np.float64))
    norm = np.linalg.norm(w)
    if len(w) < 2 or norm == 0:
        return float("nan")
    root = np.sqrt(len(w))
    return float((root - w.sum() / norm) / (root - 1))
