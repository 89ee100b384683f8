"""Predictive coding of patches: where patches come from, what the two runs see, maps from g, claims that decide."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.load import load
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.common.correlation import plain_cca
from nearid.lab.papers.roeder.cpc import (
    CPC,
    MEAN,
    SPREAD,
    Parameters,
    agreement_by_variance,
    cell,
    chosen_images,
    model,
    pairs,
    patches,
    rows,
)

E = CPC


@pytest.mark.parametrize(("bottom", "least", "most"), [(False, 0, 15), (True, 16, 31)])
@pytest.mark.parametrize("size", [5, 16])
def test_patches_lie_in_their_half(rng, bottom, least, most, size):
    row, column = np.meshgrid(np.arange(32, dtype=np.uint8), np.arange(32, dtype=np.uint8), indexing="ij")
    image = np.stack([row, column, np.full((32, 32), 7, np.uint8)], axis=2)
    found = patches(np.repeat(image[None], 400, axis=0), size, rng, bottom=bottom) * SPREAD + MEAN
    assert found.dtype == np.float32 and found.shape == (400, size * size * 3)
    found = found.reshape(400, size, size, 3).round().astype(int)
    assert (found[..., 2] == 7).all()
    # Whole squares, at every place of the half and nowhere else.
    assert (np.diff(found[..., 0], axis=1) == 1).all() and (np.diff(found[..., 1], axis=2) == 1).all()
    assert (np.diff(found[..., 0], axis=2) == 0).all()
    assert set(found[:, 0, 0, 0]) == set(range(least, most - size + 2))
    assert set(found[:, 0, 0, 1]) == set(range(32 - size + 1)) and found[..., 0].max() == most


def test_pairs_are_of_the_same_image(rng):
    images = np.repeat(np.arange(50, dtype=np.uint8), 3072).reshape(50, 32, 32, 3)
    top, bottom = pairs(images, 4, rng)
    np.testing.assert_array_equal(top, bottom)
    assert len(np.unique(top[:, 0])) == 50


def test_runs_see_the_same_images_or_their_own(photographs):
    rng = np.random.default_rng(0)
    same, also = chosen_images(Parameters(images=100), rng)
    np.testing.assert_array_equal(same, also)
    first, second = (x.reshape(100, -1) for x in chosen_images(Parameters(images=100, apart=True), rng))
    assert not {row.tobytes() for row in first} & {row.tobytes() for row in second}
    held = {row.tobytes() for row in load("cifar10", split="train").images.read().reshape(500, -1)}
    assert {row.tobytes() for row in (*first, *second)} <= held


def test_too_many_images_are_told(photographs):
    with pytest.raises(InputError, match=r"600 training images are needed, but 500 of CIFAR-10 are here"):
        chosen_images(Parameters(images=300, apart=True), np.random.default_rng(0))


SMOKE = parameters_for(E, "smoke", {"images": 400, "outputs": 3, "patch": 4, "batch": 50, "held_out": 400})


def test_curves_begin_untrained_and_end_with_the_scores(photographs, tmp_path):
    first = cell(SMOKE, 0, tmp_path)
    assert first["curves"]["cca_f"]["x"] == [0, 3, 6] == first["curves"]["held_out"]["x"]
    assert first["curves"]["cca_f"]["y"][0] == first["scores"]["cca_f_start"]
    assert first["curves"]["cca_g"]["y"][-1] == first["scores"]["cca_g"]
    assert first["curves"]["held_out"]["y"][0] == pytest.approx(np.log(50), abs=0.5)


def test_runs_that_learn_colours_come_to_agree(photographs, tmp_path):
    found = cell(changed(SMOKE, {"steps": 400, "rate": 3e-3}), 0, tmp_path)["scores"]
    assert found["held_out"] < 1.5 < np.log(50) and found["missing"] == 0
    # Over draws of the photographs f gains .2 to .3.
    assert found["cca_f"] > found["cca_f_start"] + 0.1 and found["cca_g"] > found["cca_g_start"] + 0.05
    assert 0 < found["r2_fitted"] >= found["r2_heads"]


def test_agreement_by_variance_counts_a_direction_by_its_variance(rng):
    shared, own, other = (rng.normal(size=(2000, 1)) for _ in range(3))
    first, second = np.hstack([3 * shared, own]), np.hstack([3 * shared, other])
    # Nine tenths of the variance are shared, and one of two directions.
    assert agreement_by_variance(first, second, 0) == pytest.approx(0.9, abs=0.01)
    assert plain_cca(first, second).value == pytest.approx(0.5, abs=0.03)


def test_the_g_of_linear_twins_tell_the_map_of_their_f(photographs, tmp_path, monkeypatch):
    import torch

    matrix = torch.tensor([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0], [-0.5, 0.0, 1.0]])
    inverse = torch.linalg.inv(matrix).T
    made = []

    def twins(p, seed):
        """The same scores twice, but f through a matrix and g through its inverse."""
        one = model(p, 7)
        if made:
            with torch.no_grad():
                for encoder, change in ((one.f, matrix), (one.g, inverse)):
                    encoder[-1].weight.copy_(change @ encoder[-1].weight)
                    encoder[-1].bias.copy_(change @ encoder[-1].bias)
        made.append(one)
        return one

    monkeypatch.setattr("nearid.lab.papers.roeder.cpc.model", twins)
    found = cell(changed(SMOKE, {"rate": 1e-12}), 0, tmp_path)["scores"]
    for name in ("cca_f", "cca_g", "weighted_f", "weighted_g", "r2_heads", "r2_fitted"):
        assert found[name] == pytest.approx(1, abs=1e-4), name
    assert found["disagreement"] < 1e-3


def result(p=None, **changes):
    p = p or parameters_for(E, "cpu")
    cells = []
    for c in cells_of(E, p, range(3)):
        grown = np.log(c.parameters.images * c.parameters.width) / 100
        values = {"r2_heads": 0.95}
        for score in ("cca", "weighted"):
            values |= {f"{score}_f": 0.5 + grown, f"{score}_g": 0.4 + grown}
            values |= {f"{score}_f_start": 0.3, f"{score}_g_start": 0.3}
        values |= changes.get(c.row.key.replace("-", "_"), {})
        views = {name: {"untrained": [0.5, 0.1], "trained": [0.9, 0.2]} for name in "fg"}
        scores = {name: value + 1e-4 * c.seed for name, value in values.items()}
        cells.append(Finished(c, {"scores": scores, "views": views}, 1.0, 1.0, {}))
    return ExperimentResult(E, "cpu", p, range(3), cells, (), {})


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, ()),
        ({"base": {"cca_g_start": 0.9}}, (0,)),
        ({"images_300": {"cca_f": 0.9}}, (1,)),
        ({"own_300": {"cca_f": 0.9}}, (2,)),
        ({"own_3000": {"cca_g": 0.1}}, (2,)),
        ({"width_64": {"cca_g": 0.9}}, (3,)),
        ({"width_512": {"cca_f": 0.1}}, (3,)),
        ({"base": {"r2_heads": 0.5}}, (4,)),
        ({"base": {"weighted_g_start": 0.9}}, (5,)),
        ({"images_300": {"weighted_f": 0.9}}, (6,)),
        ({"width_64": {"weighted_f": 0.9}}, (7,)),
    ],
)
def test_claims_decide(changes, fails):
    expected = ["not reproduced" if k in fails else "reproduced" for k in range(8)]
    assert [str(o.status) for _, o in result(**changes).outcomes] == expected


def test_one_size_is_not_compared_with_itself():
    found = [outcome for _, outcome in result(parameters_for(E, "cpu", {"sizes": (300,)})).outcomes]
    assert [str(o.status) for o in found] == [*["reproduced"] * 2, "not testable here", *["reproduced"] * 5]
    assert found[2].sentence.startswith("Needs two numbers of images")


def test_figures_of_all_cells():
    spectrum, images, width = E.figures(result())
    assert set(spectrum.curves) == {"f, untrained", "f, trained", "g, untrained", "g, trained"}
    x, y = images.points["f, the same images"]
    assert len(x) == len(y) == 3 * 3 and max(x) == np.log2(10_000)
    assert len(images.curves["g, images of their own, mean"][0]) == 2
    assert width.curves["f, untrained, mean"][0] == [6, 8, 9]


def test_rows_of_other_sizes():
    keys = [row.key for row in rows(Parameters(sizes=(50,), widths=(8, 16)))]
    assert keys == ["base", "images-50", "own-50", "width-8", "width-16"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": ()},
        {"sizes": (300, 300)},
        {"widths": (64, 64)},
    ],
)
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match="must"):
        Parameters(**wrong)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sizes": "20000,25000"}, "sizes must name smaller numbers of images than images=10000, not 20000,25000"),
        ({"images": 3000}, "sizes must name smaller numbers of images than images=3000"),
        ({"widths": "64,256"}, "widths must name other widths than width=256"),
    ],
)
def test_rows_that_would_be_compared_with_themselves_are_refused(given, words, tmp_path):
    with pytest.raises(InputError, match=words):
        reproduce(E, tmp_path / "out", parameters=given)
    assert not (tmp_path / "out").exists()


def test_what_reads_pictures_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr("nearid.lab.framework.run.find_spec", lambda name: None if name == "PIL" else name)
    with pytest.raises(InputError, match=r"needs PIL, which is not installed: pip install 'nearid\[lab\]'"):
        reproduce(E, tmp_path / "out", preset="smoke")
