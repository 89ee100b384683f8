"""Weights from files: formats, wrappers, prefixes and factories; and sentences for what cannot be loaded."""

import pickle
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from nearid.base.errors import InputError
from nearid.questions.extract.burgess import BurgessDecoder
from nearid.questions.extract.weights import latent_width, load_decoder, load_module, load_weights

FACTORY = """
import torch
from torch import nn
def decoder():
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 7))
def ready():
    return torch.sinh
def number():
    return 3
constant = 3
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "my_decoders.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield
    sys.modules.pop("my_decoders", None)


@pytest.fixture
def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 7))


@pytest.mark.parametrize("form", ["model.pt", "model.pth", "model.ckpt", "model.safetensors"])
def test_weights_of_each_format_through_a_factory(module, form):
    weights = {f"decoder.{name}": w for name, w in module.state_dict().items()} | {"encoder.weight": torch.ones(2)}
    save_file(weights, form) if form.endswith("safetensors") else torch.save(weights, form)
    loaded = load_decoder(form, factory="my_decoders:decoder", prefix="decoder.")
    z = torch.randn(4, 3)
    torch.testing.assert_close(loaded(z), module(z))
    assert latent_width(loaded) == 3


def test_wrappers_are_taken_off(module):
    torch.save({"state_dict": module.state_dict(), "epoch": 3}, "wrapped.pt")
    assert load_weights("wrapped.pt").keys() == module.state_dict().keys()
    load_decoder("wrapped.pt", factory="my_decoders:decoder")


@pytest.mark.parametrize("wrapper", ["", "module.", "_orig_mod."])
def test_a_module_of_weights_saved_under_a_wrapper_for_training(module, wrapper):
    torch.save({wrapper + name: w for name, w in module.state_dict().items()}, "wrapped.pt")
    z = torch.randn(4, 3)
    torch.testing.assert_close(load_module("wrapped.pt", factory="my_decoders:decoder")(z), module(z))
    assert isinstance(load_module("my_decoders:decoder"), nn.Sequential)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "good.pt"}, "Name what makes their module"),
        ({"model": "my_decoders:ready"}, "a torch module is expected"),
        ({"model": "my_decoders:decoder", "factory": "my_decoders:decoder"}, "a factory itself"),
    ],
)
def test_what_makes_no_module_is_told(module, arguments, message):
    torch.save(module.state_dict(), "good.pt")
    with pytest.raises(InputError, match=message):
        load_module(**arguments)


@pytest.mark.parametrize("prefix", ["", "decoder.", "module.decoder."])
def test_a_known_decoder_needs_no_factory(prefix):
    known = BurgessDecoder(4)
    weights = {prefix + name: w for name, w in known.state_dict().items()}
    torch.save(weights | {"module.encoder.weight": torch.ones(2)} if prefix else weights, "known.pt")
    z = torch.randn(2, 4)
    torch.testing.assert_close(load_decoder("known.pt")(z), known(z))


def test_a_factory_alone():
    assert load_decoder("my_decoders:ready") is torch.sinh
    assert latent_width(torch.sinh) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "nowhere.pt"}, "There is no file nowhere.pt"),
        ({"model": "my_decoders.py"}, "no file of weights"),
        ({"model": "my_decoders:number"}, "returned a int"),
        ({"model": "my_decoders:ready", "prefix": "a."}, "a factory itself"),
        ({"model": "my_decoders:nothing"}, "cannot be imported: .*nothing"),
        ({"model": "no_such_package:decoder"}, "cannot be imported"),
        ({"model": "good.pt", "factory": "leaves_at_once:decoder"}, "cannot be imported: SystemExit: 7"),
        ({"model": "good.pt", "factory": "sys:exit"}, "The factory sys:exit failed: SystemExit"),
        ({"model": "good.pt", "factory": "my_decoders"}, "package.module:function, not 'my_decoders'"),
        ({"model": "good.pt", "factory": "my_decoders:ready"}, "a torch module is expected"),
        ({"model": "good.pt", "factory": "my_decoders:constant"}, "a function that makes a module"),
        ({"model": "good.pt", "factory": "my_decoders:decoder", "prefix": "enc."}, "nothing named 'enc.'"),
        ({"model": "other.pt", "factory": "my_decoders:decoder"}, "do not fit the module: .*weight"),
        ({"model": "good.pt"}, "no known decoder"),
        ({"model": "tensor.pt"}, "holds no state dict"),
        ({"model": "code.pt"}, "never unpickles"),
        ({"model": "cut.safetensors"}, "truncated or no safetensors"),
    ],
)
def test_what_cannot_be_loaded_is_told(module, arguments, message):
    torch.save(module.state_dict(), "good.pt")
    torch.save({"x.weight": torch.ones(2)}, "other.pt")
    torch.save(torch.ones(3), "tensor.pt")
    with open("code.pt", "wb") as file:
        pickle.dump({"weight": print}, file)
    Path("leaves_at_once.py").write_text("import sys\nsys.exit(7)\n")
    with open("cut.safetensors", "wb") as file:
        file.write(b"\x00" * 20)
    with pytest.raises(InputError, match=message):
        load_decoder(**arguments)


def test_weights_that_do_not_fit_are_told_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_fits.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(2, 3)\n")
    torch.save({"a.weight": torch.zeros(3, 2), "a.bias": torch.zeros(3)}, "prefixed.pt")
    torch.save({"weight": torch.zeros(4, 2), "bias": torch.zeros(3)}, "wide.pt")
    told = "2 not in the module, such as a.weight, a.bias; 2 missing, such as weight, bias."
    with pytest.raises(InputError, match=f"do not fit the module: {told} .*--prefix a.\\)\\.$"):
        load_module("prefixed.pt", factory="my_fits:make")
    with pytest.raises(InputError, match=r"1 of another size, such as weight \(4, 2\), not \(3, 2\)\.$"):
        load_module("wide.pt", factory="my_fits:make")


def test_the_prefix_that_fits_is_named_whole(module):
    inner = {f"net.module.{name}": w for name, w in module.state_dict().items()}
    torch.save({f"_orig_mod.{name}": w for name, w in inner.items()} | {"_orig_mod.loss": torch.ones(2)}, "deep.pt")
    with pytest.raises(InputError, match=r"--prefix _orig_mod.net.module.\)\.$"):
        load_module("deep.pt", factory="my_decoders:decoder")
    with pytest.raises(InputError, match=r"--prefix _orig_mod.net.module.\)\.$"):
        load_module("deep.pt", factory="my_decoders:decoder", prefix="_orig_mod.")
    load_module("deep.pt", factory="my_decoders:decoder", prefix="_orig_mod.net.module.")
    torch.save({"a": torch.ones(1)}, "other.pt")
    with pytest.raises(InputError, match=r"missing, such as 0.weight, .*\. A prefix may be missing\.$"):
        load_module("other.pt", factory="my_decoders:decoder")


@pytest.mark.parametrize("name", ["akamaster_resnet20-12fca82f.th", "DanSun18_resnet20.th", "Chelcacs_resnet20.th"])
def test_real_weights_in_wrappers_of_any_name(real_data, name):
    weights = load_weights(real_data / "cifar10_resnets" / name)
    torch.save({"net": weights, "acc": 91.7, "epoch": 3}, "net.pt")
    torch.save({"run": {"best": {"network": weights}, "seed": 1}, "history": [{"loss": 0.1}]}, "nested.ckpt")
    assert len(weights) > 60
    for file in ("net.pt", "nested.ckpt"):
        found = load_weights(file)
        assert found.keys() == weights.keys()
        assert all(torch.equal(found[key], weights[key]) for key in weights)


def test_real_vae_in_a_wrapper(real_data):
    path = real_data / "mnist_vaes" / "VAE" / "model.pt"
    torch.save({"net": torch.load(path, weights_only=True), "acc": 1.0}, "wrapped.pt")
    z = torch.randn(2, 10)
    torch.testing.assert_close(load_decoder("wrapped.pt")(z), load_decoder(str(path))(z))
