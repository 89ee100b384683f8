"""Attention against a plain sum, and patches that are cut where they should be."""

import math

import numpy as np
import torch

from nearid.lab.models.autoencoders.transformer import Block, from_patches, positions, to_patches


def test_attention_by_hand(rng):
    block, x = Block(8, 2).double(), torch.tensor(rng.normal(size=(2, 5, 8)))
    mixed = torch.zeros(2, 5, 8, dtype=torch.float64)
    query, key, value = block.project(x).split(8, dim=2)
    for row in range(2):
        for head in (slice(0, 4), slice(4, 8)):
            weights = torch.softmax(query[row, :, head] @ key[row, :, head].T / math.sqrt(4), dim=1)
            mixed[row, :, head] = weights @ value[row, :, head]
    torch.testing.assert_close(block.attend(x), block.merge(mixed))


def test_tokens_have_no_order_of_their_own(rng):
    block, x = Block(8, 2), torch.tensor(rng.normal(size=(1, 5, 8)), dtype=torch.float32)
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(block(x[:, order]), block(x)[:, order])


def test_patches_lie_row_by_row(rng):
    images = torch.tensor(rng.normal(size=(2, 3, 8, 8)))
    patches = to_patches(images, 4)
    assert patches.shape == (2, 4, 48)
    for place, (down, across) in enumerate([(0, 0), (0, 4), (4, 0), (4, 4)]):
        expected = images[:, :, down : down + 4, across : across + 4].flatten(1)
        torch.testing.assert_close(patches[:, place], expected)
    torch.testing.assert_close(from_patches(patches, 4), images)


def test_positions_tell_places_apart():
    found = positions(3, 8).double().numpy()
    assert found.shape == (9, 8)
    frequencies = np.array([1.0, 1e-2])
    for place in range(9):
        down, across = divmod(place, 3)
        expected = np.concatenate([f(at * frequencies) for at in (down, across) for f in (np.sin, np.cos)])
        np.testing.assert_allclose(found[place], expected, atol=1e-7)


def test_causal_attention_by_hand(rng):
    block, x = Block(8, 2, causal=True).double(), torch.tensor(rng.normal(size=(1, 5, 8)))
    alone = Block(8, 2).double()
    alone.load_state_dict(block.state_dict())
    for last in range(5):
        torch.testing.assert_close(block.attend(x)[:, last], alone.attend(x[:, : last + 1])[:, last])
