from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from nearid.base.errors import InputError
from nearid.questions.extract.network import Network
from nearid.questions.extract.run import extract
from nearid.questions.extract.taps import blocks, tensor_of


def test_blocks_are_children_with_containers_opened(net):
    assert list(blocks(net)) == ["conv", "norm", "act", "stage.0", "stage.1", "head", "spare"]
    nested = nn.Sequential(nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())), nn.Tanh())
    assert list(blocks(nested)) == ["0.0", "0.1.0", "1"]


X, Y = torch.ones(2, 3), torch.zeros(2, 4)


@pytest.mark.parametrize(
    ("output", "part", "found"),
    [
        (X, None, X),
        ((X, Y), None, X),
        ((X, (Y, X)), "1.0", Y),
        ((torch.ones(2, dtype=torch.bool), [Y]), None, Y),
        ({"loss": None, "logits": Y}, None, Y),
        (OrderedDict(logits=Y, last_hidden_state=X), None, X),
        ({"a": {"b": Y}}, "a.b", Y),
        (SimpleNamespace(logits=Y, _cache=X), None, Y),
        (namedtuple("Out", "first second")(X, Y), "second", Y),
    ],
)
def test_the_tensor(output, part, found):
    assert tensor_of("l", output, part) is found


@pytest.mark.parametrize(
    ("output", "part", "message"),
    [
        (None, None, "The layer l gave None without a tensor"),
        ((None, "text"), None, "gave a tuple without a tensor"),
        ({"a": X}, "b", "has no part 'b'. It holds a"),
        (X, "0", "has no part '0'. It gave a Tensor"),
    ],
)
def test_what_holds_none_is_told(output, part, message):
    with pytest.raises(InputError, match=message):
        tensor_of("l", output, part)


def test_what_a_module_is_given_is_a_layer(net, pixels):
    found = extract(net, pixels, layers=["head:input", "head", "act:input"])
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        net.eval()
        normed = net.norm(net.conv(x))
        given = torch.relu(net.stage(torch.relu(normed))).mean((2, 3))
    np.testing.assert_allclose(found["head:input"].read(0, 37), given.numpy(), atol=1e-6)
    # Before the module works in place.
    np.testing.assert_allclose(found["act:input"].read(0, 37), normed.mean((2, 3)).numpy(), atol=1e-6)


def test_a_layer_that_is_chosen_and_taken_beside_is_one_layer(net, pixels):
    network = Network(net, "net", also=("head:input", "norm"))
    assert list(extract(network, pixels, layers=["head:input", "conv"])) == ["conv", "norm", "head:input"]
