"""Whitening and ICA in scikit-learn's hands, on known sources, on files, and the same bytes every time."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import nearid
import nearid.engines.local as local
from nearid import ICA, InputError, Whitening
from nearid.arrays import open_rows
from nearid.ica.estimators import IdentifiabilityWarning, MetadataWarning, RankWarning


@parametrize_with_checks([Whitening(), Whitening(form="zca"), ICA(), ICA(whiten=False)])
def test_scikit_learns_common_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks fit few rows, noise and copies of columns; that this is said is tested below.
        warnings.simplefilter("ignore", (RankWarning, ConvergenceWarning, IdentifiabilityWarning))
        check(estimator)


def sources(rng, n, k):
    """Laplace (super-Gaussian), uniform (sub-Gaussian) and mildly heavy sources in turn, of unit variance."""
    kinds = [rng.laplace(size=(n, k)), rng.uniform(-1, 1, size=(n, k)), rng.standard_t(8, size=(n, k))]
    s = np.stack([kinds[j % 3][:, j] for j in range(k)], axis=1)
    return s / s.std(axis=0)


def mcc(a, b):
    rho = np.abs(np.corrcoef(a.T, b.T)[: a.shape[1], a.shape[1] :])
    return rho[linear_sum_assignment(-rho)].mean()


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(3)
    s = sources(rng, 20_000, 9)
    turn = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    return s, ((s @ turn) * np.geomspace(1, 0.01, 9) @ turn.T + 5).astype(np.float32)


@pytest.mark.parametrize("contrast", ["logcosh", "exp"])
def test_sources_of_both_signs_are_found_as_well_as_by_scikit_learn(mixed, contrast):
    s, x = mixed
    found = ICA(contrast=contrast, tol=1e-6, dtype="float64").fit(x)
    peer = FastICA(fun=contrast, random_state=0, max_iter=500, tol=1e-8).fit_transform(x.astype(np.float64))
    assert found.converged_ and mcc(s, found.transform(x)) >= mcc(s, peer) - 1e-3
    if contrast == "logcosh":
        assert (found.kappa_ < 0).sum() == 3


@pytest.mark.parametrize("seed", range(10))
def test_ten_seeds_give_the_same_components(mixed, seed):
    s, x = mixed
    first, other = (ICA(tol=1e-6, dtype="float64", random_state=r).fit(x) for r in (0, seed))
    assert other.converged_ and mcc(s, other.transform(x)) > 0.98
    # Order and signs are canonical, so components compare one by one.
    np.testing.assert_allclose(other.transform(x[:50]), first.transform(x[:50]), atol=0.02)


def test_components_are_white_and_invertible(mixed):
    _, x = mixed
    found = ICA().fit(x)
    z = found.transform(x.astype(np.float64))
    np.testing.assert_allclose(np.cov(z.T, bias=True), np.eye(9), atol=1e-6)
    np.testing.assert_allclose(found.inverse_transform(z), x, atol=1e-4)
    np.testing.assert_allclose(found.components_ @ found.mixing_, np.eye(9), atol=1e-8)


# Another draw of the sources may leave two components near a Gaussian.
@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning")
def test_without_whitening_it_is_a_rotation(mixed):
    _, x = mixed
    found = ICA(whiten=False, max_passes=300).fit(x)
    gram = found.components_ @ found.components_.T
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(9), atol=1e-9 * gram[0, 0])


def test_the_same_bytes_whatever_the_threads(mixed, monkeypatch):
    _, x = mixed
    monkeypatch.setattr(local, "BLOCK_BYTES", 1 << 16)
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(local, "cores", lambda cores=cores: cores)
        found.append(ICA().fit(x).components_.tobytes())
    assert len(set(found)) == 1


def test_files_are_streamed(mixed, tmp_path):
    _, x = mixed
    np.save(tmp_path / "x.npy", x)
    from_file, from_memory = ICA().fit(tmp_path / "x.npy"), ICA().fit(x)
    np.testing.assert_array_equal(from_file.components_, from_memory.components_)
    np.testing.assert_array_equal(from_file.transform(str(tmp_path / "x.npy")), from_memory.transform(x))
    with pytest.raises(InputError, match="4 columns, but the fit used 9"):
        np.save(tmp_path / "y.npy", x[:, :4])
        from_file.transform(tmp_path / "y.npy")


@pytest.mark.filterwarnings("ignore::nearid.ica.estimators.IdentifiabilityWarning")  # three passes end at no optimum
def test_rank_and_convergence_are_told(mixed):
    _, x = mixed
    with pytest.warns(RankWarning, match="10 columns have rank 9"):
        assert Whitening().fit(np.hstack([x, x[:, :1]])).rank_ == 9
    with pytest.warns(ConvergenceWarning, match="stopped after 3 passes"):
        assert not ICA(max_passes=3).fit(x).converged_


def test_wrong_components_are_refused(mixed):
    with pytest.raises(InputError, match="9 columns are expected, one for each component"):
        ICA().fit(mixed[1]).inverse_transform(np.ones((2, 3)))
    with pytest.raises(InputError, match="nothing to unmix"):
        ICA().fit(np.ones((50, 2)))


def test_the_same_bytes_whatever_the_threads_of_blas(tmp_path):
    script = """
