"""extract(): every layer against a plain forward pass; nothing of the model is changed; outputs open as rows."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import nearid
from nearid import InputError, extract
from nearid.arrays import open_rows
from nearid.questions.extract.network import Network

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)


def plain(net, pixels):
    """What the layers give, taken by hand in evaluation mode."""
    x = (torch.tensor(pixels).permute(0, 3, 1, 2).float() / 255 - torch.tensor(MEAN)[:, None, None]) / torch.tensor(
        STD
    )[:, None, None]
    net.eval()
    found = {}
    with torch.no_grad():
        found["conv"] = net.conv(x)
        found["norm"] = net.norm(found["conv"])
        found["act"] = found["norm"].relu()
        found["stage.0"] = net.stage[0](found["act"])
        found["stage.1"] = net.stage[1](found["stage.0"])
        found["act#2"] = found["stage.1"].relu()
        found["head"] = net.head(found["act#2"].mean((2, 3)))
        found["act#3"] = found["head"].relu()
    net.train()
    return found


@pytest.mark.parametrize("form", ["npy", "zarr", "safetensors", "parquet", None])
def test_every_layer_as_a_plain_forward_pass_has_it(net, pixels, tmp_path, form):
    net.train()
    net.stage.eval()
    options = {"out": tmp_path / "out", "format": form} if form else {}
    found = extract(net, pixels, mean=MEAN, std=STD, batch_size=10, **options)
    assert net.training and not net.stage[0].training and not net.conv._forward_hooks
    expected = plain(net, pixels)
    # In the order of the calls; a module that is called again is a layer of its own, one that is not called is none.
    assert list(found) == list(expected)
    for layer, x in expected.items():
        rows = x.mean((2, 3)) if x.ndim == 4 else x
        np.testing.assert_allclose(found[layer].read(0, 37), rows.numpy(), rtol=1e-4, atol=1e-5)
    assert found["head"].ids.tolist() == list(range(37))
    assert found.provenance["data"]["inputs"] == found.provenance["rows"] == 37
    if form:
        assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
        again = nearid.Extraction.open(tmp_path / "out")
        np.testing.assert_array_equal(again["head"].read(3, 9), found["head"].read(3, 9))
        told = json.loads((tmp_path / "out" / "extraction.json").read_text())
        assert told["layers"]["head"] == {"file": f"head.{form}", "shape": [37, 7], "dtype": "float32"}
        assert len(told["model"]["sha256"]) == len(told["data"]["sha256"]) == 64
        assert told["options"]["pool"] == "mean" and told["versions"]["torch"] == torch.__version__


def test_layers_by_name_pattern_and_part(net, pixels):
    assert list(extract(net, pixels, layers="stage.*,output")) == ["stage.0", "stage.1", "output"]
    assert list(extract(net, pixels, layers=["**.0", "norm"])) == ["norm", "stage.0"]

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x):
            return {"states": self.lstm(x)[0], "sum": x.sum((1, 2))}

    model, x = Recurrent(), np.random.default_rng(0).normal(size=(9, 5, 3)).astype(np.float32)
    found = extract(model, x, layers=["lstm", "lstm:0", "output:sum"], pool="last")
    with torch.no_grad():
        states, _ = model.lstm(torch.tensor(x))
    np.testing.assert_allclose(found["lstm"].read(0, 9), states[:, -1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["output:sum"].read(0, 9)[:, 0], x.sum((1, 2)), rtol=1e-4)


def test_models_that_view_their_maps_as_rows(pixels):
    class Viewing(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = nn.Conv2d(3, 2, 3), nn.Linear(72, 4)

        def forward(self, x):
            return self.head(self.conv(x).view(len(x), -1))

    model = Viewing()
    found = extract(model, pixels)["head"].read(0, 37)
    with torch.no_grad():
        expected = model(torch.tensor(pixels).permute(0, 3, 1, 2).float().contiguous() / 255)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_unpooled_and_in_other_precision(net, pixels, tmp_path):
    found = extract(net, pixels, layers="conv", pool="flatten", dtype="float16", out=tmp_path / "out")
    assert found["conv"].shape == (37, 4 * 8 * 8)
    assert np.load(tmp_path / "out" / "conv.npy").dtype == np.float16


def test_rows_pair_up_by_id_across_files_and_folders(net, pixels, tmp_path):
    ids = np.array([f"img{i}" for i in range(37)])
    extract(net, pixels, layers="head", ids=ids, out=tmp_path / "a")
    extract(net, pixels[::-1], layers="head", ids=ids[::-1], out=tmp_path / "b", format="zarr")
    for one, other in ((tmp_path / "a", tmp_path / "b"), (tmp_path / "a" / "head.npy", tmp_path / "b" / "head.zarr")):
        found = nearid.compare(one, other)
        assert found.groups["permutation"].r2.value > 0.999
    # By position they would not agree.
    x, y = (open_rows(tmp_path / p).read(0, 37) for p in ("a", "b"))
    assert nearid.compare(x, y).groups["linear"].r2.value < 0.9


def test_weights_through_a_factory(net, pixels, tmp_path, monkeypatch):
    from safetensors.torch import save_file

    (tmp_path / "my_nets.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(192, 3)\n")
    monkeypatch.chdir(tmp_path)
    linear = nn.Linear(192, 3)
    torch.save({"state_dict": {f"module.{k}": v for k, v in linear.state_dict().items()}}, "w.pt")
    save_file(linear.state_dict(), "w.safetensors")
    x = pixels.reshape(37, -1)
    with torch.no_grad():
        expected = linear(torch.tensor(x).float() / 255)
    for weights in ("w.pt", "w.safetensors"):
        found = extract(weights, x, scale=255, factory="my_nets:make")
        assert list(found) == ["output"]
        np.testing.assert_allclose(found["output"].read(0, 37), expected, rtol=1e-4, atol=1e-5)


def test_tokens_of_a_plain_module_and_a_mask(rng):
    tokens, mask = rng.integers(0, 9, (6, 5)), np.tril(np.ones((6, 5), int))
    model = nn.Sequential(nn.Embedding(9, 4))
    found = extract(model, tokens, mask=mask, layers="0")
    weights = model[0].weight.detach().numpy()
    expected = [weights[t[m > 0]].mean(0) for t, m in zip(tokens, mask, strict=True)]
    np.testing.assert_allclose(found["0"].read(0, 6), expected, rtol=1e-5)
    every = extract(model, tokens, mask=mask, layers="0", pool="tokens", ids=range(6))["0"]
    np.testing.assert_array_equal(every.read(0, int(mask.sum())), weights[tokens[mask > 0]])
    assert every.ids[:3].tolist() == [0, 1 << 20, (1 << 20) + 1]


class Awkward(nn.Module):
    """A layer that is called twice, one that is known by two names, and outputs in a tuple and in a dict."""

    def __init__(self):
        super().__init__()
        self.twice, self.lstm = nn.Linear(4, 4), nn.LSTM(4, 3, batch_first=True)
        self.alias = self.twice
        self.named = Named()

    def forward(self, x):
        states, _ = self.lstm(torch.tanh(self.twice(torch.tanh(self.twice(x)))))
        return self.named(states)


class Named(nn.Module):
    def forward(self, x):
        return {"counts": torch.ones(len(x), dtype=torch.bool), "scores": x.sum(2)}


def test_layers_called_twice_tied_modules_and_outputs_that_hold_several(rng):
    model, x = Awkward(), torch.tensor(rng.normal(size=(5, 6, 4)), dtype=torch.float32)
    found = extract(model, x, layers="*", batch_size=2)  # the last batch is of one input
    with torch.no_grad():
        first = model.twice(x)
        second = model.twice(torch.tanh(first))
        states = model.lstm(torch.tanh(second))[0]
    expected = {"twice": first, "twice#2": second, "lstm": states, "named": states.sum(2)[:, None, :]}
    assert list(found) == ["twice", "twice#2", "lstm", "named"]
    for layer, wanted in expected.items():
        np.testing.assert_allclose(found[layer].read(0, 5), wanted.mean(1), rtol=1e-4, atol=1e-6)


def test_whatever_a_model_raises_is_told(rng):
    class Asks(nn.Module):
        def forward(self, x):
            assert x.shape[1] == 3, "three columns"
            return x

    class Nothing(nn.Module):
        def forward(self, x):
            return x[:, :0]

    with pytest.raises(InputError, match=r"cannot take inputs of shape \(3, 2\): .*three columns"):
        extract(Asks(), rng.normal(size=(4, 2)))
    with pytest.raises(InputError, match=r"The layer 0 gave shape \(3, 0\), which contains no numbers"):
        extract(nn.Sequential(Nothing(), nn.Linear(2, 2)), rng.normal(size=(4, 2)))


def test_mixed_precision_is_for_other_devices_than_the_cpu(net, pixels):
    found = extract(net, pixels, mixed="float16", device="cpu")
    assert "full precision" in found.alerts[0].message and found.provenance["options"]["precision"] == "float32"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": "stage.7"}, r"nothing named 'stage.7' .*Did you mean 'stage.1' or 'stage.0'"),
        ({"layers": "sta*.x*"}, r"nothing named 'sta\*.x\*' .*(Did you mean|Available:).*'stage"),
        ({"layers": "spare"}, "its forward pass does not call it"),
        ({"layers": "spa*"}, "calls none of the chosen layers"),
        ({"layers": "head:1"}, "has no part '1'"),
        ({"pool": "cls"}, r"The layer conv gives shape \(3, 4, 8, 8\), which has no tokens"),
        ({"pool": "meen"}, "pool is 'meen', but 'mean' or 'cls'"),
        ({"format": "csv"}, "no format named 'csv'"),
        ({"dtype": "int8"}, "dtype is 'int8', but 'float32' or"),
        ({"mixed": "int8"}, "mixed is 'int8', but"),
        ({"batch_size": 0}, "batch_size is 0, but a whole number of at least 1"),
        ({"scale": 0.0}, "scale is 0.0, but a number above 0"),
        ({"channels": "middle"}, "channels is 'middle', but 'first' or 'last'"),
        ({"device": "nowhere"}, "is not available"),
        ({"factory": "a:b"}, "for a model that nearid loads"),
        ({"mask": np.ones((37, 8, 8))}, r"The mask has shape"),
    ],
)
def test_what_cannot_be_done_is_told_and_leaves_nothing(net, pixels, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        extract(net, pixels, out=tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []
    assert not net.conv._forward_hooks and not net.conv._forward_pre_hooks


def test_wrong_shapes_name_the_layer(net, rng, tmp_path):
    with pytest.raises(
        InputError, match=r"cannot take inputs of shape \(3, 5, 8, 8\): it stopped at the layer conv, which got \(3, 5,"
    ):
        extract(net, rng.normal(size=(5, 5, 8, 8)), out=tmp_path / "out")
    model = nn.Sequential(nn.Flatten(), nn.Linear(10, 3))
    with pytest.raises(InputError, match=r"at the layer 1, which got \(3, 12\): .*shapes cannot be multiplied"):
        extract(model, rng.normal(size=(5, 12)))
    ragged = [rng.normal(size=(4, 3, 8, 8)), rng.normal(size=(4, 3, 9, 9))]
    with pytest.raises(InputError, match=r"layer conv gave 324 columns for the inputs from 4 on, but 256"):
        extract(net, ragged, layers="conv", pool="flatten", out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_none_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    x = np.zeros((4, 2))
    for model, message in (
        (3, "an int was given"),
        ("notes.txt", "not a file of weights"),
        ("nowhere.pt", "There is no file nowhere.pt"),
        ("./nowhere", "There is no file or folder"),
        ("empty", "it has no config.json"),
    ):
        with pytest.raises(InputError, match=message):
            extract(model, x)


class Shifted(nn.Module):
    """A convolution with an argument beside the images."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images, shift=None):
        return self.conv(images) + (0 if shift is None else shift[:, None, None, None])


