"""Convolutional networks have the shapes of the protocol, and give back images of the size they take."""

import pytest
import torch

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.convolutional import Convolutional, Light, Modulated

nn = torch.nn


def of(network, kind):
    return [m for m in network.modules() if isinstance(m, kind)]


def test_the_encoder_of_the_protocol():
    encoder = Convolutional(3, 64).encoder(12)
    convolutions = of(encoder, nn.Conv2d)
    assert [m.out_channels for m in convolutions] == [32] * 3 + [64] * 3 + [128] * 3 + [256] * 3
    assert [m.kernel_size[0] for m in convolutions] == [3, 3, 4] * 4
    assert [m.stride[0] for m in convolutions] == [1, 1, 2] * 4
    assert all(m.bias is None and m.padding == (1, 1) for m in convolutions)
    assert all(m.affine and m.eps == 1e-6 for m in of(encoder, nn.InstanceNorm2d))
    assert {m.negative_slope for m in of(encoder, nn.LeakyReLU)} == {0.2}
    assert [(m.in_features, m.out_features) for m in of(encoder, nn.Linear)] == [(4096, 256), (256, 256), (256, 12)]
    # Convolutions, scales and biases, dense layers: counted by hand.
    before, expected = 3, 0
    for width in (32, 64, 128, 256):
        expected += before * width * 9 + width * width * 9 + width * width * 16 + 3 * 2 * width
        before = width
    expected += 4096 * 256 + 256 + 256 * 256 + 256 + 256 * 12 + 12
    assert sum(p.numel() for p in encoder.parameters()) == expected


def test_the_decoder_of_the_protocol():
    decoder = Convolutional(3, 64).decoder(12)
    convolutions = of(decoder, nn.ConvTranspose2d)
    assert [m.out_channels for m in convolutions] == [256] * 3 + [128] * 3 + [64] * 3 + [32] * 3
    assert [m.kernel_size[0] for m in convolutions] == [3, 3, 4] * 4
    assert all(m.bias is None for m in convolutions)
    assert decoder.start.shape == (256, 4, 4) and (decoder.start == 0.1).all()
    assert [m.out_features for m in decoder.modulations] == [2 * m.out_channels for m in convolutions]
    with torch.no_grad():
        assert decoder(torch.randn(1, 12)).shape == (1, 3, 64, 64)


def test_a_block_of_the_decoder_by_hand():
    decoder, z = Modulated(2, 1, 32).double(), torch.randn(2, 2, dtype=torch.float64)
    style, (first, modulate) = decoder.style(z), (decoder.convolutions[0], decoder.modulations[0])
    # All but the first block and the last convolution are made to change nothing.
    decoder.convolutions, decoder.modulations = nn.ModuleList([first]), nn.ModuleList([modulate])
    decoder.last = nn.Identity()
    x = first(decoder.start[None])
    x = torch.where(x > 0, x, 0.2 * x)
    x = (x - x.mean((2, 3), keepdim=True)) / (x.var((2, 3), keepdim=True, correction=0) + 1e-6).sqrt()
    scale, bias = modulate(style).clamp(min=0).split(256, dim=1)
    torch.testing.assert_close(decoder(z), x * scale[:, :, None, None] + bias[:, :, None, None])


@pytest.mark.parametrize(("channels", "side"), [(1, 16), (3, 32), (3, 64)])
def test_light_networks_give_back_what_they_take(channels, side):
    networks = Light(channels, side)
    z = networks.encoder(5)(torch.rand(2, channels, side, side))
    assert z.shape == (2, 5) and networks.decoder(5)(z).shape == (2, channels, side, side)


def test_all_pixels_reach_the_latents_and_all_latents_the_pixels():
    networks, x = Light(2, 32), torch.rand(1, 2, 32, 32, requires_grad=True)
    networks.encoder(3)(x).square().sum().backward()
    assert (x.grad != 0).all()
    z = torch.randn(1, 3)
    jacobian = torch.autograd.functional.jacobian(lambda z: networks.decoder(3)(z)[0].flatten(), z)
    assert (jacobian != 0).all()


@pytest.mark.parametrize("networks", [lambda: Light(3, 24), lambda: Light(3, 8), lambda: Light(3, 48)])
def test_sides_that_do_not_fit_light_networks(networks):
    with pytest.raises(InputError, match="a side of 16, 32, 64 or 128"):
        networks()


@pytest.mark.parametrize("side", [16, 40])
def test_sides_that_do_not_fit_the_protocol(side):
    with pytest.raises(InputError, match="multiple of 16, at least 32"):
        Convolutional(3, side)


@pytest.mark.parametrize("networks", [Light(3, 32), Convolutional(3, 32)])
def test_channels_come_first(networks):
    with pytest.raises(InputError, match=r"\(2, 32, 32, 3\), but \(rows, 3, 32, 32\)"):
        networks.encoder(4)(torch.rand(2, 32, 32, 3))
