"""Pretrained models as the user names them: keyed by what folders hold, and refused before anything runs."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.cells import Cell
from nearid.lab.framework.plan import plan
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, settle
from nearid.lab.papers.roeder.gpt2_models import check_models, keyed, named
from nearid.lab.papers.roeder.gpt2_svcca import GPT2_SVCCA as E
from nearid.lab.papers.roeder.gpt2_svcca import rows

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")


def extraction(place, seed, width=20, states=13):
    """Hidden states of a small chain of layers."""
    from nearid.questions.extract.run import extract

    class Chain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden_states = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(states))

        def forward(self, x):
            for layer in self.hidden_states:
                x = 2 * torch.tanh(layer(x))
            return x

    torch.manual_seed(seed)
    inputs = np.random.default_rng(0).normal(size=(200, width)).astype(np.float32)
    extract(Chain(), inputs, layers="hidden_states.*", out=place)
    return str(place)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    home = tmp_path_factory.mktemp("extractions")
    return {str(seed): extraction(home / str(seed), seed) for seed in range(3)}


@pytest.fixture
def pair(made, tmp_path):
    """Two folders of a test's own."""
    return [str(shutil.copytree(made[name], tmp_path / name)) for name in "01"]


def identity(models):
    p = settle(E, "cpu", {"models": models})
    row = rows(p)[-1]
    return Cell(E, row, changed(p, row.changes), 0).identity


def test_folders_are_known_by_what_they_hold(pair, made, tmp_path, monkeypatch):
    before = identity(",".join(pair))
    monkeypatch.chdir(tmp_path)
    assert identity("0, 1") == before
    shutil.rmtree(pair[1])
    shutil.copytree(made["2"], pair[1])
    assert identity(",".join(pair)) != before
    # The cell finds the folders again.
    assert named(before["parameters"]["models"]) == pair


def test_a_folder_of_weights_that_was_written_again_is_another(tmp_path):
    (tmp_path / "m").mkdir()
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(b"abc")
    before = keyed(f"gpt2,{weights.parent}")
    assert before["models"].startswith("gpt2,/") and keyed(f"gpt2,{weights.parent}") == before
    weights.write_bytes(b"abcd")
    assert keyed(f"gpt2,{weights.parent}") != before


def test_models_of_the_hub_go_by_name():
    assert keyed("gpt2, openai-community/gpt2-medium") == {}
    assert identity("gpt2,gpt2-medium")["parameters"]["models"] == "gpt2,gpt2-medium"


def test_given_states_have_one_seed(pair, corpora, tmp_path, inline):
    found = reproduce(E, tmp_path / "out", seeds=3, rows=["pretrained"], changes={"models": ",".join(pair)})
    assert not found.failures and [*found.scores("pretrained", "back0")] == [0]
    assert 0 < found.scores("pretrained", "back0")[0] < 1
    assert "seed 0 alone has scores" in str(found)
    [*_, (_, outcome)] = found.outcomes
    assert "one seed gives no interval" in outcome.sentence


def test_intervals_over_sentences_are_told():
    assert "not over models" in rows(settle(E, "cpu", {"models": "gpt2,gpt2-medium"}))[-1].note


def test_folders_may_be_set_for_their_row_alone(pair, tmp_path):
    assert plan(E, tmp_path, rows=["pretrained"], changes={"models": ",".join(pair)}).notes == ()


def test_what_cannot_be_compared_is_refused_before(pair, tmp_path):
    def told(*models):
        with pytest.raises(InputError) as refused:
            reproduce(E, tmp_path / "out", preset="smoke", changes={"models": ",".join(models)})
        return str(refused.value)

    narrow = extraction(tmp_path / "narrow", 0, width=8)
    assert "has 8 coordinates, but the 16 leading" in told(pair[0], narrow)
    shallow = extraction(tmp_path / "shallow", 0, states=6)
    assert "no hidden state 8 before its last" in told(pair[0], shallow)
    assert "neither a folder that is here" in told(pair[0], str(tmp_path / "nothing"))
    Path(pair[1], "hidden_states.3.npy").unlink()
    assert "lacks hidden_states.3.npy" in told(*pair)


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("nearid.lab.papers.roeder.gpt2_models.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"nearid\[hf\]"):
        check_models("gpt2,gpt2-medium", (0,), 16)
