"""Heads of models as people give them: arrays, modules, checkpoints; verdicts; what cannot be compared is told."""

import json

import numpy as np
import pandas as pd
import pytest

import nearid
from nearid.base.errors import InputError


@pytest.fixture
def twins(rng):
    """Two models of equal likelihood: (heads, features, biases)."""
    f, g, matrix = rng.normal(size=(400, 5)), rng.normal(size=(20, 5)), rng.normal(size=(5, 5))
    h, offset, bias = g @ np.linalg.inv(matrix).T, rng.normal(size=5), rng.normal(size=20)
    return (g, h), (f, f @ matrix + offset), (bias, bias - h @ offset)


def test_models_of_equal_likelihood_agree(twins):
    heads, features, biases = twins
    found = nearid.compare_heads(*heads, *features, biases=biases)
    assert found.verdict.outcome == "agree" and found.biased and not found.alerts
    assert "explains 100.0% of the variance on held-out rows" in found.verdict.reason
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["classes"] == 20 and told["width"] == 5 and told["n"] == 400 and told["disagreement"] < 1e-9
    assert "The heads predict the map" in str(found) and "logits with biases" in found._repr_html_()
    assert "The heads predict the map" in repr(found)
    from_pairs = nearid.compare_heads(*heads, *features, biases=biases, pairs=True, draws=20)
    assert from_pairs.compared.r2_heads == pytest.approx(1) and "the best of 20 choices" in str(from_pairs)
    assert len(from_pairs.to_dict()["pairs"]["pairs"]) == 5


def test_models_of_other_likelihoods_do_not(twins, rng):
    heads, features, _ = twins
    strange = heads[0], heads[1] @ rng.normal(size=(5, 5)) * 3
    found = nearid.compare_heads(*strange, *features)
    # The features are linear in each other all the same, up to the offset that no bias accounts for.
    assert found.verdict.outcome == "disagree" and "likelihoods differ" in found.verdict.reason
    assert "from the heads alone does worse than guessing the mean (R2 -" in found.verdict.reason
    apart = nearid.compare_heads(*heads, features[0], rng.normal(size=(400, 5)))
    assert apart.verdict.outcome == "disagree" and "No linear map relates the features" in apart.verdict.reason


def test_too_few_classes_are_said_plainly(twins):
    heads, features, biases = twins
    few = nearid.compare_heads(heads[0][:4], heads[1][:4], *features, biases=[b[:4] for b in biases])
    assert "4 classes are too few: at least 6 are needed" in few.verdict.reason
    assert "the map in only 3 of 5 directions" in few.verdict.reason
    assert "The heads say nothing about the other 2 directions" in few.verdict.reason
    assert few.verdict.outcome == "agree" and few.compared.heads.matrix is None
    assert "in the directions that they read" in str(few) and "3 of 5, with" in str(few)
    assert few.to_dict()["r2_heads"] is None and few.to_dict()["diversity"][0]["condition"] is None
    one = nearid.compare_heads(heads[0], np.ones((20, 5)), *features)
    assert one.verdict.outcome == "undetermined" and "The heads determine no map" in str(one)


def test_ill_conditioned_heads_are_a_caution(twins):
    (g, h), (f, other), biases = twins
    squeezed = np.diag([1, 1, 1, 1, 1e-5])
    found = nearid.compare_heads(g @ squeezed, h, f @ np.linalg.inv(squeezed), other, biases=biases)
    assert any(a.code == "ill_conditioned" and "Head 1 has condition number" in a.message for a in found.alerts)
    pairs = nearid.compare_heads(g @ squeezed, h, f, other, pairs=True, draws=5)
    assert any("best of 5 choices of pairs" in a.message for a in pairs.alerts)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors", ".npz"])
