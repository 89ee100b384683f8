"""Looks at a model in training: right figures, nothing disturbed, trouble told."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from nearid import InputError, compare, extract
from nearid.callbacks.probe import Probe


def test_figures_are_those_of_compare(network, probe_inputs, tmp_path):
    other = extract(network(1), probe_inputs, layers="1", out=tmp_path / "run")
    model = network(2).train()
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    state = torch.get_rng_state()
    found = Probe(other, probe_inputs, layer="1").measure(model)
    expected = compare(extract(model, probe_inputs, layers="1")["1"], other["1"])
    assert list(found) == [f"{g}_{what}" for what in ("error", "r2") for g in ("permutation", "rigid", "linear")]
    for group in ("permutation", "rigid", "linear"):
        assert found[f"{group}_error"] == pytest.approx(expected.groups[group].epsilon.value)
        assert found[f"{group}_r2"] == pytest.approx(expected.groups[group].r2.value)
    for reference in (f"{tmp_path}/run:1", tmp_path / "run" / "1.npy", other["1"]):
        assert Probe(reference, probe_inputs, layer="1").measure(model) == found
    # Training goes on as if nobody had looked.
    assert model.training and torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(v, weights[k]) for k, v in model.state_dict().items())
    dataset = torch.utils.data.TensorDataset(torch.tensor(probe_inputs))
    assert Probe(other, dataset, layer="1").measure(model) == found and torch.equal(torch.get_rng_state(), state)


def test_the_same_features_are_near(network, probe_inputs):
    model = network(1)
    same = Probe(extract(model, probe_inputs, layers="1"), probe_inputs, layer="1").measure(model)
    assert max(same[f"{g}_error"] for g in ("permutation", "rigid", "linear")) < 1e-6
    whole = torch.nn.ModuleDict({"net": model})
    part = Probe(extract(model, probe_inputs), probe_inputs, layer="1", part="net").measure(whole)
    assert part == pytest.approx(same)


def test_frames_are_paired_by_their_index(network, probe_inputs):
    pd = pytest.importorskip("pandas")
    model = network(1)
    features = pd.DataFrame(extract(model, probe_inputs, layers="1")["1"].read(0, len(probe_inputs)))
    for reference in (features.sample(frac=1, random_state=1), features[:100]):
        assert Probe(reference, probe_inputs, layer="1").measure(model)["permutation_error"] < 1e-6
    dated = features.set_axis(pd.date_range("2020-01-01", periods=len(features)))
    with pytest.raises(InputError, match=r"No id of .* is an id of"):
        Probe(dated, probe_inputs, layer="1").measure(model)


def test_trouble_is_told(network, probe_inputs):
    reference = np.random.default_rng(0).normal(size=(120, 4))
    with pytest.raises(InputError, match=r"nothing named '7'"):
        Probe(reference, probe_inputs, layer="7").measure(network(1))
    with pytest.raises(InputError, match=r"The reference has nothing named '7'"):
        Probe(extract(network(1), probe_inputs), probe_inputs, layer="7")
    with pytest.raises(InputError, match="has no module 'body'"):
        Probe(reference, probe_inputs, layer="1", part="body").measure(network(1))
    with pytest.raises(InputError, match="Give arrays, a file or a loader"):
        Probe(reference, iter([probe_inputs]), layer="1")
    with pytest.raises(InputError, match=r"\* matches 4 layers: 0, 1, 2, 3"):
        Probe(reference, probe_inputs, layer="*").measure(network(1))
    with pytest.raises(InputError, match="120 rows and reference has 100"):
        Probe(reference[:100], probe_inputs, layer="1").measure(network(1))
    broken = network(1)
    broken[0].weight.data.fill_(float("nan"))
    probe = Probe(reference, probe_inputs, layer="1")
    with pytest.warns(UserWarning, match="nearid could not measure at this step: The layer 1 gave nan"):
        assert probe.try_measure(broken) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert probe.try_measure(network(1))


def test_blocks_are_those_of_compare(network, probe_inputs):
    blocks = np.repeat(np.arange(40), 3)
    reference = extract(network(1), probe_inputs, layers="1")["1"].read(0, 120)
    now = extract(network(2), probe_inputs, layers="1")["1"]

    def r2(probe):
        return probe.measure(network(2))["linear_r2"]

    held = {
        given: compare(now, reference, blocks=labels).groups["linear"].r2.value
        for given, labels in (("labels", blocks), ("none", "none"))
    }
    assert r2(Probe(reference, probe_inputs, layer="1", blocks=blocks)) == pytest.approx(held["labels"])
    assert r2(Probe(reference, probe_inputs, layer="1", blocks="none")) == pytest.approx(held["none"])
    assert held["labels"] != pytest.approx(held["none"])
    # With tokens, the inputs are the blocks.
    series = probe_inputs.reshape(24, 5, 6)
    tokens = extract(network(1), series, layers="1", pool="tokens")
    unasked = r2(Probe(tokens, series, layer="1", pool="tokens"))
    given = r2(Probe(tokens, series, layer="1", pool="tokens", blocks=np.repeat(np.arange(24), 5)))
    assert unasked == pytest.approx(given)
    with pytest.raises(InputError, match="one label for each of its 120 rows"):
        Probe(reference, probe_inputs, layer="1", blocks=blocks[1:]).measure(network(2))


def test_a_probe_of_pictures_is_that_of_their_pixels(tmp_path, rng):
    image = pytest.importorskip("PIL.Image")
    pixels = rng.integers(0, 256, (60, 6, 6, 3), dtype=np.uint8)
    for number, each in enumerate(pixels):
        image.fromarray(each).save(tmp_path / f"{number}.png")
    torch.manual_seed(0)
    one, two = (nn.Sequential(nn.Flatten(), nn.Linear(108, 4), nn.Tanh()) for _ in range(2))
    reference = extract(one, str(tmp_path), layers="2")
    found = Probe(reference, str(tmp_path), layer="2").measure(two)
    assert found == Probe(extract(one, pixels, layers="2"), pixels, layer="2").measure(two)


def test_a_probe_of_texts_is_paired_by_text():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = [f"w{k}" for k in range(20)]
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: k for k, w in enumerate(words)}, unk_token="w0"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="w0", unk_token="w0")
    config = transformers.GPT2Config(
        n_layer=1, n_head=1, n_embd=4, vocab_size=20, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(0)
    one, two = transformers.GPT2Model(config), transformers.GPT2Model(config)
    texts = [f"w{k % 20} w{k % 7} w{k % 3}"[: 5 + k % 5].strip() for k in range(60)]
    probe = Probe(
        extract(one, texts, layers="hidden_states.1", tokenizer=tokenizer),
        texts[::-1],
        layer="hidden_states.1",
        tokenizer=tokenizer,
        ids=np.arange(60)[::-1],
    )
    # Of the finished run itself, whatever the order of the texts.
    assert probe.measure(one)["permutation_error"] == pytest.approx(0, abs=1e-6)
    assert probe.measure(two)["permutation_error"] > 0.01
