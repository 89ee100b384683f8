"""The demonstration's parts."""

import numpy as np

from nearid import demo


def test_states_are_seeded_and_of_the_named_widths(monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS", 2)
    images = demo.digits()
    assert images.shape == (1797, 64) and images.min() >= 0 and images.max() == 1
    first, again, other = (demo.autoencoder_states(images, seed) for seed in (0, 0, 1))
    assert [s.shape[1] for s in first] == [64, 16, 64, 64]
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.allclose(first[1], other[1])
