"""The decoder of Burgess et al.: shapes, recognition, and real weights that make digits."""

import numpy as np
import pytest
import torch

from nearid.questions.extract.burgess import BurgessDecoder
from nearid.questions.extract.weights import load_decoder


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
