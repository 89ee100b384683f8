"""Compiled modules of scipy by themselves."""

import subprocess
import sys

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from nearid.base.extensions import extension, lapack


def test_they_compute_what_their_packages_compute(rng):
    x = rng.normal(size=(30, 6))
    scatter = x.T @ x
    lower, failed = lapack().dpotrf(scatter, lower=True, clean=True)
    assert not failed
    np.testing.assert_allclose(lower, cholesky(scatter, lower=True), rtol=1e-13, atol=1e-13)
    solved = lapack().dpotrs(lower, x.T, lower=True)[0]
    np.testing.assert_allclose(solved, cho_solve((lower, True), x.T), rtol=1e-12, atol=1e-13)
    inverse = lapack().dtrtrs(lower, np.eye(6), lower=True)[0]
    np.testing.assert_allclose(inverse, solve_triangular(lower, np.eye(6), lower=True), rtol=1e-12, atol=1e-13)
    assert lapack().dpotrf(-scatter, lower=True, clean=True)[1] > 0


def test_the_package_around_one_is_not_imported():
    code = (
        "import sys; from nearid.base.extensions import extension, lapack; lapack(); extension('optimize', '_lsap'); "
        "print('scipy.linalg' in sys.modules or 'scipy.optimize' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_one_that_scipy_keeps_elsewhere_comes_with_its_package(monkeypatch):
    monkeypatch.setattr("importlib.machinery.PathFinder.find_spec", lambda *where: None)
    extension.cache_clear()
    try:
        assert extension("optimize", "_lsap").__name__ == "scipy.optimize._lsap"
    finally:
        extension.cache_clear()
