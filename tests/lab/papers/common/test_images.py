"""What experiments on images share: sources, encoding, ICA as a rotation, traversals and scores."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.base import FactorInfo, LabelledImages
from nearid.lab.data.images import ArrayImages
from nearid.lab.papers.common.images import (
    PLACES,
    Judge,
    StoredImages,
    as_planes,
    components,
    encoded,
    explained,
    hashed,
    image_source,
    source_names,
    stored_names,
    traversals,
)
from nearid.lab.processes.images.scenes import SpriteProcess


def test_rendered_images_are_those_of_the_process():
    source = image_source("sprites", 32)
    index = np.array([0, 5, 700_000])
    found = source.take(index)
    values, codes = SpriteProcess(32).grid(index)
    np.testing.assert_array_equal(found.images, SpriteProcess(32).observe(values))
    np.testing.assert_array_equal(found.codes, codes)
    np.testing.assert_array_equal(found.columns["scale"], values[:, 1])
    assert (source.size, source.channels, source.side) == (737_280, 1, 32)
    assert source.kinds["shape"] == "categorical" and source.periods == {"rotation": 2 * np.pi}


def test_a_sample_depends_on_its_generator_alone():
    source = image_source("solids", 32)
    a, b, c = (source.sample(20, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a.images, b.images)
    assert not np.array_equal(a.codes, c.codes) and a.images.shape == (20, 3, 32, 32)


def stored(table=None, dtype=np.uint8):
    """Six images of one grey each, of two factors."""
    grey = np.arange(6) * 51
    pixels = np.tile(grey[:, None, None, None], (1, 4, 4, 1)).astype(dtype)
    factors = (FactorInfo("size", "integer", 3), FactorInfo("turn", "circular", 2, 360.0, (0.0, 180.0)))
    table = np.stack(np.divmod(np.arange(6), 2), axis=1) if table is None else table
    return LabelledImages("grey", ArrayImages("grey", pixels), factors, table)


def test_stored_images_come_with_channels_first_from_0_to_1():
    source = StoredImages(stored())
    found = source.take(np.array([5, 1]))
    assert found.images.shape == (2, 1, 4, 4) and found.images.dtype == np.float32
    np.testing.assert_allclose(found.images[:, 0, 0, 0], [1.0, 0.2])
    assert found.codes.tolist() == [[2, 1], [0, 1]] and found.columns["turn"].tolist() == [180.0, 180.0]
    # Levels that have an order are numbers for a regression.
    assert source.kinds == {"size": "continuous", "turn": "circular"} and source.periods == {"turn": 360.0}


def test_floats_are_not_divided():
    x = np.random.default_rng(0).uniform(size=(2, 3, 3, 3)).astype(np.float32)
    np.testing.assert_array_equal(as_planes(x)[0, 1], x[0, :, :, 1])


def test_what_is_no_source_gets_a_sentence():
    with pytest.raises(InputError, match=r"no source of images named 'sprite'\. Did you mean sprites"):
        image_source("sprite", 32)
    with pytest.raises(InputError, match="nearid data fetch shapes3d"):
        image_source("shapes3d", 32)
    with pytest.raises(InputError, match="have no levels"):
        StoredImages(stored(np.zeros((6, 2))))


def test_images_drawn_apart_are_different_ones():
    source = StoredImages(stored())
    assert sorted(source.sample_apart(6, np.random.default_rng(0)).codes[:, 0]) == sorted(source.codes[:, 0])
    assert len(source.sample_apart(100, np.random.default_rng(0)).images) == source.size == 6
    rendered = image_source("sprites", 32)
    few = rendered.sample_apart(50, np.random.default_rng(0))
    assert len(np.unique(few.codes, axis=0)) == 50


def test_levels_are_those_of_the_source():
    rendered = image_source("sprites", 32)
    codes = rendered.sample(4000, np.random.default_rng(0)).codes
    assert [rendered.levels(name) for name in rendered.names] == list(codes.max(axis=0) + 1)
    source = StoredImages(stored())
    assert source.levels(source.names[0]) == source.codes[:, 0].max() + 1


def test_names_are_split_by_comma_and_data_sets_told_from_rendered():
    assert source_names(" sprites,mnist ,solids") == ("sprites", "mnist", "solids")
    assert stored_names(("sprites", "mnist", "solids")) == ("mnist",)
    with pytest.raises(InputError, match="no source of images named 'sprite'"):
        source_names("solids,sprite")


def test_encoding_goes_block_by_block():
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    x = np.random.default_rng(0).normal(size=(1100, 3)).astype(np.float32)
    sizes = []
    found = encoded(lambda rows: (sizes.append(len(rows)), 2 * rows)[1], x)
    assert sizes == [512, 512, 76] and found.dtype == np.float64
    np.testing.assert_array_equal(found, 2.0 * x)
    assert encoded(lambda rows: rows.argmax(dim=1), x).dtype == np.int64 and torch.is_grad_enabled()


def test_the_mean_image_explains_nothing():
    x = np.random.default_rng(0).uniform(size=(50, 1, 4, 4))
    assert explained(x, x) == 1 and explained(x, np.broadcast_to(x.mean(axis=0), x.shape)) == pytest.approx(0)


SOURCES = np.random.default_rng(3).uniform(-1, 1, size=(5000, 3)) * [3.0, 2.0, 1.0]
# A reflection, far from every signed permutation.
TURN = np.eye(3) - 2 / 3


def test_ica_without_whitening_is_a_rotation_that_finds_the_sources():
    z = SOURCES @ TURN + 5
    found = components(z, whiten=False)
    np.testing.assert_allclose(found.values @ found.back + found.mean, z)
    np.testing.assert_allclose(found.back @ found.back.T, np.eye(3), atol=1e-9)
    c = np.abs(np.corrcoef(found.values.T, SOURCES.T)[:3, 3:])
    assert c.max(axis=0).min() > 0.99


def test_ica_with_whitening_gives_unit_variances_and_the_way_back():
    z = SOURCES @ np.random.default_rng(1).normal(size=(3, 3))
    found = components(z, whiten=True)
    np.testing.assert_allclose(found.values.std(axis=0), 1, rtol=1e-3)
    np.testing.assert_allclose(found.values @ found.back + found.mean, z)


def test_a_traversal_changes_one_component():
    found = components(SOURCES @ TURN, whiten=False)
    start = SOURCES[7] @ TURN
    images = traversals(lambda z: z.reshape(-1, 1, 1, 3), found, np.array([2, 0]), start)
    assert images.shape == (2, len(PLACES), 1, 1, 3)
    at = (images.reshape(2, len(PLACES), 3) - found.mean) @ np.linalg.inv(found.back)
    np.testing.assert_allclose(at[0, :, 2], np.multiply(PLACES, found.values[:, 2].std()), atol=1e-9)
    np.testing.assert_allclose(at[0, :, :2], np.tile(found.values[7, :2], (len(PLACES), 1)))
    np.testing.assert_allclose(at[1, :, 1:], np.tile(found.values[7, 1:], (len(PLACES), 1)))


def test_the_judge_knows_factors_from_mixtures_of_them():
    source = image_source("sprites", 32)
    sample = source.sample(1500, np.random.default_rng(0))
    judge = Judge(source, sample, 300)
    true = np.column_stack([sample.columns[name] for name in ("scale", "x", "y")])
    true = (true - true.mean(axis=0)) / true.std(axis=0)
    own, matrix = judge.information(true)
    mixed, _ = judge.information(true @ TURN)
    assert own["infom"] > 0.9 > mixed["infom"] + 0.2 and matrix.shape == (3, 5)
    # Shape and rotation are in none of these.
    assert own["active"] == 3 and own["infoe"] < 0.8
    found = judge.recovery(true)
    assert (
        found["mcc"] == pytest.approx(3 / 5, abs=0.05) and found["dci_d"] > judge.recovery(true @ TURN)["dci_d"] + 0.2
    )
    # Shape and scale: tables of factors with many levels would be too sparse for so few images.
    assert source.names[:2] == ("shape", "scale")
    assert judge.information(sample.codes[:, :2], discrete=True)[0]["infom"] > 0.9
    assert Judge(source, sample, 0).recovery(true).keys() == {"mcc"}


def test_numbers_follow_from_the_place_alone():
    drawn = hashed(np.arange(20_000), 4)
    assert drawn.min() >= 0 and drawn.max() < 1
    np.testing.assert_allclose(drawn.mean(axis=0), 0.5, atol=0.01)
    np.testing.assert_allclose(np.corrcoef(drawn.T), np.eye(4), atol=0.03)
    # Neighbours have nothing to do with one another.
    assert abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 0.03
    np.testing.assert_array_equal(hashed(np.array([7, 3]), 4), drawn[[7, 3]])


def test_pixels_under_changing_light_are_correlated_with_no_factor():
    plain, lit = image_source("sprites", 32), image_source("sprites-lit", 32)
    index = np.random.default_rng(0).integers(0, plain.size, 4000)
    both = plain.take(index), lit.take(index)
    assert both[1].images.shape == (4000, 3, 32, 32) and both[1].images.dtype == np.float32
    assert both[1].images.min() >= 0 and both[1].images.max() <= 1
    np.testing.assert_array_equal(both[0].codes, both[1].codes)
    # Pixels that no sprite covers are constant.
    with np.errstate(invalid="ignore"):
        most = [
            np.nanmax(np.abs(np.corrcoef(s.images[:, 0].reshape(4000, -1).T, s.columns["x"])[-1, :-1])) for s in both
        ]
    # Of 1024 pixels the largest correlation by chance is about 3.5 over the root of the rows.
    assert most[0] > 0.4 and most[1] < 0.08
    np.testing.assert_array_equal(lit.take(index[:3]).images, both[1].images[:3])


def test_a_shape_is_as_visible_as_before():
    plain, lit = image_source("sprites", 32), image_source("sprites-lit", 32)
    index = np.arange(0, plain.size, plain.size // 50)
    masks, images = plain.take(index).images[:, 0] > 0.9, lit.take(index).images
    inside = np.array([[np.median(c[m]) for c in image] for image, m in zip(images, masks, strict=True)])
    outside = np.array([[np.median(c[~m]) for c in image] for image, m in zip(images, masks, strict=True)])
    assert np.abs(inside - outside).min() > 0.2
