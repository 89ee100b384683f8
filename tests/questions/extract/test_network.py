"""transformers models, small and untrained: every hidden state, padding on either side, masks, loading."""

import copy
import json

import numpy as np
import pytest
import torch
from torch import nn

from nearid import InputError, extract
from nearid.questions.extract.network import Network

transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")

LENGTHS = (5, 2, 6, 3)
IMAGE = {"image_size": 16, "patch_size": 8, "num_attention_heads": 2, "intermediate_size": 12, "hidden_size": 8}


def gpt2(heads=2):
    config = transformers.GPT2Config(
        n_layer=2, n_embd=8, n_head=heads, vocab_size=20, n_positions=16, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2Model(config)


def neox():
    return transformers.GPTNeoXModel(
        transformers.GPTNeoXConfig(
            vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            max_position_embeddings=16, bos_token_id=0, eos_token_id=0,
        )
    )  # fmt: skip


def bert():
    return transformers.BertModel(
        transformers.BertConfig(
            vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            max_position_embeddings=16,
        )
    )  # fmt: skip


@pytest.fixture
def texts(rng):
    return [rng.integers(1, 20, length) for length in LENGTHS]


def padded(texts, side):
    tokens, mask = np.zeros((len(texts), 7), int), np.zeros((len(texts), 7), int)
    for row, text in enumerate(texts):
        at = slice(0, len(text)) if side == "right" else slice(7 - len(text), 7)
        tokens[row, at], mask[row, at] = text, 1
    return tokens, mask


@pytest.mark.parametrize("make", [gpt2, neox, bert])
def test_padding_on_either_side_changes_nothing(make, texts):
    model = make().eval()
    with torch.no_grad():
        alone = [model(torch.tensor(text)[None], output_hidden_states=True).hidden_states for text in texts]
    expected = {
        "mean": lambda state: state[0].mean(0),
        "cls": lambda state: state[0, 0],
        "last": lambda state: state[0, -1],
    }
    for side in ("right", "left"):
        tokens, mask = padded(texts, side)
        for pool, take in expected.items():
            found = extract(model, tokens, mask=mask, pool=pool, batch_size=3)
            assert list(found) == ["hidden_states.0", "hidden_states.1", "hidden_states.2"]
            for layer, rows in found.items():
                at = int(layer[-1])
                wanted = torch.stack([take(states[at]) for states in alone])
                np.testing.assert_allclose(rows.read(0, 4), wanted, rtol=1e-3, atol=1e-5)
        every = extract(model, {"input_ids": tokens, "attention_mask": mask}, pool="tokens", layers="hidden_states.2")
        rows = every["hidden_states.2"]
        np.testing.assert_allclose(rows.read(0, 16), torch.cat([s[2][0] for s in alone]), rtol=1e-3, atol=1e-5)
        assert rows.ids[4:7].tolist() == [4, 1 << 20, (1 << 20) + 1]
        # Tokens that come as vectors are moved with their padding, too.
        vectors = model.get_input_embeddings()(torch.tensor(tokens)).detach()
        given = extract(model, {"inputs_embeds": vectors, "attention_mask": mask}, layers="hidden_states.2")
        mean = torch.stack([states[2][0].mean(0) for states in alone])
        np.testing.assert_allclose(given["hidden_states.2"].read(0, 4), mean, rtol=1e-3, atol=1e-5)


def test_modules_of_a_transformers_model_by_name(texts):
    tokens, mask = padded(texts, "right")
    found = extract(gpt2(), tokens, mask=mask, layers="h.*,ln_f,hidden_states.2,output")
    assert list(found) == ["h.0", "h.1", "ln_f", "output", "hidden_states.2"]
    for same in ("hidden_states.2", "output"):
        np.testing.assert_allclose(found["ln_f"].read(0, 4), found[same].read(0, 4), rtol=1e-5)
    with pytest.raises(InputError, match=r"nothing named 'hidden_states.9'.*Did you mean 'hidden_states"):
        extract(gpt2(), tokens, layers="hidden_states.9")
    with pytest.raises(InputError, match="The mask of input 2 has no token"):
        extract(gpt2(), tokens, mask=mask * (np.arange(4) != 2)[:, None])


def test_ids_and_lengths_that_a_model_does_not_know_are_told(texts):
    tokens, _ = padded(texts, "right")
    with pytest.raises(InputError, match=r"at the layer wte, which got .* of 0 to 99: it has entries 0 to 19 only"):
        extract(gpt2(), np.where(tokens == tokens.max(), 99, tokens))
    with pytest.raises(InputError, match=r"at the layer wpe, which got .* of 0 to 27: it has entries 0 to 15 only"):
        extract(gpt2(), np.tile(tokens, 4))
    with pytest.raises(InputError, match="This model takes input_ids, of at most 16 tokens"):
        extract(bert(), np.tile(tokens, 4))
    vit = transformers.ViTModel(transformers.ViTConfig(num_hidden_layers=1, **IMAGE))
    with pytest.raises(InputError, match="This model takes pixel_values"):
        extract(vit, tokens)


def test_images(rng):
    pixels = rng.integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
    x = torch.tensor(pixels).permute(0, 3, 1, 2) / 255
    vit = transformers.ViTModel(transformers.ViTConfig(num_hidden_layers=2, **IMAGE)).eval()
    with torch.no_grad():
        states = vit(x, output_hidden_states=True).hidden_states
    for pool, wanted in (("cls", states[2][:, 0]), ("patches", states[2][:, 1:].mean(1))):
        found = extract(vit, pixels, pool=pool)
        assert len(found) == 3
        np.testing.assert_allclose(found["hidden_states.2"].read(0, 5), wanted, rtol=1e-4, atol=1e-5)
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4, 6], depths=[1, 1], layer_type="basic")
    maps = extract(transformers.ResNetModel(config), pixels)
    assert [rows.shape[1] for rows in maps.values()] == [4, 4, 6]


