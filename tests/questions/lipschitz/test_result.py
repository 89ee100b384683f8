"""The result: plain data, a line, a table."""

import json

import numpy as np
import torch

from nearid import lipschitz


def test_plain_data_is_json_and_holds_everything(rng):
    found = lipschitz(torch.sinh, rng.normal(size=(30, 2)), constant=2.0)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["exact"]["local"]["mean"]["value"] == found.exact.local.mean.value
    assert list(plain["sampled"]["local"]["quantiles"]) == ["0.05", "0.5", "0.95", "0.99"]
    assert plain["exact"]["local"]["quantiles"]["0.99"]["high"] is None
    np.testing.assert_allclose(plain["exact"]["values"], found.exact.values)
    np.testing.assert_allclose(plain["isometry"]["spectrum"], found.isometry.spectrum)
    assert plain["pairwise"]["pairs"] == 435 and plain["bound"]["constant"] == 2
    assert plain["provenance"]["options"]["directions"] == 10 and plain["provenance"]["mode"] == "forward"
    alone = lipschitz(torch.sinh, rng.normal(size=(30, 2)), exact=False).to_dict()
    assert alone["exact"] is None and alone["isometry"] is None


def test_the_frame_has_a_row_for_each_kind_of_constant(rng):
    z = rng.normal(size=(30, 2))
    both, alone = lipschitz(torch.sinh, z), lipschitz(torch.sinh, z, exact=False)
    frame = both.to_frame()
    assert frame["over"].tolist() == ["random directions"] * 2 + ["all directions"] * 2
    assert frame["mean"].tolist()[2:] == [both.exact.local.mean.value, both.exact.scaled.mean.value]
    assert frame["50%"][2] == both.exact.local.quantiles[0.5].value and len(alone.to_frame()) == 2
    assert repr(alone).startswith("<BiLipschitz sinh: No: ") and "L is at least" in repr(alone)
