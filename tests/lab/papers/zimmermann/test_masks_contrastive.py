"""Contrastive learning on moving masks: films, the encoder, claims that decide."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.base import FactorInfo, LabelledImages
from nearid.lab.data.images import ArrayImages
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.zimmermann.masks_contrastive import (
    FACTORS,
    MASKS_CONTRASTIVE,
    Parameters,
    StoredFilms,
    films,
    objective,
)

E = MASKS_CONTRASTIVE


def stored(lengths, gap):
    """Films whose frames are grey by their number, the films told apart by their factor y."""
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    frame = np.concatenate([np.arange(n) for n in lengths])
    pixels = np.tile(frame[:, None, None], (1, 4, 4)).astype(np.uint8)
    table = np.column_stack([sequence, frame, frame]).astype(float)
    factors = tuple(FactorInfo(name, "continuous") for name in FACTORS)
    return StoredFilms(LabelledImages("films", ArrayImages("films", pixels), factors, table, sequence), gap)


def test_pairs_of_stored_films_are_a_few_frames_apart_in_one_film():
    source = stored([10, 1, 4], gap=3)
    first, later = (x[:, 0, 0, 0] * 255 for x in source.pairs(20_000, np.random.default_rng(0)))
    gaps = np.rint(later - first).astype(int)
    assert set(gaps) == {1, 2, 3}
    # Frames of the middle of the long film are followed evenly; the last of a film is never the first of a pair.
    middle = gaps[np.isin(np.rint(first), [4, 5, 6])]
    assert np.bincount(middle)[1:].min() > 0.28 * len(middle) and np.rint(first).max() == 8
    images, factors = source.frames(50, np.random.default_rng(1))
    np.testing.assert_allclose(images[:, 0, 0, 0] * 255, factors[:, 1], atol=1e-4)


def test_films_of_one_frame_get_a_sentence():
    with pytest.raises(InputError, match="have one frame"):
        stored([1, 1], gap=1).pairs(4, np.random.default_rng(0))


def test_drawn_films_show_their_factors():
    source = films(Parameters(walkers=3), np.random.default_rng(0))
    images, factors = source.frames(40, np.random.default_rng(1))
    area = images.mean(axis=(1, 2, 3))
    np.testing.assert_allclose(area, factors[:, 2], rtol=0.1)
    centre = (images[:, 0].sum(axis=2) @ (np.arange(48) + 0.5)) / images.sum(axis=(1, 2, 3)) / 48
    np.testing.assert_allclose(centre, factors[:, 0], atol=0.01)
    a, b = source.pairs(40, np.random.default_rng(1))
    other = np.roll(b, 1, axis=0)
    assert np.abs(a - b).mean() < 0.7 * np.abs(a - other).mean()


def test_the_published_encoder():
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    model = objective(changed(parameters_for(E, "paper"), E.rows(parameters_for(E, "paper"))[0].changes))
    convolutions = [m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [(c.out_channels, c.kernel_size, c.stride) for c in convolutions] == [
        (width, (4, 4), (2, 2)) for width in (32, 32, 64, 64)
    ]
    assert model.encode(torch.zeros(2, 1, 64, 64)).shape == (2, 10) and model.temperature == 1


def result(**changes):
    p = parameters_for(E, "cpu")
    told = []
    for c in cells_of(E, p, range(3)):
        mcc = (60.0 if c.row.key == "l2-unbounded" else 95.0) + 0.1 * c.seed
        told.append(Finished(c, {"scores": {"mcc": mcc} | changes.get(c.row.key.replace("-", "_"), {})}, 1.0, 1.0, {}))
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    assert result() == ["reproduced", "reproduced"]
    assert result(l1_box={"mcc": 70.0}) == ["not reproduced", "reproduced"]
    assert result(l2_unbounded={"mcc": 94.0}) == ["reproduced", "not reproduced"]


def test_the_real_films_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("NEARID_DATA", raising=False)
    monkeypatch.setattr("nearid.lab.data.registry.cache_folder", lambda: tmp_path)
    with pytest.raises(InputError, match="nearid data fetch kitti-masks"):
        films(Parameters(data="kitti-masks"), np.random.default_rng(0))


@pytest.mark.own_seeds  # It is about the very seeds of the presets.
@pytest.mark.parametrize("preset", ["smoke", "cpu"])
def test_every_preset_draws_masks_wider_than_their_edges(preset):
    p = parameters_for(E, preset)
    many = next(row for row in E.rows(p) if row.key == "l1-box-walkers")
    for seed in range(E.presets[preset].seeds):
        drawn = int(np.random.SeedSequence(seed).generate_state(4)[0])
        images, _ = films(changed(p, many.changes), np.random.default_rng(drawn)).frames(5, np.random.default_rng(0))
        assert images.shape == (5, 1, p.side, p.side)
