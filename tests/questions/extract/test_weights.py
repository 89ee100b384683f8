import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from nearid.base.errors import InputError
from nearid.questions.extract.weights import BurgessDecoder, latent_width, load_decoder, load_module, load_weights

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
        ({"model": "good.pt"}, "Name the function that makes the module"),
        ({"model": "my_decoders:ready"}, "a torch module is expected"),
        ({"model": "my_decoders:decoder", "factory": "my_decoders:decoder"}, "already a factory"),
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
        ({"model": "my_decoders:number"}, "returned an int"),
        ({"model": "my_decoders:ready", "prefix": "a."}, "already a factory"),
        ({"model": "my_decoders:nothing"}, "cannot be imported: .*nothing"),
        ({"model": "no_such_package:decoder"}, "cannot be imported"),
        ({"model": "good.pt", "factory": "leaves_at_once:decoder"}, "cannot be imported: SystemExit: 7"),
        ({"model": "good.pt", "factory": "sys:exit"}, "The factory sys:exit failed: SystemExit"),
        ({"model": "good.pt", "factory": "my_decoders"}, "'my_decoders' must have the form package.module:function"),
        ({"model": "good.pt", "factory": "my_decoders:ready"}, "a torch module is expected"),
        ({"model": "good.pt", "factory": "my_decoders:constant"}, "a function that makes a module"),
        ({"model": "good.pt", "factory": "my_decoders:decoder", "prefix": "enc."}, "nothing named 'enc.'"),
        ({"model": "other.pt", "factory": "my_decoders:decoder"}, "do not fit the module: .*weight"),
        ({"model": "good.pt"}, "do not belong to a known decoder"),
        ({"model": "tensor.pt"}, "contains no state dict"),
        ({"model": "code.pt"}, "never unpickles"),
        ({"model": "cut.safetensors"}, "damaged safetensors header"),
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


def weights():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 7)).state_dict()


def trained():
    """A state dict, and what an optimiser keeps beside it."""
    module = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 7))
    optimiser = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return module.state_dict(), optimiser.state_dict()


def test_whatever_is_around_the_state_dict_is_passed_over():
    state, optimiser = trained()
    by_name = {name: {"exp_avg": torch.ones(2), "step": torch.ones(())} for name in state}
    for saved in (
        {"net": state, "acc": 0.9},
        {"a": {"b": [1, {"c": state}]}, "optimizer": optimiser, "rng": torch.ones(3)},
        {"net": state, "optimizer": {"state": by_name}},
        {"net": state, "best": {"epoch=1.ckpt": torch.tensor(0.5)}},
        {"net": {"weight": torch.ones(2, 2)}, "best": {"epoch=1.ckpt": torch.tensor(0.5)}},
    ):
        torch.save(saved, "x.pt")
        expected = saved.get("net", state)
        found = load_weights("x.pt")
        assert {name: w.tolist() for name, w in found.items()} == {name: w.tolist() for name, w in expected.items()}


def test_the_prefix_works_on_what_was_found():
    inside = {f"model.{name}": w for name, w in weights().items()} | {"loss.weight": torch.ones(2)}
    torch.save({"net": inside, "acc": 0.9}, "x.ckpt")
    assert load_weights("x.ckpt", "model.").keys() == weights().keys()
    assert load_weights("x.ckpt", "net.model.").keys() == weights().keys()
    assert load_weights("x.ckpt", "net.").keys() == inside.keys()
    with pytest.raises(InputError, match=r"x.ckpt has nothing named 'decoder.' \(given as prefix\)"):
        load_weights("x.ckpt", "decoder.")


def test_several_state_dicts_are_listed_and_a_prefix_chooses():
    state = weights()
    shadow = {f"module.{name}": w + 1 for name, w in state.items()}
    torch.save({"model": state, "ema": shadow}, "x.pt")
    listed = (
        r"x.pt contains 2 state dicts: 'model' \(4 tensors: 0.weight \(5, 3\), 0.bias \(5,\), ...\), "
        r"'ema' \(4 tensors: module.0.weight \(5, 3\), module.0.bias \(5,\), ...\)\. "
        r"Choose one with prefix='model.' \(on the command line --prefix model.\)\.$"
    )
    for prefix in (None, "0."):
        with pytest.raises(InputError, match=listed):
            load_weights("x.pt", prefix)
    assert torch.equal(load_weights("x.pt", "model.")["0.bias"], state["0.bias"])
    assert torch.equal(load_weights("x.pt", "ema.module.")["0.bias"], state["0.bias"] + 1)
    assert torch.equal(load_weights("x.pt", "model.0.")["bias"], state["0.bias"])


