"""Hidden states on sentences, and their agreement against the published protocol word by word."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.cells import Cell
from nearid.lab.framework.run import plan, reproduce
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.roeder.gpt2_states import (
    agreement,
    check_models,
    keyed,
    mean_agreement,
    named,
    padded,
    pretrained_states,
    states_of,
)
from nearid.lab.papers.roeder.gpt2_svcca import GPT2_SVCCA as E, rows

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")


SENTENCES = [["a", "b", "a"], ["b"], ["c", "a", "b", "b", "zzz"]]


def protocol(x, y, k):
    """Per-feature z-score, SVD, singular values of U1[:, :k]^T U2[:, :k]."""
    u = [np.linalg.svd((z - z.mean(0)) / z.std(0), full_matrices=False)[0][:, :k] for z in (x, y)]
    return np.linalg.svd(u[0].T @ u[1], compute_uv=False).mean()


def test_agreement_is_the_published_protocol(rng):
    shared = rng.normal(size=(200, 4))
    x, y, z = (shared @ rng.normal(size=(4, d)) + rng.normal(size=(200, d)) * [3.0] * d for d in (6, 8, 7))
    ks = [1, 3, 6]
    np.testing.assert_allclose(agreement(x, y * 100, ks), [protocol(x, y, k) for k in ks], rtol=1e-10)
    pairs = [(x, y), (x, z), (y, z)]
    expected = [np.mean([protocol(a, b, k) for a, b in pairs]) for k in ks]
    np.testing.assert_allclose(mean_agreement([x, y, z], ks), expected, rtol=1e-10)
    assert agreement(x, x @ rng.normal(size=(6, 6)), [6])[0] == pytest.approx(1)


def test_a_constant_feature_is_told(rng):
    x = rng.normal(size=(50, 3))
    with pytest.raises(InputError, match="the same for all tokens"):
        agreement(x, np.column_stack([x, np.ones(50)]), [2])


def test_sentences_are_padded_and_cut():
    ids, own = padded([np.array([5, 6]), np.array([7, 8, 9, 4])], 1, 4)
    np.testing.assert_array_equal(ids, [[1, 5, 6, 1], [1, 7, 8, 9]])
    np.testing.assert_array_equal(own, [[0, 1, 1, 0], [0, 1, 1, 1]])


def test_states_are_those_of_each_sentence_alone(monkeypatch):
    from nearid.lab.data.texts import Vocabulary
    from nearid.lab.models.gpt import GPT
    from nearid.lab.models.trainer import seeded

    monkeypatch.setattr("nearid.lab.papers.roeder.gpt2_states.BLOCK", 2)
    vocabulary = Vocabulary.of(SENTENCES, 5)
    with seeded(0):
        model = GPT(5, 8, 2, 2, 6)
    found = states_of(model, vocabulary, SENTENCES)
    with torch.no_grad():
        alone = [model.hidden_states(torch.tensor([[1, *vocabulary.ids(s)]])) for s in SENTENCES]
    for layer, states in enumerate(found):
        np.testing.assert_allclose(states, np.concatenate([a[layer][0, 1:] for a in alone]), atol=1e-6)


@pytest.fixture
def tiny(tmp_path):
    """Two small GPT-2 of different width with a tokenizer, as the library transformers saves them."""
    transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    from transformers.models.gpt2.tokenization_gpt2 import GPT2Tokenizer

    alphabet = ["<|endoftext|>", *"abcz", "Ġ"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: k for k, token in enumerate(alphabet)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    names = []
    for k, width in enumerate((8, 12)):
        torch.manual_seed(k)
        config = transformers.GPT2Config(vocab_size=6, n_positions=32, n_embd=width, n_layer=2, n_head=2)
        place = tmp_path / f"m{width}"
        transformers.GPT2Model(config).save_pretrained(place)
        GPT2Tokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")).save_pretrained(place)
        names.append(str(place))
    return names


def test_pretrained_models_and_extractions_of_them(tiny, tmp_path):
    transformers = pytest.importorskip("transformers")
    from nearid.questions.extract.run import extract

    last, before = pretrained_states(tiny, SENTENCES, (0, 1), tmp_path / "work1")
    # Signs of the words and the spaces between them.
    tokens = [len(" ".join(s)) for s in SENTENCES]
    assert [s.shape for s in last] == [(sum(tokens), 8), (sum(tokens), 12)] == [s.shape for s in before]
    model = transformers.GPT2Model.from_pretrained(tiny[0]).eval()
    ids = transformers.AutoTokenizer.from_pretrained(tiny[0])("a b a")["input_ids"]
    with torch.no_grad():
        expected = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    np.testing.assert_allclose(last[0][: len(ids)], expected[2][0], atol=1e-5)
    np.testing.assert_allclose(before[0][: len(ids)], expected[1][0], atol=1e-5)
    # A folder that was extracted before takes the place of a model.
    given = {"input_ids": np.array([ids, ids]), "attention_mask": np.ones((2, len(ids)), np.int64)}
    extract(tiny[0], given, layers="hidden_states.*", pool="tokens", out=tmp_path / "mine")
    [[again]] = pretrained_states([str(tmp_path / "mine")], SENTENCES, (0,), tmp_path / "work2")
    np.testing.assert_allclose(again, np.concatenate([expected[2][0]] * 2), atol=1e-5)
    with pytest.raises(InputError, match="no hidden state 4 before its last"):
        list(pretrained_states([str(tmp_path / "mine")], SENTENCES, (4,), tmp_path / "work3"))


def test_a_model_that_is_not_there_is_told(tmp_path):
    pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    with pytest.raises(InputError, match=r"The model .*nothing cannot be had"):
        list(pretrained_states([str(tmp_path / "nothing")], SENTENCES, (0,), tmp_path / "work"))


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
    p = parameters_for(E, "cpu", {"models": models})
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
    found = reproduce(E, tmp_path / "out", seeds=3, rows=["pretrained"], parameters={"models": ",".join(pair)})
    assert not found.failures and [*found.scores("pretrained", "back0")] == [0]
    assert 0 < found.scores("pretrained", "back0")[0] < 1
    assert "seed 0 alone has scores" in str(found)
    [*_, (_, outcome)] = found.outcomes
    assert "one seed gives no interval" in outcome.sentence


def test_intervals_over_sentences_are_told():
    assert "not over models" in rows(parameters_for(E, "cpu", {"models": "gpt2,gpt2-medium"}))[-1].note


def test_folders_may_be_set_for_their_row_alone(pair, tmp_path):
    assert plan(E, tmp_path, rows=["pretrained"], parameters={"models": ",".join(pair)}).notes == ()


def test_what_cannot_be_compared_is_refused_before(pair, tmp_path):
    def told(*models):
        with pytest.raises(InputError) as refused:
            reproduce(E, tmp_path / "out", preset="smoke", parameters={"models": ",".join(models)})
        return str(refused.value)

    narrow = extraction(tmp_path / "narrow", 0, width=8)
    assert "has 8 coordinates, but the 16 leading" in told(pair[0], narrow)
    shallow = extraction(tmp_path / "shallow", 0, states=6)
    assert "no hidden state 8 before its last" in told(pair[0], shallow)
    assert "neither a folder that is here" in told(pair[0], str(tmp_path / "nothing"))
    Path(pair[1], "hidden_states.3.npy").unlink()
    assert "has no file hidden_states.3.npy" in told(*pair)


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("nearid.lab.papers.roeder.gpt2_states.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"nearid\[hf\]"):
        check_models("gpt2,gpt2-medium", (0,), 16)
