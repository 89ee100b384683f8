import sys

import numpy as np
import pytest

import nearid
from nearid.arrays import open_rows
from nearid.base.errors import EngineError
from nearid.engines.local import LOCAL, open_engine
from nearid.folds import row_moments
from nearid.ica.contrast import CONTRASTS, RADIAL
from nearid.ica.passes import RowPasses

torch = pytest.importorskip("torch")

# Stated in the docstring of TorchEngine.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


def drawn(dtype: str, n: int = 9000, d: int = 6) -> np.ndarray:
    return (np.random.default_rng(0).laplace(size=(n, d)) + 3).astype(dtype)


def near(got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * float(np.abs(expected).max(initial=1)))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("contrast", [*CONTRASTS.values(), RADIAL], ids=lambda each: each.name)
@pytest.mark.parametrize("bends", [False, True])
def test_a_sweep_of_ica_equals_that_of_the_local_engine(dtype: str, contrast: object, bends: bool) -> None:
    x = drawn(dtype)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0][:4]
    kept = np.arange(len(x)) % 7 != 0

    def sums(engine: object) -> object:
        passes = RowPasses(open_rows(x), kept, x.mean(0, dtype=float), contrast, np.dtype(dtype), engine)
        return passes.contrast_sums(turn, with_values=True, with_bends=bends)

    with open_engine("torch") as engine:
        got, expected = sums(engine), sums(LOCAL)
    for name in ("products", "slopes", "values", *(["bends"] if bends else [])):
        near(getattr(got, name), getattr(expected, name), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_moments_equal_those_of_the_local_engine(dtype: str) -> None:
    rows = open_rows(drawn(dtype))
    with open_engine("torch:cpu") as engine:
        got, expected = row_moments(rows, engine=engine)[0], row_moments(rows)[0]
    near(got.mean, expected.mean, 1e-12)
    near(got.scatter, expected.scatter, 1e-12)


def test_the_products_are_computed_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from nearid.engines import torch_engine
    from nearid.ica import passes

    counts = {"gram": 0, "sweep": 0}
    gram, sweep = torch_engine.TorchDevice.gram, passes.sums_of

    def counted(name: str, function: object) -> object:
        def run(*args: object) -> object:
            counts[name] += 1
            return function(*args)

        return run

    monkeypatch.setattr(torch_engine.TorchDevice, "gram", counted("gram", gram))
    monkeypatch.setattr(passes, "sums_of", counted("sweep", sweep))
    monkeypatch.setattr("nearid.ica.fit.MOST_HELD", 0)
    x = drawn("float64")
    fits = [nearid.ICA(engine=engine, random_state=0).fit(x) for engine in ("torch", None)]
    assert counts["gram"] > 0 and counts["sweep"] > 0
    near(fits[0].components_, fits[1].components_, 1e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("in_sample", [False, True])
def test_the_error_pass_equals_that_of_the_local_engine(
    dtype: str, in_sample: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nearid.engines import local
    from nearid.questions.compare import errors, run

    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    evaluations: list[errors.Evaluation] = []
    evaluate, squares_of, on_device = run.evaluate, errors.squares_of, []
    monkeypatch.setattr(run, "evaluate", lambda *args: evaluations.append(evaluate(*args)) or evaluations[-1])
    monkeypatch.setattr(errors, "squares_of", lambda *args: on_device.append(1) or squares_of(*args))
    x = drawn(dtype, 1500)
    y = (x[:, ::-1] @ np.diag([1, -2, 1, 1, 3, 1]) + 0.1 * drawn(dtype, 1500) ** 2).astype(dtype)
    x[[4, 900]] = np.nan
    with open_engine("torch") as engine:
        for own in (engine, LOCAL):
            nearid.compare(x, y, in_sample=in_sample, drop_nonfinite=True, permutations=1, engine=own)
    # Six blocks of each pass, on the torch engine alone. In sample there is a second pass.
    assert len(on_device) == 6 * len(evaluations) / 2
    half = len(evaluations) // 2
    for got, expected in zip(evaluations[:half], evaluations[half:], strict=True):
        size = float(np.nanmax(expected.radii))
        for name in ("errors", "spread", "radii", "source_radii"):
            one, other = getattr(got, name), getattr(expected, name)
            np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
            near(np.nan_to_num(one) / size, np.nan_to_num(other) / size, TOLERANCE[dtype])
        np.testing.assert_allclose(got.fourth, expected.fourth, rtol=TOLERANCE[dtype])
        assert got.same == expected.same


def test_rows_in_very_different_units_are_left_to_numpy() -> None:
    x = drawn("float32", 600) * np.float32([1e-12, 1, 1, 1, 1, 1e12])
    here, there = (nearid.compare(x, x[:, ::-1], engine=engine, permutations=1) for engine in ("local", "torch"))
    assert here.verdict.group == there.verdict.group == "permutation"


def test_a_comparison_finds_the_same() -> None:
    x = drawn("float32", 600)
    y = x @ np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0].astype(np.float32)
    here, there = (nearid.compare(x, y, engine=engine, permutations=19) for engine in ("local", "torch"))
    assert here.verdict.group == there.verdict.group == "rigid"
    np.testing.assert_allclose(
        [each.r2.value for each in there.groups.values()], [each.r2.value for each in here.groups.values()], atol=1e-5
    )


def test_devices_that_are_not_here() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(EngineError, match=r"finds no device cuda here\. It has: torch:cpu"):
            open_engine("torch:cuda")
    with pytest.raises(EngineError, match="finds no device cuda:99 here"):
        open_engine("torch:cuda:99")
    with pytest.raises(EngineError, match=r"'torch:gpu' names no device\. Give torch"):
        open_engine("torch:gpu")


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EngineError, match="pip install torch"):
        open_engine("torch")


def test_a_device_without_double_precision_leaves_it_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from nearid.engines.torch_engine import TorchDevice, TorchEngine

    device = TorchDevice("cpu")
    device.precisions = [np.dtype(np.float32)]
    x = drawn("float64")
    near(device.gram(x), x.T @ x, 1e-12)
    for dtype in TOLERANCE:
        rows = open_rows(drawn(dtype))
        passes = [
            RowPasses(rows, None, np.zeros(6), CONTRASTS["cube"], np.dtype(dtype), engine).contrast_sums(np.eye(6))
            for engine in (TorchEngine(device), LOCAL)
        ]
        near(passes[0].products, passes[1].products, TOLERANCE[dtype])
