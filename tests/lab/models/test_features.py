"""Networks from images to features: shapes, sizes, and a residual that is one."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models.features import BasicBlock, dense_features, resnet18_features, small_features  # noqa: E402


@pytest.mark.parametrize(
    ("network", "width", "side"),
    [(dense_features(3, 16, 20), 20, 16), (small_features(3, 16, 20), 20, 16), (resnet18_features(3), 512, 64)],
)
def test_features_are_rows_of_nonnegative_numbers(network, width, side):
    found = network.eval()(torch.rand(2, 3, side, side))
    assert found.shape == (2, width) and found.min() >= 0 and found.std() > 0


def test_the_size_of_resnet_18():
    # The published 11,689,512 less the classifier of a thousand classes.
    assert sum(p.numel() for p in resnet18_features(3).parameters()) == 11_689_512 - 513_000


def test_a_block_adds_to_its_input():
    block = BasicBlock(4, 4, 1).eval()
    torch.nn.init.zeros_(block.body[3].weight)
    x = torch.rand(2, 4, 5, 5)
    torch.testing.assert_close(block(x), x)
    assert BasicBlock(4, 8, 2)(x).shape == (2, 8, 3, 3)


def test_sides_that_cannot_be_halved_get_a_sentence():
    with pytest.raises(InputError, match=r"halved 3 times; give a multiple of 8"):
        small_features(1, 20, 8)
