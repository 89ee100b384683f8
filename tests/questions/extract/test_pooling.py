import numpy as np
import pytest
import torch

from nearid.base.errors import InputError
from nearid.questions.extract.pooling import PLACES, pool_name, pooled, token_ids


@pytest.fixture
def tokens():
    x = torch.randn(4, 5, 3)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 1, 1, 0]]) != 0
    # Whatever stands at padding must not matter.
    x[~mask] = float("nan")
    return x, mask


def test_tokens_by_hand(tokens):
    x, mask = tokens
    real = [row[m] for row, m in zip(x, mask, strict=True)]
    expected = {
        "mean": torch.stack([r.mean(0) for r in real]),
        "cls": torch.stack([r[0] for r in real]),
        "last": torch.stack([r[-1] for r in real]),
        "tokens": torch.cat(real),
        "patches": torch.stack([r[1:].mean(0) for r in real]),
    }
    for pool, rows in expected.items():
        torch.testing.assert_close(pooled("l", x, 4, pool, mask), rows)


def test_without_a_mask():
    x = torch.randn(4, 5, 3)
    torch.testing.assert_close(pooled("l", x, 4, "patches", None), x[:, 1:].mean(1))
    torch.testing.assert_close(pooled("l", x, 4, "last", None), x[:, -1])
    torch.testing.assert_close(pooled("l", x, 4, "tokens", None), x.reshape(20, 3))
    torch.testing.assert_close(pooled("l", x, 4, "mean", None, maps=True), x.mean(2))
    torch.testing.assert_close(pooled("l", x, 4, "flatten", None), x.reshape(4, 15))


def test_maps_vectors_and_numbers():
    maps = torch.randn(4, 3, 2, 6)
    torch.testing.assert_close(pooled("l", maps, 4, "mean", None), maps.mean((2, 3)))
    assert pooled("l", maps, 4, "flatten", None).shape == (4, 36)
    rows = torch.randn(4, 7)
    for pool in ("mean", "cls", "last", "patches"):
        torch.testing.assert_close(pooled("l", rows, 4, pool, None), rows)
    assert pooled("l", torch.arange(4), 4, "mean", None).shape == (4, 1)
    assert pooled("l", rows.half(), 4, "mean", None).dtype == torch.float32


def test_a_function_of_ones_own():
    def widest(x, mask):
        return x.amax(1)

    x = torch.randn(4, 5, 3)
    np.testing.assert_array_equal(pooled("l", x, 4, widest, None), x.amax(1))
    assert pool_name(widest).endswith("widest") and pool_name("cls") == "cls"
    with pytest.raises(InputError, match=r"returned shape \(4,\) for \(4, 5, 3\) at the layer l"):
        pooled("l", x, 4, lambda x, mask: x[:, 0, 0], None)


@pytest.mark.parametrize(
    ("shape", "pool", "mask", "message"),
    [
        ((5, 4, 3), "mean", None, r"The layer l gave shape \(5, 4, 3\) for 4 inputs"),
        ((4, 3, 2, 2), "cls", None, "no tokens to pool by 'cls'"),
        ((4, 3), "tokens", None, "no tokens"),
        ((4, 6, 3), "mean", torch.ones(4, 5) != 0, "6 positions, but the mask is for 5"),
        ((4, 1, 3), "patches", None, "after the class token"),
    ],
)
def test_what_cannot_be_pooled_is_told(shape, pool, mask, message):
    if mask is not None:
        mask[0, 0] = False
    with pytest.raises(InputError, match=message):
        pooled("l", torch.zeros(shape), 4, pool, mask)


def test_ids_do_not_depend_on_the_side_of_the_padding():
    right, left = np.array([[1, 1, 0], [1, 1, 1]], bool), np.array([[0, 1, 1], [1, 1, 1]], bool)
    expected = [5 * PLACES, 5 * PLACES + 1, 9 * PLACES, 9 * PLACES + 1, 9 * PLACES + 2]
    for mask in (right, left):
        assert token_ids(np.array([5, 9]), mask).tolist() == expected
        assert token_ids(np.array(["a", "bc"]), mask).tolist() == ["a:0", "a:1", "bc:0", "bc:1", "bc:2"]


def test_ids_that_leave_no_room_are_told():
    with pytest.raises(InputError, match="Use text ids"):
        token_ids(np.array([-1, 2]), np.ones((2, 2), bool))
