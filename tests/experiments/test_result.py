"""Results: measured beside published, claims with their outcomes, JSON without NaN."""

import json

import numpy as np
import pytest

from nearid.experiments.estimate import Estimate
from nearid.experiments.run import reproduce
from toy_experiments import TOY


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return reproduce(TOY, tmp_path_factory.mktemp("toy") / "out", seeds=3)


def test_estimates_are_over_the_seeds(found):
    scores = found.scores("high", "score")
    expected = {s: np.mean(0.9 + 0.01 * np.random.default_rng(s).normal(size=5)) for s in range(3)}
    assert scores.keys() == expected.keys()
    np.testing.assert_allclose(list(scores.values()), list(expected.values()), rtol=1e-12)
    assert found.estimate("high", "score") == Estimate.over(scores.values())
    assert found.scores("high", "undefined") == {} and found.scores("nowhere", "score") == {}


def test_claims(found):
    assert [str(o.status) for _, o in found.outcomes] == [
        "reproduced", "not reproduced", "reproduced", "not testable here",
    ]  # fmt: skip


def test_json_says_all(found):
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["experiment"] == "toy" and told["paper"]["venue"] == "Nowhere 2020"
    high = told["table"][1]
    assert high["row"] == "high" and high["changes"] == {"level": 0.9}
    score = high["scores"]["score"]
    assert score["published"] == {"value": 0.87, "verified": False, "note": "read off a figure"}
    assert score["interval"][0] < score["mean"] < score["interval"][1] and set(score["by_seed"]) == {"0", "1", "2"}
    assert high["scores"]["undefined"]["mean"] is None
    cell = told["cells"][1]
    assert (cell["row"], cell["seed"], cell["parameters"]["level"]) == ("high", 0, 0.9)
    assert len(cell["curves"]["walk"]["y"]) == 5 and cell["seconds"] >= 0


def test_as_text(found):
    assert "0.87*" in str(found) and "reproduced: High is high." in str(found)
