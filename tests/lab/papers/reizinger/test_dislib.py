"""Linear decoding from classifiers: the score, the networks, the claims."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.common.images import image_source
from nearid.lab.papers.reizinger.dislib import DISLIB, PUBLISHED, Parameters, cell, decoding, settle_norms, targets

E = DISLIB
TINY = Parameters(data="sprites", steps=2, batch=8, width=8, fitted=200, judged=100, looks=1)


def test_decoding_is_the_correlation_with_least_squares():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2400, 4)), 0.5 * rng.normal(size=2400)
    y = np.column_stack([x @ [1, 2, 0, -1] + noise, rng.normal(size=2400)])
    found = decoding(x[:400], y[:400], x[400:], y[400:])
    design = np.column_stack([x, np.ones(2400)])
    estimate = design[400:] @ np.linalg.lstsq(design[:400], y[:400], rcond=None)[0]
    expected = [np.corrcoef(estimate[:, k], y[400:, k])[0, 1] for k in range(2)]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found[0] > 0.85 and abs(found[1]) < 0.2


def test_a_faint_feature_does_not_throw_a_penalised_map_off():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 1))
    x = np.hstack([y + rng.normal(size=(300, 1)), np.zeros((300, 1))])
    # Lit faintly in one row of those to fit on, brightly in others.
    x[0, 1], x[200:220, 1] = 1e-6, 1.0
    plain, penalised = (decoding(x[:200], y[:200], x[200:], y[200:], ridge)[0] for ridge in (0.0, 1e-4))
    assert abs(plain) < 0.3 and penalised > 0.6


def test_features_that_do_not_vary_decode_nothing():
    x, y = np.ones((50, 2)), np.random.default_rng(0).normal(size=(50, 1))
    assert decoding(x, y, x, y).tolist() == [0.0]


def test_targets_are_the_class_and_what_has_an_order():
    for name, expected in (
        ("sprites", {"category", "scale", "x", "y"}),
        ("solids", {"category", "scale", "angle"}),
    ):
        source = image_source(name, 32)
        sample = source.sample(30, np.random.default_rng(0))
        found = targets(source, sample)
        assert found.keys() == expected == PUBLISHED["dsprites" if name == "sprites" else "shapes3d"].keys()
        np.testing.assert_array_equal(found["category"], sample.columns["shape"])
        np.testing.assert_array_equal(found["scale"], sample.columns["scale"])


def test_pixels_need_no_training(tmp_path):
    found = cell(replace(TINY, model="pixels", fitted=3000, judged=500), 0, tmp_path)
    assert found["scores"]["x"] > 0.8 > found["scores"]["category"] and "accuracy" not in found["scores"]
    assert found["scores"]["mean"] == pytest.approx(np.mean([found["scores"][k] for k in ("scale", "x", "y")]))


def test_a_network_that_is_not_trained_has_no_accuracy(tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    idle = cell(replace(TINY, model="cnn", trained=False), 0, tmp_path)
    assert idle["curves"] == {} and "accuracy" not in idle["scores"] and idle["scores"]["x"] > 0.3


def test_a_network_that_is_not_trained_has_the_moments_of_a_batch():
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    from nearid.lab.models.encoders import dense_features
    from nearid.lab.models.objectives import CrossEntropy

    images = np.random.default_rng(0).uniform(3, 4, size=(64, 1, 8, 8)).astype(np.float32)
    model = CrossEntropy(dense_features(1, 8, 16), 16, 3)
    settle_norms(model, images)
    norm = next(m for m in model.modules() if isinstance(m, torch.nn.BatchNorm1d))
    before = model.encoder[1](torch.as_tensor(images).flatten(1))
    torch.testing.assert_close(norm.running_mean, before.mean(dim=0))
    assert not model.training


def result(preset="cpu", **changes):
    p = parameters_for(E, preset)
    told = []
    for c in cells_of(E, p, range(3)):
        how = "untrained" if c.row.key.endswith("untrained") else c.row.changes["model"]
        mean = {"pixels": 0.5, "untrained": 0.6, "mlp": 0.9, "cnn": 0.95}[how] + 0.001 * c.seed
        told.append(
            Finished(c, {"scores": {"mean": mean} | changes.get(c.row.key.replace("-", "_"), {})}, 1.0, 1.0, {})
        )
    return [str(o.status) for _, o in ExperimentResult(E, preset, p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    assert result() == ["reproduced"] * 6
    no = "not reproduced"
    assert [s == no for s in result(solids_pixels={"mean": 0.88})] == [True] + 5 * [False]
    assert [s == no for s in result(sprites_mlp_untrained={"mean": 0.95})] == [False, True] + 4 * [False]
    assert [s == no for s in result(solids_cnn={"mean": 0.7})] == [False, False, True] + 3 * [False]
    # Images under changing light have claims of their own.
    assert [s == no for s in result(sprites_lit_pixels={"mean": 0.88})] == 3 * [False] + [True, False, False]
    # Pixels that leave nothing to gain decide nothing.
    assert result(sprites_pixels={"mean": 0.95}) == ["not testable here", *["reproduced"] * 5]
    assert result("quick") == ["reproduced"] * 3 + ["not testable here"] * 3


def test_under_changing_light_pixels_decode_nothing(tmp_path):
    found = cell(replace(TINY, data="sprites-lit", model="pixels", fitted=3000, judged=500), 0, tmp_path)["scores"]
    assert max(abs(found[name]) for name in ("scale", "x", "y")) < 0.2


def test_the_published_protocol():
    p = parameters_for(E, "paper")
    by_key = {row.key: row for row in E.rows(p)}
    assert len(by_key) == 6 * 5 and changed(p, by_key["cars3d-cnn"].changes).networks == "resnet18"
    assert by_key["dsprites-pixels"].published["category"].value == 0.26
    assert by_key["mpi3d-real-cnn"].published["y"].value == 0.71 and not by_key["dsprites-mlp-untrained"].published
    cpu = {row.key: row for row in E.rows(parameters_for(E, "cpu"))}
    assert "data set whose factors they have" in cpu["solids-mlp"].published["angle"].note


def test_images_without_a_shape_are_refused():
    with pytest.raises(InputError, match="faces has no shape to classify"):
        Parameters(data="faces")