def test_inputs_by_name_are_preprocessed_like_a_single_one(pixels):
    model, options = Shifted(), {"mean": MEAN, "std": STD, "layers": "output"}
    single = extract(model, pixels, **options)["output"].read(0, 37)
    named = extract(model, {"images": pixels}, **options)["output"].read(0, 37)
    np.testing.assert_array_equal(named, single)
    shift = np.ones(37, np.float32)
    beside = extract(model, {"shift": shift, "images": pixels}, **options)["output"].read(0, 37)
    np.testing.assert_allclose(beside, single + 1, rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="nearid cannot see which of a, b scale, mean, std and channels are for"):
        extract(model, {"a": pixels, "b": pixels}, mean=MEAN)


def test_floats_with_channels_last_are_told(net, pixels):
    with pytest.raises(InputError, match="give channels='last'"):
        extract(net, pixels / 255)
    assert extract(net, pixels / 255, channels="last", layers="head")["head"].shape == (37, 7)


@pytest.mark.parametrize("size", [2, 3, 9])
def test_layers_whose_first_axis_is_not_that_of_the_inputs(rng, size):
    """The last states of a recurrent network come as (its layers, inputs, width), whatever the size of the batches."""
    x = rng.normal(size=(9, 5, 3)).astype(np.float32)
    for depth in (1, 2, 3):
        model = nn.Sequential(nn.LSTM(3, 4, depth, batch_first=True))
        with pytest.raises(InputError, match="first axis must have one entry per input"):
            extract(model, x, layers="0:1.0", batch_size=size)
        turned = extract(model, x, layers="0:1.0", batch_size=size, pool=lambda s, mask: s.transpose(0, 1).flatten(1))
        with torch.no_grad():
            states = model[0](torch.tensor(x))[1][0]
        expected = states.transpose(0, 1).flatten(1)
        np.testing.assert_allclose(turned["0:1.0"].read(0, 9), expected, rtol=1e-4, atol=1e-5)


