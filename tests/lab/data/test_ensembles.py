"""Representations by networks that others trained: read in their layout, and refused where they are damaged."""

import numpy as np
import pytest

from nearid import InputError
from nearid.lab.data.ensembles import STRETCH, load_ensembles


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARID_DATA", str(tmp_path))
    place = tmp_path / "ensembles"
    place.mkdir()
    return place


def test_atoms_of_a_molecule_belong_together(folder, rng):
    runs = {name: rng.normal(size=(6, 3)).astype(np.float32) for name in ("ani1x_0", "ani1x_1", "ani1ccx_0")}
    molecules = np.array([4, 4, 4, 7, 7, 9])
    for element in "HC":
        np.savez(folder / f"ani_{element}.npz", molecule=molecules, geometry=np.arange(6), **runs)
    held = load_ensembles("ani")
    assert list(held) == ["H", "C"] and list(held["H"].runs) == list(runs)
    assert held["C"].blocks.tolist() == molecules.tolist() and held["C"].runs["ani1x_1"].dtype == np.float64


def test_states_are_kept_apart(folder, rng):
    np.savez(
        folder / "silero_vad.npz", clip=[0, 0, 1], **{f"{s}_{v}": rng.normal(size=(3, 2)) for s in "hc" for v in "12"}
    )
    held = load_ensembles("silero-vad")
    assert list(held["h"].runs) == ["h_1", "h_2"] and held["c"].blocks.tolist() == [0, 0, 1]


def test_embeddings_are_named_after_what_they_follow(folder, rng):
    n = STRETCH + 5
    np.savez(folder / "cebra_hippocampus.npz", e1=rng.normal(size=(n, 3)), e2=rng.normal(size=(n, 8)))
    (folder / "cebra_hippocampus.csv").write_text(
        "key,width,hypothesis\ne1,3,position-original\ne2,8,position-shuffle\n"
    )
    held = load_ensembles("cebra")
    assert {part: list(e.runs) for part, e in held.items()} == {"3": ["position-original"], "8": ["position-shuffle"]}
    assert np.bincount(held["3"].blocks).tolist() == [STRETCH, 5]


def test_what_is_damaged_missing_or_something_else_is_told(folder, rng):
    with pytest.raises(InputError, match="Silero VAD is not on this machine"):
        load_ensembles("silero-vad")
    np.savez(folder / "silero_vad.npz", clip=[0, 0], h_1=rng.normal(size=(3, 2)))
    with pytest.raises(InputError, match="unequal numbers of rows"):
        load_ensembles("silero-vad")
    with pytest.raises(InputError, match="no ensemble of networks"):
        load_ensembles("mnist")


def test_the_real_networks(real_data):
    held = load_ensembles("ani")
    assert len(held["H"].runs) == 16 and held["H"].runs["ani1x_0"].shape == (1296, 96)
    assert len(held["C"].blocks) == 953
    assert len(load_ensembles("silero-vad")["h"].runs) == 3
    assert {part: len(e.runs) for part, e in load_ensembles("cebra").items()} == {"3": 21, "8": 21}