def test_masked_autoencoders_see_whole_images_in_order(rng):
    pixels = rng.integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
    config = transformers.ViTMAEConfig(
        num_hidden_layers=2, decoder_hidden_size=8, decoder_num_hidden_layers=1, decoder_num_attention_heads=2,
        decoder_intermediate_size=8, **IMAGE,
    )  # fmt: skip
    model = transformers.ViTMAEModel(config)
    one, other = (extract(model, pixels, pool="flatten")["hidden_states.2"] for _ in range(2))
    # The class token and all four patches, the same each time; the model is as it was.
    assert one.shape == (5, 5 * 8) and model.config.mask_ratio == 0.75
    np.testing.assert_array_equal(one.read(0, 5), other.read(0, 5))
    # Before the blocks: the class token, then the patches from left to right and down, each with its place.
    parts = model.embeddings
    x = torch.tensor(pixels).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        cut = x.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).reshape(5, 4, -1)
        kernel = parts.patch_embeddings.projection
        patches = cut @ kernel.weight.flatten(1).T + kernel.bias + parts.position_embeddings[:, 1:]
        first = (parts.cls_token + parts.position_embeddings[:, :1]).expand(5, -1, -1)
    states = extract(model, pixels, pool="flatten", layers="hidden_states.0")["hidden_states.0"]
    expected = torch.cat([first, patches], dim=1).flatten(1)
    np.testing.assert_allclose(states.read(0, 5), expected, rtol=1e-4, atol=1e-5)


def test_a_folder_of_a_model(tmp_path, texts):
    tokens, mask = padded(texts, "right")
    model = gpt2()
    model.save_pretrained(tmp_path / "model")
    found = extract(str(tmp_path / "model"), tokens, mask=mask)
    direct = extract(model, tokens, mask=mask)
    np.testing.assert_array_equal(found["hidden_states.1"].read(0, 4), direct["hidden_states.1"].read(0, 4))
    assert found.provenance["model"]["sha256"] == direct.provenance["model"]["sha256"]
    assert found.provenance["model"]["name"] == "model"
    # Weights that are missing would be drawn at random.
    (tmp_path / "model" / "config.json").write_text(json.dumps({**model.config.to_dict(), "n_layer": 3}))
    with pytest.raises(InputError, match=r"do not contain h\.2\."):
        extract(str(tmp_path / "model"), tokens)


def test_the_hash_knows_what_weights_do_not_tell():
    one, two = (gpt2(heads) for heads in (2, 4))
    two.load_state_dict(one.state_dict())
    assert Network(one, "").fingerprint() != Network(two, "").fingerprint()
    assert Network(one, "").fingerprint() == Network(copy.deepcopy(one), "").fingerprint()


def test_a_pooler_without_weights_is_left_out(tmp_path, texts, capfd):
    tokens, mask = padded(texts, "right")
    transformers.BertForMaskedLM(bert().config).save_pretrained(tmp_path / "model")
    name = str(tmp_path / "model")
    capfd.readouterr()
    one, two = (extract(name, tokens, mask=mask) for _ in range(2))
    assert capfd.readouterr().err == "" and "pooler, so nearid left it out" in one.alerts[0].message
    assert one.provenance["model"]["sha256"] == two.provenance["model"]["sha256"]
    for layer in ("output:pooler_output", "pooler"):
        with pytest.raises(InputError, match=r"no part 'pooler_output'|nothing named 'pooler'"):
            extract(name, tokens, mask=mask, layers=layer)
    # A pooler that has weights is as good as any layer.
    bert().save_pretrained(tmp_path / "whole")
    found = extract(str(tmp_path / "whole"), tokens, layers="output:pooler_output")
    assert found["output:pooler_output"].shape == (4, 8)


def test_code_in_a_folder_of_a_model_is_never_run(tmp_path, texts, payload):
    tokens, _ = padded(texts, "right")
    model = gpt2()
    model.config.save_pretrained(tmp_path / "model")
    torch.save({**model.state_dict(), "x": payload(tmp_path / "ran")}, tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot be loaded: its weights are a pickle") as pickled:
        extract(str(tmp_path / "model"), tokens)
    assert not (tmp_path / "ran").exists()
    # Nor is a module that comes with it imported.
    told = model.config.to_dict() | {"model_type": "mine", "auto_map": {"AutoModel": "evil.M", "AutoConfig": "evil.C"}}
    (tmp_path / "model" / "config.json").write_text(json.dumps(told))
    (tmp_path / "model" / "evil.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    with pytest.raises(InputError, match="cannot be loaded: it needs its own code") as coded:
        extract(str(tmp_path / "model"), tokens)
    assert not (tmp_path / "ran").exists()
    # Nobody is advised to switch these protections off, as the library does.
    for told in (pickled, coded):
        assert "trust_remote_code" not in str(told.value) and "weights_only" not in str(told.value)


def test_a_model_without_hidden_states_is_told(texts):
    tokens, _ = padded(texts, "right")

    class Silent(transformers.GPT2Model):
        def forward(self, *arguments, **options):
            return nn.functional.one_hot(options["input_ids"]).float()

    with pytest.raises(InputError, match="returned no hidden_states"):
        extract(Silent(gpt2().config), tokens)