def test_channels_of_sequences_come_first_until_something_turns_them(rng):
    class Turning(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.act, self.block = nn.Conv1d(2, 5, 1), nn.ReLU(), Residual()
            self.turn, self.out = Turn(), nn.Linear(5, 7)
            self.act2 = nn.ReLU()

        def forward(self, x):
            return self.act2(self.out(self.turn(self.block(self.act(self.conv(x))))))

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(5, 5, 3, padding=1)

        def forward(self, x):
            return x + self.conv(x)

    class Turn(nn.Module):
        def forward(self, x):
            return x.transpose(1, 2)

    x = rng.normal(size=(10, 2, 11)).astype(np.float32)
    model = Turning()
    # Positions are averaged, be they last or first; alone or with others.
    expected = {"conv": 5, "act": 5, "block": 5, "turn": 5, "out": 7, "act2": 7}
    assert {layer: rows.shape[1] for layer, rows in extract(model, x).items()} == expected
    assert extract(model, x, layers="act")["act"].shape == (10, 5)
    with torch.no_grad():
        wanted = model.conv(torch.tensor(x)).relu().mean(2)
    np.testing.assert_allclose(extract(model, x)["act"].read(0, 10), wanted, rtol=1e-4, atol=1e-6)


def test_rows_of_different_inputs_are_told(net, pixels, tmp_path):
    """By number they pair up all the same."""
    extract(net, pixels, layers="head", out=tmp_path / "a")
    extract(net, pixels[::-1], layers="head", out=tmp_path / "b")
    held = extract(net, pixels, layers="head")["head"]
    for one, other in ((tmp_path / "a", tmp_path / "b"), (held, tmp_path / "b" / "head.npy")):
        told = [a.message for a in nearid.compare(one, other, permutations=1).alerts]
        assert any("The hashes of the inputs of" in message for message in told)
    told = nearid.compare_layers(tmp_path / "a", tmp_path / "b").alerts
    assert [a.code for a in told] == ["pairing"] and "The hashes of the inputs of a and b differ" in told[0].message
    assert nearid.compare_layers(tmp_path / "a", {"head": held}).alerts == []


def test_inputs_that_were_preprocessed_differently_are_told(net, pixels, tmp_path):
    extract(net, pixels, layers="head", out=tmp_path / "a", mean=0.5, std=[0.25])
    extract(net, pixels, layers="head", out=tmp_path / "b")
    held = {std: extract(net, pixels, layers="head", mean=0.5, std=std)["head"] for std in (0.25, 0.5)}
    a, b = tmp_path / "a", tmp_path / "b"
    expected = {"mean [0.5] and None, std [0.25] and None": [(a, b), (a, b / "head.npy"), (held[0.25], b)]}
    expected |= {"std [0.25] and [0.5]": [(a, held[0.5])]}
    for told, pairs in expected.items():
        for one, other in pairs:
            notes = [alert.message for alert in nearid.compare(one, other, permutations=1).alerts]
            assert any(f"were preprocessed differently: {told}." in note for note in notes)
    (alert,) = nearid.compare_layers(a, b).alerts
    assert alert.code == "pairing" and "The inputs of a and b were preprocessed differently" in alert.message
    same = extract(net, pixels, layers="head", mean=0.5, std=0.25, scale=255)
    assert nearid.compare_layers(a, {"head": same["head"]}).alerts == []


def test_mixed_precision_rounds_the_products_and_no_more(net, pixels, monkeypatch):
    """On the processor, where it is not offered, as there is no other device here."""
    full = extract(net, pixels)
    monkeypatch.setattr("nearid.questions.extract.forward.mixed_precision", lambda name, device: (torch.float16, ()))
    found = extract(net, pixels, mixed="float16")
    assert found.provenance["options"]["precision"] == "float16" and list(found) == list(full)
    for layer, rows in found.items():
        assert rows.dtype == np.float32
        np.testing.assert_allclose(rows.read(0, 37), full[layer].read(0, 37), rtol=2e-2, atol=5e-3)
    assert not np.array_equal(found["conv"].read(0, 37), full["conv"].read(0, 37))


def test_a_module_runs_where_it_is_and_a_loaded_model_on_a_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setattr("nearid.questions.extract.network.torch_device", lambda name: name)
    assert Network(torch.nn.Linear(1, 1), "mine").place() == torch.device("cpu")
    assert Network(torch.nn.Linear(1, 1), "net.pt", loaded=True).place() == "auto"
    assert Network(torch.nn.Linear(1, 1), "mine").place("cuda") == "cuda"
