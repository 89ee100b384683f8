"""L2-penalised logistic regression on components of rows too many to be held a second time, mapped.

Components are linear in the rows, and so is the score: each evaluation of the loss takes two products with the rows as
they are, block by block and in their order. Rows that are not learned from have the weight 0.
"""

from __future__ import annotations

import numpy as np

from nearid.moments import Floats
from nearid.questions.deconfound.conditions import PIECE, View


def fit_streamed(
    view: View, places: np.ndarray, positive: np.ndarray, which: np.ndarray | None, iterations: int
) -> tuple[Floats, float]:
    """Weights of components, and the intercept.

    The loss is that of scikit-learn's `LogisticRegression` with C = 1 and balanced classes.

    Parameters
    ----------
    view : View
    places : ndarray of int, shape (n,)
        Rows to learn from.
    positive : ndarray of bool, shape (n,)
    which : ndarray of int, optional
        Components to use; all by default.
    iterations : int
        At most.
    """
    from scipy.optimize import minimize

    condition, n = view.condition, view.rows.shape[0]
    share = positive.mean()
    weights, truth = np.zeros(n), np.zeros(n)
    # Both classes weigh the same, and all rows together 1.
    weights[places] = np.where(positive, 0.5 / share, 0.5 / (1 - share)) / len(places)
    truth[places] = positive

    def loss(parameters: Floats) -> tuple[float, Floats]:
        w, offset = parameters[:-1], parameters[-1]
        direction = condition.lift(w, which)
        value, pull, total = 0.0, np.zeros(len(direction)), 0.0
        for a in range(0, n, PIECE):
            mine = weights[a : a + PIECE]
            if not mine.any():
                continue
            x = view.rows.read(a, min(a + PIECE, n))
            x = np.subtract(x, condition.mean, dtype=x.dtype if x.dtype.kind == "f" else np.float64)
            margin = (x @ direction.astype(x.dtype)).astype(np.float64) + offset
            y = truth[a : a + PIECE]
            value += float(mine @ (np.logaddexp(0, margin) - y * margin))
            residual = mine * (np.exp(-np.logaddexp(0, -margin)) - y)
            pull += residual.astype(x.dtype) @ x
            total += float(residual.sum())
        slope = condition.gather(pull, which) + w / len(places)
        penalty = float(w @ w) / (2 * len(places))
        return value + penalty, np.append(slope, total)

    options = {"maxiter": iterations, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    width = view.width if which is None else len(which)
    found = minimize(loss, np.zeros(width + 1), jac=True, method="L-BFGS-B", options=options).x
    return found[:-1], float(found[-1])
