"""How many patches are hidden, that the encoder does not see them, and that they alone count."""

import pytest
import torch

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.masked import MaskedAutoencoder
from nearid.lab.models.autoencoders.transformer import to_patches
from nearid.lab.models.trainer import seeded


def model(**options):
    with seeded(0):
        small = {"channels": 2, "side": 8, "patch": 2, "width": 8, "depth": 1, "heads": 2, "decoder_width": 8}
        return MaskedAutoencoder(**small | options)


def images(rows=3):
    return torch.rand(rows, 2, 8, 8, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize(("ratio", "hidden"), [(0.75, 12), (0.5, 8), (0.1, 2), (0.001, 1), (0.999, 15)])
def test_as_many_patches_are_hidden_as_told(ratio, hidden):
    m = model(ratio=ratio)
    visible = m.draw_visible(50)
    assert visible.shape == (50, 16 - hidden)
    assert all(len(set(row.tolist())) == 16 - hidden for row in visible)
    assert visible.min() >= 0 and visible.max() < 16


def test_every_patch_is_as_likely_to_be_hidden():
    with seeded(0):
        seen = model().draw_visible(4000).flatten().bincount(minlength=16) / 4000
    assert (seen - 0.25).abs().max() < 4 * (0.25 * 0.75 / 4000) ** 0.5


@pytest.mark.parametrize("normalise", [False, True])
def test_hidden_patches_alone_count(normalise):
    m, x = model(normalise=normalise), images()
    visible = m.draw_visible(3)
    told = to_patches(m.decode(m.embed(x, visible), visible), 2).detach()
    target, total, count = to_patches(x, 2), 0.0, 0
    for row in range(3):
        for place in set(range(16)) - set(visible[row].tolist()):
            patch = target[row, place]
            if normalise:
                patch = (patch - patch.mean()) / (patch.var() + 1e-6).sqrt()
            total += (told[row, place] - patch).square().sum().item()
            count += patch.numel()
    assert count == 3 * 12 * 8
    assert m.error(x, visible).item() == pytest.approx(total / count, rel=1e-5)


def test_the_encoder_does_not_see_what_is_hidden():
    m, x = model(), images().requires_grad_()
    visible = m.draw_visible(3)
    m.decode(m.embed(x, visible), visible).square().sum().backward()
    touched = to_patches(x.grad, 2).abs().amax(dim=2) > 0
    assert touched.sum() == visible.numel() and touched.gather(1, visible).all()


def test_places_of_patches_matter_but_their_order_does_not():
    m, x = model(), images()
    visible = m.draw_visible(3)
    backwards = visible.flip(1)
    torch.testing.assert_close(
        m.decode(m.embed(x, visible), visible), m.decode(m.embed(x, backwards), backwards), rtol=1e-4, atol=1e-6
    )
    assert (m.encode(x) - m.encode(x.flip(3))).abs().max() > 1e-4


def test_a_representation_is_the_mean_of_all_embeddings():
    m, x = model(), images()
    everything = torch.arange(16).expand(3, -1)
    torch.testing.assert_close(m.embed(x), m.embed(x, everything))
    torch.testing.assert_close(m.encode(x), m.embed(x).mean(dim=1))
    torch.testing.assert_close(m.decode(m.embed(x)), m.decode(m.embed(x), everything))
    assert m.decode(m.embed(x)).shape == x.shape


def test_masks_follow_the_seed():
    m, x, found = model(), images(), []
    for seed in (0, 0, 1):
        with seeded(seed):
            found.append(m(x).item())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"patch": 3}, "cannot be cut into 2 x 2"),
        ({"patch": 8}, "cannot be cut into 2 x 2"),
        ({"ratio": 1.0}, "ratio is 1.0"),
        ({"width": 10}, "width is 10, but a multiple of 4 and of the 2 heads"),
        ({"decoder_width": 6}, "decoder_width is 6"),
        ({"channels": 1, "patch": 1, "normalise": True}, "one pixel has no variance"),
    ],
)
def test_options_that_cannot_be(options, told):
    with pytest.raises(InputError, match=told):
        model(**options)


def test_images_that_do_not_fit():
    with pytest.raises(InputError, match=r"\(3, 8, 8, 2\), but \(rows, 2, 8, 8\)"):
        model()(torch.rand(3, 8, 8, 2))
