"""Routines that are loaded alone are those of scipy, to the last bit, whatever is imported first."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import linear_sum_assignment

from nearid.base.compiled import compiled, lapack


def test_they_are_scipys_own(rng):
    a, b = rng.normal(size=(30, 7)), rng.normal(size=(7, 3))
    square = a.T @ a
    lower, info = lapack().dpotrf(square, lower=1)
    assert info == 0
    np.testing.assert_array_equal(lower, cholesky(square, lower=True))
    np.testing.assert_array_equal(lapack().dpotrs(lower, b, lower=1)[0], cho_solve((lower, True), b))
    np.testing.assert_array_equal(lapack().dtrtrs(lower, b, lower=1)[0], solve_triangular(lower, b, lower=True))
    gains = rng.normal(size=(6, 9))
    np.testing.assert_array_equal(
        compiled("optimize", "_lsap").linear_sum_assignment(gains, maximize=True),
        linear_sum_assignment(gains, maximize=True),
    )


@pytest.mark.parametrize("scipy_first", [False, True])
def test_the_packages_are_not_imported_and_work_beside(scipy_first):
    script = f"""
import sys
if {scipy_first}:
    import scipy.linalg, scipy.optimize
import numpy as np, nearid
x = np.random.default_rng(0).normal(size=(50, 3))
nearid.compare(x, x @ np.diag([1.0, 2, 3]), permutations=1)
print([m for m in ("scipy.linalg", "scipy.optimize", "sklearn", "numpy.f2py") if m in sys.modules])
import scipy.linalg, scipy.optimize
print(float(scipy.linalg.cholesky(np.eye(2) * 4)[0, 0]), scipy.optimize.linear_sum_assignment(np.eye(2))[1].tolist())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    loaded, works = done.stdout.splitlines()
    assert works == "2.0 [1, 0]" and (scipy_first or loaded == "[]"), done.stdout + done.stderr
