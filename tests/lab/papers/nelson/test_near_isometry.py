"""Orders and fits over cells: of each seed, of cells that have both scores, and never of too few."""

from types import SimpleNamespace

import numpy as np
import pytest

from nearid.lab.framework.claims import Status
from nearid.lab.papers.nelson.near_isometry import error_plot, fitted, ordered, pairs, rank_correlations


def cells(*scores):
    """Cells of (seed, L, error)."""
    return [
        SimpleNamespace(cell=SimpleNamespace(seed=seed), data={"scores": {"l": l, "e": e}}) for seed, l, e in scores
    ]


RISING = cells(*((seed, 1 + 0.1 * k, 0.02 * k + 0.001 * seed) for seed in range(3) for k in range(5)))


RUN = SimpleNamespace(
    every_row=[SimpleNamespace(key="leak-1"), SimpleNamespace(key="other")],
    ran={"leak-1"},
    failed_seeds=lambda row: [],
)


def test_an_order_is_that_of_each_seed():
    # Seeds differ more than rows: together there is little order, in each seed all of it.
    shifted = cells(*((seed, 1 + 0.1 * k - 0.05 * seed, 0.02 * k + seed) for seed in range(3) for k in range(5)))
    assert rank_correlations(shifted, "l", "e") == pytest.approx({0: 1, 1: 1, 2: 1})
    decided = ordered(lambda _: shifted, "leak", "l", "e", "L and error")(RUN)
    assert decided.status == Status.REPRODUCED and "of 3 seeds: at least 0.8" in decided.sentence
    together = float(decided.sentence.split("together it is ")[1].rstrip("."))
    assert together < 0.8


def test_an_order_needs_all_its_rows():
    told = ordered(lambda _: RISING, "leak", "l", "e", "L and error")(
        SimpleNamespace(**{**vars(RUN), "ran": {"other"}})
    )
    assert told.status == Status.NOT_TESTABLE and told.sentence == "Needs the row leak-1, which was not run."


def test_orders_the_other_way():
    assert ordered(lambda _: RISING, "leak", "l", "e", "L and error", rising=False)(RUN).status == Status.NOT_REPRODUCED
    falling = cells(*((seed, 1 + 0.1 * k, -k) for seed in range(3) for k in range(5)))
    assert ordered(lambda _: falling, "leak", "l", "e", "L and error", rising=False)(RUN).status == Status.REPRODUCED
    assert ordered(lambda _: falling, "leak", "l", "e", "L and error")(RUN).status == Status.NOT_REPRODUCED


def test_what_has_no_order_is_left_out():
    few = cells((0, 1.0, 0.1), (0, 1.2, 0.2), (1, 1.0, 0.1), (1, 1.0, 0.2), (1, 1.0, 0.3), (2, None, 0.1))
    assert rank_correlations(few, "l", "e") == {} and pairs(few, "l", "e")[0] == [1.0, 1.2, 1.0, 1.0, 1.0]
    assert ordered(lambda _: few[:2], "leak", "l", "e", "L and error")(RUN).status == Status.NOT_TESTABLE
    assert ordered(lambda _: [], "leak", "l", "e", "L and error")(RUN).status == Status.NOT_TESTABLE


def test_the_curve_through_the_points():
    l = np.linspace(1, 1.5, 8)
    exact = cells(*((k, float(a), float(0.3 * np.sqrt(a**2 - 1))) for k, a in enumerate(l)), (9, None, 1.0))
    rate = fitted(exact, "l", "e")
    assert rate.constant.value == pytest.approx(0.3) and rate.r2 == pytest.approx(1) and rate.constant.n == 8
    assert fitted(exact[:2], "l", "e") is None and fitted(cells(*[(k, 1.0, 0.1) for k in range(5)]), "l", "e") is None
    plot = error_plot("t", "c", {"some": exact[:4], "others": exact[4:]}, exact, ("l", "L"), ("e", "error"))
    [(name, (x, y))] = plot.curves.items()
    assert name.startswith("fitted: 0.3 [0.3, 0.3] √(L²−1)") and (x[0], y[0]) == (1, 0) and x[-1] > 1.5
    np.testing.assert_allclose(y, 0.3 * np.sqrt(np.square(x) - 1), atol=1e-3)
    assert len(plot.points["some"][0]) == 4 == len(plot.points["others"][1])
    assert (plot.x, plot.y) == ("L", "error")
    assert error_plot("t", "c", {"some": exact[:1]}, exact[:1], ("l", "L"), ("e", "error")).curves == {}


def test_a_failed_cell_leaves_the_order_open():
    failed = SimpleNamespace(
        every_row=RUN.every_row, ran=RUN.ran, failed_seeds=lambda row: [3] if row == "leak-1" else []
    )
    assert ordered(lambda _: RISING, "leak", "l", "e", "L and error")(failed).status == Status.NOT_TESTABLE
    assert ordered(lambda _: RISING, "other", "l", "e", "L and error")(failed).status == Status.REPRODUCED