def test_checkpoints_with_their_biases(twins, tmp_path, suffix):
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    from safetensors.numpy import save_file

    heads, features, biases = twins
    for i in range(2):
        entries = {"fc.weight": heads[i], "fc.bias": biases[i], "conv.weight": np.ones((3, 3))}
        path = tmp_path / f"model{i}{suffix}"
        if suffix == ".pt":
            torch.save({k: torch.tensor(v) for k, v in entries.items()}, path)
        elif suffix == ".npz":
            np.savez(path, **entries)
        else:
            save_file(entries, path)
        np.save(tmp_path / f"f{i}.npy", features[i])
    files = [f"{tmp_path}/model{i}{suffix}:fc.weight" for i in range(2)]
    rows = [tmp_path / "f0.npy", tmp_path / "f1.npy"]
    found = nearid.compare_heads(*files, *rows)
    assert found.biased and found.verdict.outcome == "agree" and found.compared.disagreement < 1e-9
    assert found.names == (f"model0{suffix}:fc.weight", f"model1{suffix}:fc.weight")
    named = [f"{tmp_path}/model{i}{suffix}:fc.bias" for i in range(2)]
    assert nearid.compare_heads(*files, *rows, biases=named).to_dict() == found.to_dict()
    assert not nearid.compare_heads(*files, *rows, biases=False).biased
    with pytest.raises(InputError, match=r"there is no vector .*:fc\.bus"):
        nearid.compare_heads(*files, *rows, biases=[named[0], named[1].replace("bias", "bus")])
    with pytest.raises(InputError, match=r"nothing named 'fc\.weights' .*Did you mean 'fc\.weight'"):
        nearid.compare_heads(files[0] + "s", files[1], *rows)


def test_modules(twins):
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    heads, features, biases = twins
    layers = [torch.nn.Linear(5, 20).double() for _ in range(2)]
    for layer, head, bias in zip(layers, heads, biases, strict=True):
        layer.load_state_dict({"weight": torch.tensor(head), "bias": torch.tensor(bias)})
    found = nearid.compare_heads(*layers, *features)
    assert found.biased and found.compared.r2_heads == pytest.approx(1)
    embedding = torch.nn.Embedding(20, 5)
    assert not nearid.compare_heads(embedding, embedding, features[0], features[0]).biased


def test_tied_embeddings_of_a_language_model(tmp_path, rng):
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    torch.manual_seed(0)
    tokens = rng.integers(0, 30, (40, 6))
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=30, n_positions=6, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path / "model")
    features = nearid.extract(model, tokens, layers="hidden_states.1", pool="last")["hidden_states.1"]
    # The last hidden state is what the head reads.
    with torch.no_grad():
        logits = model(torch.tensor(tokens)).logits[:, -1].numpy()
        np.testing.assert_allclose(features.read(0, 40) @ model.lm_head.weight.numpy().T, logits, atol=1e-5)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    other = model.lm_head.weight.detach().numpy() @ turn
    head = f"{tmp_path}/model/model.safetensors:transformer.wte.weight"
    found = nearid.compare_heads(head, other, features, features.read(0, 40) @ turn)
    np.testing.assert_allclose(found.compared.heads.matrix, turn, atol=1e-4)
    assert found.verdict.outcome == "agree" and not found.biased


def test_what_cannot_be_compared_is_told(twins):
    (g, h), (f, other), biases = twins
    with pytest.raises(InputError, match=r"\(5, 20\), classes by features, but features 1 has 5 .*give its transpose"):
        nearid.compare_heads(g.T, h.T, f, other)
    with pytest.raises(InputError, match=r"\(20, 5\), \(19, 5\)"):
        nearid.compare_heads(g, h[:-1], f, other)
    with pytest.raises(InputError, match="3 biases were given"):
        nearid.compare_heads(g, h, f, other, biases=[*biases, None])
    with pytest.raises(InputError, match="1 names were given"):
        nearid.compare_heads(g, h, f, other, names=["a"])
    with pytest.raises(InputError, match="a one-dimensional array of finite numbers is expected"):
        nearid.compare_heads(g, h, f, other, biases=[np.full(20, np.nan), None])


