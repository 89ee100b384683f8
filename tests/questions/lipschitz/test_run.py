"""Bi-Lipschitz constants: linear maps, polar coordinates, tanh, invariances, and five real decoders."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import ortho_group

from nearid import InputError, lipschitz
from nearid.questions.extract.weights import load_decoder


def matrix(values):
    weights = torch.tensor(np.asarray(values))
    return lambda z: z @ weights.T


def polar(z):
    return torch.stack([z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin()], dim=1)


@pytest.fixture
def z(rng):
    return rng.normal(size=(300, 3))


def test_a_linear_map_has_its_singular_values(rng, z):
    a = rng.normal(size=(7, 3))
    s = np.linalg.svd(a, compute_uv=False)
    found = lipschitz(matrix(a), z)
    np.testing.assert_allclose(found.exact.values, max(s[0], 1 / s[-1]))
    np.testing.assert_allclose(found.isometry.spectrum, np.tile(s[:, None], 3))
    assert found.exact.scale_free == pytest.approx(np.sqrt(s[0] / s[-1]))
    assert found.exact.scaled.mean.value == pytest.approx(np.sqrt(s[0] / s[-1]))
    assert found.isometry.anisotropy == pytest.approx(1)
    # Distances of pairs, and directions, lie between the extremes.
    assert s[-1] <= found.pairwise.least <= found.pairwise.greatest <= s[0] + 1e-12
    assert (found.sampled.values <= found.exact.values + 1e-12).all()
    assert (found.n, found.latents, found.outputs, found.directions) == (300, 3, 7, 10)
    assert found.constants is found.exact and found.bound.lipschitz == pytest.approx(max(s[0], 1 / s[-1]))


def test_an_isometry_has_the_constant_one(z):
    found = lipschitz(matrix(ortho_group.rvs(6, random_state=0)[:, :3]), z, constant=3.0)
    assert found.exact.local.maximum.value == pytest.approx(1) and found.pairwise.constant == pytest.approx(1)
    assert found.bound.applies and found.bound.epsilon == pytest.approx(0, abs=1e-6) and not found.alerts
    assert np.isnan(found.isometry.anisotropy)


def test_polar_coordinates(rng):
    # Singular values 1 and r: L = max(r, 1/r).
    z = np.column_stack([rng.uniform(0.5, 3, 400), rng.uniform(0, 6, 400)])
    found = lipschitz(polar, z)
    r = z[:, 0]
    np.testing.assert_allclose(found.exact.values, np.maximum(r, 1 / r))
    assert found.exact.scale_free == pytest.approx(np.sqrt(max(r.max(), 1) / min(r.min(), 1)))
    assert 0 < found.isometry.anisotropy < 1
    # |J v|^2 = v_r^2 + r^2 v_phi^2 along each direction.
    v = np.random.default_rng(0).standard_normal((10, 400, 2))
    v /= np.linalg.norm(v, axis=2, keepdims=True)
    lengths = np.sqrt(v[..., 0] ** 2 + r**2 * v[..., 1] ** 2)
    np.testing.assert_allclose(found.sampled.values, np.maximum(lengths, 1 / lengths).max(axis=0))


def test_tanh_loses_what_is_saturated():
    z = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, -3.0]])
    found = lipschitz(torch.tanh, z)
    np.testing.assert_allclose(found.exact.values, np.cosh([0.0, 2.0, 3.0]) ** 2)
    assert found.exact.local.maximum.point == 2
    flat = lipschitz(torch.tanh, z * 20)
    assert flat.exact.local.mean.value == np.inf and [a.code for a in flat.alerts] == ["not_injective"]
    assert "At 2 of 3 points" in flat.alerts[0].message and not flat.bound.applies
    assert flat.to_dict()["exact"]["local"]["mean"]["value"] is None


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 4), st.floats(0.1, 10))
def test_rotations_change_nothing_and_units_the_scale_alone(seed, d, unit):
    rng = np.random.default_rng(seed)
    a, b = torch.tensor(rng.normal(size=(d, 8))), torch.tensor(rng.normal(size=(8, 6)))
    q, p = (torch.tensor(np.linalg.qr(rng.normal(size=(k, k)))[0]) for k in (d, 6))
    z = rng.normal(size=(20, d))
    plain = lipschitz(lambda x: torch.sin(x @ a) @ b, z)
    turned = lipschitz(lambda x: torch.sin(x @ q @ a) @ b @ p + 5, z @ q.numpy().T)
    np.testing.assert_allclose(turned.exact.values, plain.exact.values, rtol=1e-7)
    assert turned.pairwise.constant == pytest.approx(plain.pairwise.constant)
    wider = lipschitz(lambda x: unit * torch.sin(x @ a) @ b, z)
    assert wider.exact.scale_free == pytest.approx(plain.exact.scale_free)
    assert wider.exact.scaled.mean.value == pytest.approx(plain.exact.scaled.mean.value)
    assert wider.exact.scale == pytest.approx(plain.exact.scale / unit)
    assert wider.pairwise.scale_free == pytest.approx(plain.pairwise.scale_free)


def test_directions_alone_give_the_same_and_say_what_they_miss(rng, z):
    a = matrix(np.diag([5.0, 1.0, 0.1]))
    both, alone = lipschitz(a, z), lipschitz(a, z, exact=False)
    np.testing.assert_allclose(alone.sampled.values, both.sampled.values, rtol=1e-12)
    assert alone.exact is None and alone.isometry is None and alone.constants is alone.sampled
    assert "directions_only" in [a.code for a in alone.alerts] and "lower bounds" in str(alone.alerts[0].message)
    many = lipschitz(a, z, directions=500, exact=False)
    assert (many.sampled.values >= alone.sampled.local.quantiles[0.05].value).mean() > 0.9
    assert both.exact.values.max() == pytest.approx(10) and many.sampled.values.max() <= 10 + 1e-9
    wide = lipschitz(lambda x: x, rng.normal(size=(5, 200)))
    assert wide.exact is None and lipschitz(lambda x: x, rng.normal(size=(5, 200)), exact=True).exact is not None


def test_fewer_outputs_than_latents_are_never_injective(z):
    found = lipschitz(matrix([[1.0, 2.0, 3.0]]), z)
    assert [a.code for a in found.alerts] == ["fewer_outputs", "not_injective"]
    np.testing.assert_array_equal(found.exact.least, 0)


def test_a_sample_of_the_rows_and_its_seed(rng):
    z = rng.normal(size=(500, 2))
    first, again, other = (lipschitz(torch.sinh, z, points=50, random_state=s) for s in (1, 1, 2))
    point = first.exact.local.maximum.point
    assert first.exact.values[point] == pytest.approx(np.cosh(z[first.rows[point]]).max())
    assert first.n == 50 and first.to_dict() == again.to_dict()
    assert not np.array_equal(first.exact.values, other.exact.values)
    assert first.provenance["inputs"][0]["shape"] == [500, 2]


def test_an_unsettled_maximum_is_told(rng):
    z = np.abs(rng.standard_cauchy(size=(200, 1)))
    found = lipschitz(lambda x: x**2 / 2 + x, z)
    assert "unsettled_maximum" in [a.code for a in found.alerts]


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (lambda z: z.log(), "gives nan at the latents of row 2"),
        (lambda z: 1 / (z - 3), "gives inf at the latents of row 3"),
        (lambda z: (z - 1).clamp(min=0).sqrt(), "not differentiable: its derivative is"),
        (lambda z: z.round() * 2, "steps"),
    ],
)
def test_what_has_no_derivative_is_told_with_its_row(decoder, message):
    with pytest.raises(InputError, match=message):
        lipschitz(decoder, np.array([[4.0], [5.0], [-1.0], [3.0], [1.0]]))


def test_pairs_are_of_random_rows_where_there_are_too_many(monkeypatch):
    # Rows in order, and what stretches comes last: the first rows alone would show none of it.
    z = np.linspace(0, 1, 100)[:, None]
    monkeypatch.setattr("nearid.questions.lipschitz.jacobians.PAIRED", 20)
    first, again, other = (
        lipschitz(lambda x: x + 3 * (x - 0.5).clamp(min=0), z, random_state=s).pairwise for s in (1, 1, 2)
    )
    assert first.pairs == 190 and first == again and first != other
    assert first.least == pytest.approx(1) and first.greatest == pytest.approx(4)
    # Rows and outputs belong together, whichever were drawn and in however many batches.
    monkeypatch.setattr("nearid.questions.lipschitz.jacobians.BATCH", 70)
    assert lipschitz(lambda x: 2 * x, z).pairwise.greatest == pytest.approx(2)


def test_more_directions_than_memory_are_told(z, monkeypatch):
    monkeypatch.setattr("nearid.base.limits.available_memory", lambda: 50_000)
    with pytest.raises(
        InputError, match=r"Drawing 10 directions at 300 points of 3 latents needs 72 kB .* fewer points"
    ):
        lipschitz(torch.sinh, z)
    assert lipschitz(torch.sinh, z, directions=6).directions == 6


def test_impossible_arguments_are_told(z):
    for name, value, least in (
        ("points", 1, 2),
        ("directions", 0, 1),
        ("random_state", -1, 0),
    ):
        with pytest.raises(InputError, match=f"{name}.* is {value}, but a whole number of at least {least}"):
            lipschitz(torch.sin, z, **{name: value})
    with pytest.raises(InputError, match=r"directions is 2\.5, but a whole number of at least 1"):
        lipschitz(torch.sin, z, directions=2.5)
    z[7, 1] = np.nan
    with pytest.raises(InputError, match="nan at row 7, column 1"):
        lipschitz(torch.sin, z)


@pytest.mark.parametrize("name", ["VAE", "betaH", "betaB", "factor", "btcvae"])
def test_real_decoders_agree_with_one_call_per_direction_and_point(real_data, name):
    decoder = load_decoder(str(real_data / "mnist_vaes" / name / "model.pt"))
    z = np.random.default_rng(0).standard_normal((3, 10)).astype(np.float32)
    found = lipschitz(decoder, z, directions=4)
    v = np.random.default_rng(0).standard_normal((4, 3, 10))
    v = torch.tensor(v / np.linalg.norm(v, axis=2, keepdims=True), dtype=torch.float32)
    for i in range(3):
        at = torch.from_numpy(z[i : i + 1])
        lengths = [float(torch.autograd.functional.jvp(decoder, at, v[k, i][None])[1].norm()) for k in range(4)]
        assert found.sampled.values[i] == pytest.approx(max(max(s, 1 / s) for s in lengths), rel=1e-5)
        jacobian = torch.autograd.functional.jacobian(decoder, at, vectorize=True).reshape(1024, 10)
        s = np.linalg.svd(jacobian.double().numpy(), compute_uv=False)
        assert found.exact.greatest[i] == pytest.approx(s[0], rel=1e-5)
        assert found.exact.least[i] == pytest.approx(s[-1], abs=1e-5 * s[0])


def test_draws_of_a_standard_normal(rng):
    decoder = torch.nn.Linear(3, 5).double()
    drawn = lipschitz(decoder, normal=1500, random_state=4)
    assert drawn.n == 1500 and drawn.latents == 3 and drawn.provenance["options"]["normal"] == 1500
    same = np.random.default_rng([4, 1]).standard_normal((1500, 3), dtype=np.float32)
    assert drawn.to_dict()["exact"] == lipschitz(decoder, same, points=1500, random_state=4).to_dict()["exact"]
    with pytest.raises(InputError, match="Give either latents"):
        lipschitz(decoder)
    with pytest.raises(InputError, match="factory and prefix are for files of weights"):
        lipschitz(decoder, normal=5, prefix="decoder.")
