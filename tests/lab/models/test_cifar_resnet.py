"""The ResNets for CIFAR-10: shapes, shortcuts, wrapped weights, and real ones that classify real images."""

import pytest
import torch

from nearid.base.errors import InputError
from nearid.lab.data.cifar10_resnets import CIFAR10_RESNETS, weights_file
from nearid.lab.data.load import load
from nearid.lab.data.registry import dataset, find
from nearid.lab.models.cifar_resnet import MEAN, STD, Block, CifarResNet, load_cifar_resnet


@pytest.mark.parametrize(("depth", "parameters"), [(20, 269_722), (32, 464_154), (44, 658_586), (56, 853_018)])
def test_it_has_as_many_weights_as_published(depth, parameters):
    # 0.27, 0.46, 0.66 and 0.85 million in He et al. 2016, Table 6.
    assert sum(p.numel() for p in CifarResNet(depth).parameters()) == parameters


@pytest.mark.parametrize("depth", [2, 18, 21])
def test_other_depths_are_told(depth):
    with pytest.raises(InputError, match=f"6n \\+ 2.* not {depth}"):
        CifarResNet(depth)


def test_a_shortcut_takes_every_other_pixel_and_pads_channels():
    block = Block(2, 4, 2).eval()
    torch.nn.init.zeros_(block.conv2.weight)
    x = torch.rand(3, 2, 4, 4)
    found = block(x)
    assert found.shape == (3, 4, 2, 2)
    torch.testing.assert_close(found[:, 1:3], x[:, :, ::2, ::2])
    assert not found[:, [0, 3]].any()


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("wrapped", [False, True])
def test_weights_come_back_whatever_they_are_wrapped_in(tmp_path, prefix, wrapped):
    torch.manual_seed(0)
    model = CifarResNet(14).eval()
    state = {prefix + name: weight for name, weight in model.state_dict().items()}
    torch.save({"state_dict": state, "best_prec1": 61.0} if wrapped else state, tmp_path / "model.th")
    again = load_cifar_resnet(tmp_path / "model.th")
    assert again.depth == 14 and not again.training
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(again(x), model(x))
        torch.testing.assert_close(again.linear(again.features(x)), model(x))


def test_other_weights_are_refused(tmp_path):
    torch.save({"weight": torch.ones(2)}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="no weights of a CIFAR ResNet"):
        load_cifar_resnet(tmp_path / "other.pt")
    state = CifarResNet(8).state_dict()
    torch.save({**state, "more": torch.ones(1)}, tmp_path / "more.pt")
    with pytest.raises(InputError, match=r"do not fit.*more"):
        load_cifar_resnet(tmp_path / "more.pt")
    state.pop("layer2.0.bn1.running_var")
    torch.save(state, tmp_path / "less.pt")
    with pytest.raises(InputError, match=r"do not fit.*running_var"):
        load_cifar_resnet(tmp_path / "less.pt")


@pytest.mark.parametrize(
    ("network", "depth", "least"), [("dansun18-20", 20, 0.85), ("akamaster-56", 56, 0.88), ("chelcacs-20", 20, 0.5)]
)
def test_real_weights_classify_real_images(real_data, network, depth, least):
    if find(CIFAR10_RESNETS) is None or find(dataset("cifar10")) is None:
        pytest.skip(f"CIFAR-10 and its ResNets are not in {real_data}")
    model = load_cifar_resnet(weights_file(network))
    assert model.depth == depth
    held = load("cifar10", split="test")
    x = torch.as_tensor(held.images.read(0, 300)).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        scores = model((x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None])
    right = (scores.argmax(dim=1) == torch.as_tensor(held.codes[:300, 0])).double().mean()
    assert right > least and (network == "chelcacs-20") == (right < 0.75)
