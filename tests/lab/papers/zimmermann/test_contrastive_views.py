"""Views of the contrastive experiments."""

import numpy as np

from nearid.lab.papers.zimmermann.contrastive_views import views


def test_views_are_in_the_order_of_the_latents():
    z = np.random.default_rng(0).uniform(size=(4000, 7))
    v = views(z[:, [1, 2, 0, 6, 3, 5, 4]], z, z)
    assert np.asarray(v["recovered"]).shape == (300, 5) and v["recovered"] == v["true"]
    np.testing.assert_allclose(np.diag(v["matched"]), 1)
    np.testing.assert_allclose(v["observed"], v["matched"])
    assert np.max(np.asarray(v["matched"]) - np.eye(7)) < 0.2
    # Of images there is no correlation with the latents.
    assert views(z, z) == {key: value for key, value in v.items() if key != "observed"}
