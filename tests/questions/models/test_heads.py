"""The heads of two models: found, what they read extracted with the layers, and the map that they imply."""

import numpy as np
import pytest
import torch

import nearid


def quick(*given, **options):
    return nearid.compare_models(*given, permutations=2, **options)


@pytest.fixture
def turned(network):
    """A network and another one with the same logits, whose features are turned by a matrix."""
    one, two = network(0), network(0)
    matrix = torch.randn(4, 4, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        two[2].weight.copy_(matrix @ one[2].weight)
        two[2].bias.copy_(matrix @ one[2].bias)
        two[3].weight.copy_(one[3].weight @ torch.linalg.inv(matrix))
    return one, two


@pytest.mark.parametrize("cache", [True, False])
def test_heads_of_equal_logits_tell_the_map(turned, inputs, cache):
    one, two = turned
    for _ in range(2):
        comparison = quick(one, two, inputs, cache=cache)
        assert comparison.heads.verdict.outcome == "agree" and comparison.heads.biased
        assert comparison.heads.explained["map from heads"].value == pytest.approx(1, abs=1e-4)
        # What only the heads read is no layer of its own.
        assert comparison.layers.layers[0] == ("0", "1", "2", "3")
    assert "The heads predict the map" in comparison.view.facts["Heads"]
    assert comparison.view.parts[-1].subject.startswith("Heads: ")


def test_it_is_what_the_heads_alone_give(network, inputs):
    one, two = network(0), network(1)
    comparison = quick(one, two, inputs)
    x, y = (nearid.extract(model, inputs, layers="3:input") for model in (one, two))
    direct = nearid.compare_heads(one[3], two[3], x["3:input"], y["3:input"])
    for name, value in direct.explained.items():
        assert comparison.heads.explained[name].value == pytest.approx(value.value, abs=1e-6)


def test_heads_that_cannot_be_compared_are_told(network, inputs):
    comparison = quick(network(0), network(1, classes=9), inputs)
    assert comparison.heads is None
    assert "nearid could not compare the heads" in str(
        [a.message for a in comparison.alerts if a.code == "heads_not_compared"]
    )
    few = quick(network(0), network(1), inputs[:9], folds=2, blocks="none")
    assert "too few" in str([a.message for a in few.alerts if a.code == "heads_not_compared"])


def test_no_head_is_looked_for_where_none_is_wanted_or_known(network, inputs):
    assert quick(network(0), network(1), inputs, heads=False).heads is None
    assert quick(network(0), network(1), inputs, layers="0,1").heads is None
    assert quick(network(0)[:2], network(1)[:2], inputs).heads is None


@pytest.fixture
def language(tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 50, "n_positions": 8}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = transformers.GPT2LMHeadModel(config).eval()
        model.save_pretrained(tmp_path / f"gpt{seed}")
        models.append(model)
    return models, np.random.default_rng(0).integers(0, 50, (60, 8)), tmp_path


@pytest.mark.parametrize("from_folder", [True, False])
def test_the_head_of_a_language_model_reads_its_last_state(language, from_folder):
    models, tokens, folder = language
    given = [str(folder / "gpt0"), str(folder / "gpt1")] if from_folder else models
    comparison = quick(*given, tokens, pool="last")
    with torch.no_grad():
        ids = torch.from_numpy(tokens)
        features = [model.transformer(ids).last_hidden_state[:, -1].numpy() for model in models]
    direct = nearid.compare_heads(*(model.lm_head for model in models), *features)
    for name, value in direct.explained.items():
        assert comparison.heads.explained[name].value == pytest.approx(value.value, abs=1e-4)
    assert comparison.layers.layers[0] == ("hidden_states.0", "hidden_states.1", "hidden_states.2")


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("layers", ["lm_head:input", "lm_*:input,hidden_states.1"])
def test_what_the_head_reads_is_a_layer_once_where_it_is_asked_for(language, layers, cache):
    models, tokens, _ = language
    comparison = quick(*models, tokens, pool="last", layers=layers, cache=cache)
    assert set(comparison.layers.layers[0]) == {layer.replace("_*", "_head") for layer in layers.split(",")}
    assert comparison.heads is not None


def test_the_body_of_a_language_model_has_no_head(language):
    models, tokens, folder = language
    for seed, model in enumerate(models):
        model.transformer.save_pretrained(folder / f"body{seed}")
    assert quick(str(folder / "body0"), str(folder / "body1"), tokens).heads is None
