"""Contrastive learning on 3DIdent: images and latents stay together, the published encoder, claims that decide."""

import numpy as np
import pytest

from canonical_files import write_ident3d
from nearid.base.errors import InputError
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.zimmermann.ident3d import IDENT3D, Parameters, cell, objective, renderings

E = IDENT3D


@pytest.mark.parametrize("unpack", [False, True])
def test_images_come_with_their_latents(scenes, unpack):
    found = renderings(Parameters(side=16, unpack=unpack), "test")
    np.testing.assert_array_equal(found.latents, scenes["test"][0])
    index = np.array([117, 3, 60])
    images = found.at(index)
    assert images.shape == (3, 3, 16, 16) and images.dtype == np.float32
    # The first colours of the four blocks are latents 1, 4, 7 and 10.
    np.testing.assert_allclose(images[:, 0, ::8, ::8].reshape(3, 4), (found.latents[index][:, ::3] + 1) / 2, atol=0.01)


def test_representations_go_block_by_block(scenes, monkeypatch):
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
    p = parameters_for(E, "paper")
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


def test_the_supervised_baseline_reads_the_latents(scenes, tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    p = parameters_for(E, "smoke", {"steps": 150, "batch": 32, "held_out": 120, "looks": 1, "rate": 3e-3})
    found = cell(changed(p, E.rows(p)[-1].changes), 0, tmp_path / "work")
    assert found["scores"]["r2"] > 80 and found["scores"]["mcc"] > 90


def test_pairs_train_an_encoder(scenes, tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    p = parameters_for(E, "smoke", {"steps": 30, "batch": 32})
    before, after = cell(p, 0, tmp_path)["curves"]["loss"]["y"]
    assert after < before < np.log(33)


def test_rows_name_what_the_theorem_misses():
    boxed, free, laplace, supervised = E.rows(parameters_for(E, "paper"))
    assert boxed.violated == free.violated == ["exponent other than 2"]
    assert laplace.violated == ["matching conditional", "exponent other than 2"] and not supervised.violated
    assert boxed.published["mcc"].verified and not free.published["mcc"].verified
    # Positives at another scale are another table.
    assert not any(row.published for row in E.rows(Parameters(scale=0.5)))


def result(**changes):
    p = parameters_for(E, "cpu")
    told = []
    for c in cells_of(E, p, range(3)):
        found = {"mcc": 55.0 if c.row.key == "normal-unbounded" else 97.0, "r2": 96.0 + 0.1 * c.seed}
        scores = found | changes.get(c.row.key.replace("-", "_"), {})
        told.append(Finished(c, {"scores": scores}, 1.0, 1.0, {}))
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    yes, no = "reproduced", "not reproduced"
    assert result() == [yes, yes, yes]
    assert result(normal_box={"mcc": 80.0}) == [no, yes, yes]
    assert result(normal_unbounded={"r2": 80.0}) == [yes, no, yes]
    assert result(normal_unbounded={"mcc": 95.0}) == [yes, yes, no]