import sys, warnings, numpy as np, nearid
warnings.simplefilter("ignore")
x = np.random.default_rng(0).laplace(size=(2000, 200)).astype(np.float32)
np.save(sys.argv[1], nearid.ICA(max_passes=4).fit(x).components_)
np.save(sys.argv[2], nearid.Whitening().fit(x).components_)
"""
    found = []
    for threads in ("1", "2"):
        names = [str(tmp_path / f"{kind}{threads}.npy") for kind in "iw"]
        # The nearid under test, wherever another may be installed.
        env = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": os.path.dirname(nearid.__path__[0])}
        subprocess.run([sys.executable, "-c", script, *names], env=env, check=True)
        found.append([np.load(name).tobytes() for name in names])
    assert found[0] == found[1]


def test_rounding_of_single_precision_is_no_direction(rng):
    s = rng.laplace(size=(3000, 4))
    x = (s @ rng.normal(size=(4, 6)) + 1e4).astype(np.float32)
    with pytest.warns(RankWarning, match="6 columns have rank 4"):
        found = ICA().fit(x)
    assert found.rank_ == 4 and found.converged_
    with pytest.raises(InputError, match="varies by more than its rounding errors"):
        Whitening().fit((1e4 + 1e-4 * s).astype(np.float32) + np.float32(0.001) * (s > 2))
    with pytest.warns(
        RankWarning, match="7 components were requested, but there are 3 columns: 3 components are computed"
    ):
        Whitening(7).fit(s[:, :3])


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_in_another_order_are_refused(rng, tmp_path, suffix):
    import pandas as pd

    frame = pd.DataFrame(rng.laplace(size=(500, 3)), columns=["a", "b", "c"])
    write = {".parquet": lambda f, path: f.to_parquet(path), ".csv": lambda f, path: f.to_csv(path, index=False)}[
        suffix
    ]
    write(frame, tmp_path / f"x{suffix}")
    write(frame[["b", "a", "c"]], tmp_path / f"turned{suffix}")
    ICA().fit(tmp_path / f"x{suffix}").save(tmp_path / "m")
    again = ICA.load(tmp_path / "m")
    assert again.provenance["inputs"][0]["columns"] == ["a", "b", "c"]
    np.testing.assert_allclose(again.transform(tmp_path / f"x{suffix}"), again.transform(frame), atol=1e-12)
    with pytest.raises(InputError, match=r"Column 0 of turned.* is 'b', but in the fit it was 'a'"):
        again.transform(tmp_path / f"turned{suffix}")
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[["b", "a", "c"]])
    # Rows without names are taken as they come, and a fit to them forgets the names.
    assert again.transform(tmp_path / f"x{suffix}").shape == (500, 3)
    np.save(tmp_path / "x.npy", frame.to_numpy())
    assert not hasattr(again.fit(tmp_path / "x.npy"), "feature_names_in_")


def test_columns_of_a_file_that_look_like_metadata_give_a_warning(rng, tmp_path):
    names = ",".join(["f1", "f2", "cell_id"])
    x = np.column_stack([rng.laplace(size=(300, 2)), np.arange(300)])
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header=names, comments="")
    with pytest.warns(MetadataWarning, match="--exclude cell_id"):
        Whitening().fit(tmp_path / "x.csv")
    measured = open_rows(tmp_path / "x.csv", exclude="cell_id")
    fitted = Whitening().fit(measured)
    # The columns of the fit are chosen by name.
    np.testing.assert_array_equal(fitted.transform(tmp_path / "x.csv"), fitted.transform(measured))
    np.savetxt(tmp_path / "y.csv", x, delimiter=",", header="f1,other,cell_id", comments="")
    with pytest.raises(InputError, match=r"y\.csv has 3 columns, but the fit used 2"):
        fitted.transform(tmp_path / "y.csv")


@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning")
def test_components_are_a_rotation_of_the_whitening(rng):
    x = rng.laplace(size=(500, 6)) @ rng.normal(size=(6, 6))
    ica = ICA(4).fit(x)
    z = (x - ica.mean_) @ ica.whitening_.T
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(4), atol=1e-8)
    rotation = ica.components_ @ np.linalg.pinv(ica.whitening_)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(rotation @ ica.whitening_, ica.components_, atol=1e-8)
    expected = np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1][:4]
    np.testing.assert_allclose(np.linalg.norm(ica.whitening_, axis=1) ** -2, expected)
    with pytest.raises(AttributeError, match="whiten=True"):
        _ = ICA(whiten=False).fit(x).whitening_


def test_another_width_is_an_input_error_for_arrays_too(rng):
    ica = ICA().fit(rng.laplace(size=(300, 3)))
    with pytest.raises(InputError, match="2 features, but ICA is expecting 3"):
        ica.transform(np.zeros((5, 2)))
    with pytest.raises(InputError, match="3 columns are expected, one for each component"):
        ica.inverse_transform(np.zeros((5, 2)))


def test_a_file_of_a_single_row_is_transformed_but_not_fitted(rng, tmp_path):
    x = rng.laplace(size=(300, 3))
    ica = ICA().fit(x)
    np.save(tmp_path / "row.npy", x[:1])
    np.testing.assert_allclose(ica.transform(tmp_path / "row.npy"), ica.transform(x)[:1])
    with pytest.raises(InputError, match="at least 2 rows"):
        ICA().fit(tmp_path / "row.npy")


# 300 rows in a subspace of three Laplace sources: starts agree or not, which is not asked here.
@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning")
def test_whitening_holds_for_columns_of_very_different_units(rng):
    x = rng.laplace(size=(300, 3)) @ rng.normal(size=(3, 3)) * [1e-8, 1, 1e8]
    found = ICA().fit(x)
    z = (x - found.mean_) @ found.whitening_.T
    np.testing.assert_allclose(np.cov(z.T, bias=True), np.eye(3), atol=1e-6)


@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_halves_without_variance_choose_no_contrast_and_find_nothing(rng):
    x = np.concatenate([np.zeros((60, 3)), np.eye(3)])
    for seed in range(4):
        assert ICA(contrast="auto", random_state=seed).fit(x).diagnostics_.contrast in ("logcosh", "exp")
    few = ICA().fit(rng.laplace(size=(3, 2)))
    assert np.isfinite(few.components_).all() and np.all(few.recurrence_ <= 3)


@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning")
@pytest.mark.parametrize("starts", [1, 3])
@pytest.mark.parametrize("contrast", ["logcosh", "exp", "cube", "auto"])
def test_sub_and_super_gaussian_components_keep_their_kurtosis_on_few_rows(rng, contrast, starts):
    """Four sources of each kind in 400 rows: no stage of the search takes one kind for the other."""
    s = np.hstack([rng.laplace(size=(400, 4)), rng.uniform(-1, 1, size=(400, 4))])
    x = s @ rng.normal(size=(8, 8))
    found = ICA(contrast=contrast, starts=starts).fit(x)
    alike = np.abs(np.corrcoef(found.transform(x).T, s.T)[:8, 8:])
    own = alike.argmax(axis=1)
    assert sorted(own) == list(range(8)) and alike.max(axis=1).min() > 0.85
    # Heavy tails have positive kurtosis, whatever the contrast; kappa of the cube has the other sign.
    heavy = own < 4
    np.testing.assert_array_equal(found.diagnostics_.kurtosis > 0, heavy)
    np.testing.assert_array_equal((found.kappa_ > 0) != (contrast == "cube"), heavy)
    kinds = np.array(found.diagnostics_.kinds)
    assert not np.any(kinds[heavy] == "sub-Gaussian") and not np.any(kinds[~heavy] == "super-Gaussian")
