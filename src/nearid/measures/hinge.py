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
    # Of each machine: on which side of the line a row belongs, and its weight.
    signs, costs = np.empty((machines, len(own))), np.empty((machines, len(own)))
    for c in range(machines):
        # Of two classes the machine tells the second from the first.
        positive, other = c if several > 2 else 1, C * (1.0 if several > 2 else weights[0])
        for i in range(len(own)):
            signs[c, i] = 1.0 if own[i] == positive else -1.0
            costs[c, i] = C * weights[positive] if own[i] == positive else other
    for j in range(d):
        for c in range(machines):
            lines[c] = _machine(seen[j], signs[c], costs[c])
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
def _machine(x, signs, costs):  # type: ignore[no-untyped-def]
    """Slope and intercept of one machine, of rows with the signs of their side and their weights."""
    w = b = 0.0
    step_w = step_b = 0.0
    before = np.inf
    for _ in range(STEPS):
        losses, g_w, g_b, h_ww, h_wb, h_bb = _sums(x, signs, costs, w, b)
        loss, g_w, g_b = (w * w + b * b) / 2 + losses, w - g_w, b - g_b
        h_ww, h_bb = 1 + h_ww, 1 + h_bb
        if loss > before + 1e-12 * abs(before):
            # Too far: half of the last step.
            step_w, step_b = step_w / 2, step_b / 2
            w, b = w - step_w, b - step_b
            continue
        before = loss
        # A slope of rounding alone: a step would decide a tie by chance, as of a latent that is constant.
        if abs(g_w) + abs(g_b) < 1e-13 * h_bb:
            break
        determinant = h_ww * h_bb - h_wb * h_wb
        step_w, step_b = (h_wb * g_b - h_bb * g_w) / determinant, (h_wb * g_w - h_ww * g_b) / determinant
        w, b = w + step_w, b + step_b
        if abs(step_w) + abs(step_b) < 1e-12 * (1 + abs(w) + abs(b)):
            break
    return w, b


# Without branches and with sums in any order, so that the compiler makes vector instructions of it.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _sums(x, signs, costs, w, b):  # type: ignore[no-untyped-def]
    """Sums over the rows that fall short: losses, and what they add to both derivatives."""
    loss = g_w = g_b = h_ww = h_wb = h_bb = 0.0
    for i in range(len(x)):
        short = 1 - signs[i] * (w * x[i] + b)
        curve = 2 * costs[i] if short > 0 else 0.0
        pull = curve * short * signs[i]
        loss += curve * short * short / 2
        g_w += pull * x[i]
        g_b += pull
        h_ww += curve * x[i] * x[i]
        h_wb += curve * x[i]
        h_bb += curve
    return loss, g_w, g_b, h_ww, h_wb, h_bb
