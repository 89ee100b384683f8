"""The result: plain data, a line, a table."""

import json

import numpy as np
import torch

from nearid import bilipschitz


def test_plain_data_is_json_and_holds_everything(rng):
    found = bilipschitz(torch.sinh, rng.normal(size=(30, 2)), constant=2.0)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["exact"]["local"]["mean"] == found.exact.local.mean
    assert [q["share"] for q in plain["sampled"]["local"]["quantiles"]] == [0.05, 0.5, 0.95, 0.99]
    assert plain["exact"]["local"]["quantiles"][3]["high"] is None
    np.testing.assert_allclose(plain["exact"]["values"], found.exact.values)
    np.testing.assert_allclose(plain["isometry"]["spectrum"], found.isometry.spectrum)
    assert plain["pairwise"]["pairs"] == 435 and plain["bound"]["constant"] == 2
    assert plain["provenance"]["options"]["directions"] == 10 and plain["provenance"]["mode"] == "forward"
    alone = bilipschitz(torch.sinh, rng.normal(size=(30, 2)), exact=False).to_dict()
    assert alone["exact"] is None and alone["isometry"] is None


def test_a_line_says_what_was_measured(rng):
    z = rng.normal(size=(30, 2))
    assert repr(bilipschitz(lambda x: 2 * x, z, name="twice")) == (
        "<BiLipschitz twice: exact, mean 2.000, maximum 2.000, scale-free 1.000>"
    )
    assert "5 directions" in repr(bilipschitz(torch.sinh, z, directions=5, exact=False))
    found = bilipschitz(torch.sinh, z)
    assert "all directions" in str(found) and repr(found).startswith("<BiLipschitz sinh: exact")
