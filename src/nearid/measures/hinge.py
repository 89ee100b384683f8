"""Linear support vector machines of one latent each: two coefficients, found by Newton's method."""

from __future__ import annotations

import numpy as np
from numba import njit

from nearid.measures.information import Codes
from nearid.moments import Floats

C = 0.01
STEPS = 50


def accuracy(x: Floats, codes: Codes, fold: np.ndarray, folds: int) -> Floats:
    """Share of held-out rows whose class a linear support vector machine of one latent predicts; of each latent.

    A machine minimises (w^2 + b^2) / 2 + sum of C_i max(0, 1 - s_i (w x_i + b))^2 with C = 0.01 (`LinearSVC` of
    scikit-learn with balanced classes). For more than two classes there is one machine for each against all others, and
    only the rows of the class are weighted, as in LIBLINEAR.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    codes : ndarray of int, shape (n,)
        Classes from 0 on.
    fold : ndarray of int, shape (n,)
    folds : int
        With 1 the rows are judged that were fitted.

    Returns
    -------
    ndarray of shape (d,)
    """
    right = np.zeros(x.shape[1], dtype=np.int64)
    for k in range(folds):
        test = fold == k
        train = ~test if folds > 1 else test
        present, own = np.unique(codes[train], return_inverse=True)
        if len(present) == 1:
            right += np.sum(codes[test] == present[0])
            continue
        weights = len(own) / (len(present) * np.bincount(own))
        seen, unseen = (np.ascontiguousarray(x[rows].T) for rows in (train, test))
        right += _right(seen, own, unseen, codes[test], present, weights)
    return right / len(x)


@njit(cache=True, nogil=True, error_model="numpy")
def _right(seen, own, unseen, codes, present, weights):  # type: ignore[no-untyped-def]
    """Number of rows whose class is predicted, for each latent."""
    d, several, right = len(seen), len(present), np.zeros(len(seen), np.int64)
    lines = np.empty((several, 2))
    machines = several if several > 2 else 1
    for j in range(d):
        for c in range(machines):
            # Of two classes the machine tells the second from the first.
            positive = c if several > 2 else 1
            lines[c] = _machine(seen[j], own, positive, C * weights[positive], C * (1.0 if several > 2 else weights[0]))
        for i in range(len(codes)):
            x, chosen = unseen[j, i], 0
            if several == 2:
                chosen = 1 if lines[0, 0] * x + lines[0, 1] > 0 else 0
            else:
                top = -np.inf
                for c in range(several):
                    height = lines[c, 0] * x + lines[c, 1]
                    if height > top:
                        top, chosen = height, c
            right[j] += present[chosen] == codes[i]
    return right


@njit(cache=True, nogil=True, error_model="numpy")
def _machine(x, own, positive, weight, other_weight):  # type: ignore[no-untyped-def]
    """Slope and intercept of one machine."""
    w = b = 0.0
    step_w = step_b = 0.0
    before = np.inf
    for _ in range(STEPS):
        loss, g_w, g_b = (w * w + b * b) / 2, w, b
        h_ww, h_wb, h_bb = 1.0, 0.0, 1.0
        for i in range(len(x)):
            sign, c = (1.0, weight) if own[i] == positive else (-1.0, other_weight)
            short = 1 - sign * (w * x[i] + b)
            if short > 0:
                loss += c * short * short
                g_w -= 2 * c * short * sign * x[i]
                g_b -= 2 * c * short * sign
                h_ww += 2 * c * x[i] * x[i]
                h_wb += 2 * c * x[i]
                h_bb += 2 * c
        if loss > before + 1e-12 * abs(before):
            # Too far: half of the last step.
            step_w, step_b = step_w / 2, step_b / 2
            w, b = w - step_w, b - step_b
            continue
        before = loss
        determinant = h_ww * h_bb - h_wb * h_wb
        step_w, step_b = (h_wb * g_b - h_bb * g_w) / determinant, (h_wb * g_w - h_ww * g_b) / determinant
        w, b = w + step_w, b + step_b
        if abs(step_w) + abs(step_b) < 1e-12 * (1 + abs(w) + abs(b)):
            break
    return w, b