def test_a_fit_to_few_rows_does_not_outvote_the_heads():
    rng = np.random.default_rng(0)
    # One equation more than unknowns: the fit multiplies the noise (R2 below -2.6 in each of 30 draws).
    f, g, turn = rng.normal(size=(514, 256)), rng.normal(size=(400, 256)), np.linalg.qr(rng.normal(size=(256, 256)))[0]
    other = f @ turn + 0.2 * rng.normal(size=f.shape)
    found = nearid.compare_heads(g, g @ turn, f, other, ridge=0)
    assert found.compared.r2_fitted < 0 and found.compared.r2_heads > 0.9
    assert found.verdict.outcome == "agree" and "not linear" not in found.verdict.reason
    assert found.alerts[0].code == "few_rows" and "257 rows" in found.alerts[0].message
    assert found.compared.ridge == 0 and "plain least squares" in str(found)
    # By default a penalty keeps the noise out.
    chosen = nearid.compare_heads(g, g @ turn, f, other)
    assert 0.5 < chosen.compared.r2_fitted < chosen.compared.r2_heads and chosen.compared.ridge > 1
    assert chosen.to_dict()["ridge"] == chosen.compared.ridge and chosen.provenance["options"]["ridge"] == "auto"


def test_biases_of_one_side_and_those_beside_the_weights_of_the_other(twins, tmp_path):
    heads, features, biases = twins
    for i in range(2):
        np.savez(tmp_path / f"{i}.npz", **{"fc.weight": heads[i], "fc.bias": biases[i]})
    files = [f"{tmp_path}/{i}.npz:fc.weight" for i in range(2)]
    whole = nearid.compare_heads(*files, *features).to_dict()
    assert nearid.compare_heads(*files, *features, biases=(biases[0], True)).to_dict() == whole
    left_out = nearid.compare_heads(*files, *features, biases=(biases[0], None))
    assert left_out.compared.r2_heads < whole["r2_heads"]


def test_heads_of_checkpoints_as_training_scripts_save_them(twins, tmp_path):
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    heads, features, biases = twins
    for i in range(2):
        entries = {"module.fc.weight": torch.tensor(heads[i]), "module.fc.bias": torch.tensor(biases[i])}
        torch.save({"state_dict": {"module.conv.weight": torch.ones(3, 3), **entries}}, tmp_path / f"{i}.th")
    files = [f"{tmp_path}/{i}.th:fc.weight" for i in range(2)]
    found = nearid.compare_heads(*files, *features)
    assert found.biased and found.verdict.outcome == "agree"
    named = [f"{tmp_path}/{i}.th:fc.bias" for i in range(2)]
    assert nearid.compare_heads(*files, *features, biases=named).to_dict() == found.to_dict()


def test_names_of_classes_and_features_in_another_order_are_refused(twins):
    heads, features, _ = twins
    index, columns = [f"k{at}" for at in range(20)], [*"abcde"]
    first, second = (pd.DataFrame(head, index=index, columns=columns) for head in heads)
    with pytest.raises(InputError, match="the same classes, by their index, in another order"):
        nearid.compare_heads(first, second.iloc[::-1], *features)
    turned = pd.DataFrame(features[0], columns=columns)[columns[::-1]]
    with pytest.raises(InputError, match="head 1 and features 1 have the same columns in another order"):
        nearid.compare_heads(first, second, turned, features[1])


@pytest.mark.parametrize("which", [0, 1])
def test_a_head_with_one_vector_says_nothing(twins, which):
    heads, features, _ = twins
    given = [np.ones_like(head) if at == which else head for at, head in enumerate(heads)]
    found = nearid.compare_heads(*given, *features)
    assert found.verdict.outcome == "undetermined" and ("first", "second")[which] in found.verdict.reason


def test_heads_and_features_in_the_wrong_order_are_told(rng):
    heads, features = rng.normal(size=(2, 6, 4)), rng.normal(size=(2, 100, 4))
    with pytest.raises(InputError, match=r"6 rows of 4 features.*heads have 100 classes.*may be swapped"):
        nearid.compare_heads(*features, *heads)
    with pytest.raises(InputError, match="too few: give at least 10"):
        nearid.compare_heads(*heads, *heads)