@pytest.mark.parametrize(
    ("saved", "contents"),
    [
        ({"x": torch.ones(3, 2), "epoch": 3}, r"It holds 'x' \(3, 2\), 'epoch' int\."),
        ({"args": {"lr": 0.1}, "who": ["a", "b"]}, r"It holds 'args.lr' float, 'who' list\."),
        (torch.ones(3), r"It is one tensor of shape \(3,\)\."),
        ({}, r"It is empty\."),
        (3, r"It is of type int\."),
    ],
)
def test_what_is_there_instead_of_a_state_dict_is_listed(saved, contents):
    torch.save(saved, "x.pt")
    with pytest.raises(InputError, match=rf"x.pt contains no state dict .* {contents} Save one with"):
        load_weights("x.pt")


def test_lists_of_what_is_there_are_bounded():
    torch.save({"a" * 1_000 + str(i): i for i in range(300)}, "none.pt")
    torch.save({f"{i}" * 1_000: {"x" * 1_000 + ".y": torch.ones(2)} for i in range(100)}, "many.pt")
    for file in ("none.pt", "many.pt"):
        with pytest.raises(InputError) as caught:
            load_weights(file)
        assert len(str(caught.value)) < 6_000


@pytest.mark.parametrize(("latents", "channels", "size"), [(10, 1, 32), (3, 3, 64)])
def test_it_makes_images_and_is_recognised_by_its_weights(latents, channels, size):
    decoder = BurgessDecoder(latents, channels, size)
    out = decoder(torch.randn(2, latents))
    assert out.shape == (2, channels, size, size) and out.min() > 0 and out.max() < 1
    again = BurgessDecoder.of(decoder.state_dict())
    again.load_state_dict(decoder.state_dict())
    z = torch.randn(2, latents)
    torch.testing.assert_close(again(z), decoder(z))


def test_other_weights_are_not_taken_for_it():
    weights = BurgessDecoder(4).state_dict()
    assert BurgessDecoder.of({}) is None
    assert BurgessDecoder.of({**weights, "more.weight": torch.ones(2)}) is None
    assert BurgessDecoder.of({**weights, "lin2.weight": torch.ones(2, 2)}) is None
    assert BurgessDecoder.of({**weights, "lin1.weight": torch.ones(())}) is None
    assert BurgessDecoder.of({**weights, "convT3.weight": torch.ones(3)}) is None


def test_real_weights_draw_strokes_on_a_black_ground(real_data):
    decoder = load_decoder(str(real_data / "mnist_vaes" / "VAE" / "model.pt"))
    with torch.no_grad():
        images = decoder(torch.from_numpy(np.random.default_rng(0).standard_normal((50, 10)).astype(np.float32)))
    # 32 x 32 digits: an empty margin, and ink in the middle of nearly all.
    assert images[:, :, :2].max() < 0.2 and images[:, :, :, :2].max() < 0.5
    assert (images[:, 0, 8:24, 8:24].amax(dim=(1, 2)) > 0.7).float().mean() > 0.9


def test_weights_are_named_before_buffers_and_no_prefix_is_looked_for_in_vain(tmp_path, monkeypatch):
    """A file of a smaller network, with and without a wrapper's prefix."""
    monkeypatch.chdir(tmp_path)
    Path("my_norms.py").write_text(
        "from torch import nn\n"
        "def make(n=2):\n"
        "    return nn.Sequential(*(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3)) for _ in range(n)))\n"
        "def one():\n"
        "    return make(1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from my_norms import make, one

    # Files of before have no counts of batches.
    small = {name: w for name, w in one().state_dict().items() if not name.endswith("num_batches_tracked")}
    torch.save(small, "small.pt")
    torch.save({f"module.{name}": w for name, w in small.items()}, "wrapped.pt")
    for file in ("small.pt", "wrapped.pt"):
        load_module(file, factory="my_norms:one")
        with pytest.raises(InputError) as told:
            load_module(file, factory="my_norms:make")
        assert str(told.value).endswith("6 missing, such as 1.0.weight, 1.0.bias, 1.1.weight.")
    torch.save(make().state_dict(), "large.pt")
    with pytest.raises(InputError, match=r"6 not in the module, such as 1.0.weight, 1.0.bias, 1.1.weight\.$"):
        load_module("large.pt", factory="my_norms:one")
