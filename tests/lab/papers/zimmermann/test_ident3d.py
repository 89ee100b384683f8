"""Contrastive learning on 3DIdent: images and latents stay together, the published encoder, claims that decide."""

import json

import numpy as np
import pytest

from canonical_files import write_ident3d
from nearid.base.errors import InputError
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import Result
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, settle
from nearid.lab.papers.zimmermann.ident3d import IDENT3D, NAMES, Parameters, cell, objective, renderings

E = IDENT3D


def blocks(latents):
    """Pictures of 8 x 8 that show the ten latents: blocks of 4 x 4 pixels, three colours each."""
    levels = np.rint((latents + 1) * 127.5).astype(np.uint8)
    pixels = np.zeros((len(latents), 2, 2, 4), dtype=np.uint8)
    pixels[..., :3] = np.pad(levels, ((0, 0), (0, 2))).reshape(-1, 2, 2, 3)
    return pixels.repeat(4, axis=1).repeat(4, axis=2)


@pytest.fixture
def files(home, rng):
    """3DIdent of a few pictures that show their latents."""
    return write_ident3d(home("3dident"), rng, n=120, drawn=blocks)


@pytest.mark.parametrize("unpack", [False, True])
def test_images_come_with_their_latents(files, unpack):
    found = renderings(Parameters(side=16, unpack=unpack), "test")
    np.testing.assert_array_equal(found.latents, files["test"][0])
    index = np.array([117, 3, 60])
    images = found.at(index)
    assert images.shape == (3, 3, 16, 16) and images.dtype == np.float32
    # The first colours of the four blocks are latents 1, 4, 7 and 10.
    np.testing.assert_allclose(images[:, 0, ::8, ::8].reshape(3, 4), (found.latents[index][:, ::3] + 1) / 2, atol=0.01)


def test_representations_go_block_by_block(files, monkeypatch):
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    monkeypatch.setattr("nearid.lab.papers.zimmermann.ident3d.BLOCK", 7)
    found = renderings(Parameters(side=16, unpack=False), "test")
    model = objective(Parameters(side=16)).eval()
    index = np.arange(20)[::-1]
    with torch.no_grad():
        whole = model.encode(torch.as_tensor(found.at(index)))
    np.testing.assert_allclose(found.encoded(model, index), whole, atol=1e-6)


def test_angles_on_a_sphere_are_refused(home, rng):
    write_ident3d(home("3dident"), rng, columns=11)
    with pytest.raises(InputError, match=r"angles on a sphere .* box \[-1, 1\]\^10"):
        renderings(Parameters(unpack=False), "train")


def test_the_published_encoder():
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    p = settle(E, "paper")
    boxed, free = (objective(changed(p, row.changes)) for row in E.rows(p)[:2])
    linear = [(m.in_features, m.out_features) for m in boxed.modules() if isinstance(m, torch.nn.Linear)]
    assert linear == [(512, 100), (100, 10)] and (boxed.p, boxed.temperature) == (2, 1)
    # Of torchvision's ResNet-18, 11.69 million less the classifier's 513 thousand.
    features = sum(w.numel() for w in boxed.encoder[0].parameters())
    assert features == 11_176_512
    x = torch.randn(4, 3, 64, 64)
    inside = boxed.eval().encode(x)
    assert inside.shape == (4, 10) and inside.min() > 0 and inside.max() < 1
    assert free.eval().encode(x).min() < 0


def test_the_supervised_baseline_reads_the_latents(files, tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    p = settle(E, "smoke", {"steps": 150, "batch": 32, "held_out": 120, "looks": 1, "rate": 3e-3})
    found = cell(changed(p, E.rows(p)[-1].changes), 0, tmp_path / "work")
    assert found["scores"]["r2"] > 80 and found["scores"]["mcc"] > 90


def test_pairs_train_an_encoder_and_the_same_seed_gives_the_same(files, tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    p = settle(E, "smoke", {"steps": 30, "batch": 32})
    first, again, other = (cell(p, seed, tmp_path / name) for seed, name in ((0, "a"), (0, "b"), (1, "c")))
    assert first == again and first["scores"] != other["scores"]
    json.dumps(first, allow_nan=False)
    assert first["curves"]["mcc"]["y"][-1] == first["scores"]["mcc"]
    before, after = first["curves"]["loss"]["y"]
    assert after < before < np.log(33)


def test_rows_name_what_the_theorem_misses():
    boxed, free, laplace, supervised = E.rows(settle(E, "paper"))
    assert boxed.violated == free.violated == ["exponent other than 2"]
    assert laplace.violated == ["matching conditional", "exponent other than 2"] and not supervised.violated
    assert boxed.published["mcc"].verified and not free.published["mcc"].verified
    # Positives at another scale are another table.
    assert not any(row.published for row in E.rows(Parameters(scale=0.5)))


def result(**changes):
    p = settle(E, "cpu")
    told = []
    for c in cells_of(E, p, range(3)):
        found = {"mcc": 55.0 if c.row.key == "normal-unbounded" else 97.0, "r2": 96.0 + 0.1 * c.seed}
        scores = found | changes.get(c.row.key.replace("-", "_"), {})
        told.append(Finished(c, {"scores": scores}, 1.0, 1.0, {}))
    return [str(o.status) for _, o in Result(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    yes, no = "reproduced", "not reproduced"
    assert result() == [yes, yes, yes]
    assert result(normal_box={"mcc": 80.0}) == [no, yes, yes]
    assert result(normal_unbounded={"r2": 80.0}) == [yes, no, yes]
    assert result(normal_unbounded={"mcc": 95.0}) == [yes, yes, no]


@pytest.mark.parametrize("wrong", [{"conditional": "vmf"}, {"exponent": 0.5}, {"scale": 0.0}, {"network": "mlp"}])
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match=r"must be .*, not"):
        Parameters(**wrong)


def test_without_the_file_nothing_begins(home, tmp_path):
    with pytest.raises(InputError, match=r"needs 3DIdent, which is not here: .* nearid data fetch 3dident"):
        reproduce(E, tmp_path / "out", preset="smoke")
    assert not (tmp_path / "out").exists()


def test_the_smoke_preset_runs_with_figures(files, tmp_path, inline):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1)
    assert len(found.cells) == 4 and not found.failures
    scatter, correlation = E.figures(found)[:2]
    assert "true x" in scatter.across and list(correlation.columns) == list(NAMES)
    assert list(correlation.panels) == ["recovered", "and mapped linearly"]
