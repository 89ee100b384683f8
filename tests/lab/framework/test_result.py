"""Results: measured beside published, claims with their outcomes, JSON without NaN."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Claim, at_least
from nearid.lab.framework.run import reproduce
from toy_experiments import TOY


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return reproduce(TOY, tmp_path_factory.mktemp("toy") / "out", seeds=3)


@pytest.mark.own_seeds
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


def test_claims_are_not_judged_on_the_shortest_preset(tmp_path, inline):
    short = reproduce(TOY, tmp_path / "out", preset="smoke")
    assert {(str(o.status), o.sentence) for _, o in short.outcomes} == {
        ("not judged: preset too short", "Claims are not judged on runs as short as those of the preset smoke.")
    }
    assert [alert.code for alert in short.alerts] == ["claims_not_judged"]
    # They are tested all the same: what cannot be computed is found out.
    broken = replace(TOY, claims=(Claim("Of nobody.", at_least("high", "nothing", 0)),))
    with pytest.raises(StopIteration):
        _ = replace(short, experiment=broken).outcomes


def test_rows_and_changes(found):
    assert found.changes == {} and found.ran == {"low", "high"}
    some = replace(found, only=("high",), parameters=replace(found.parameters, noise=0.5))
    assert some.changes == {"noise": (0.5, 0.01)} and some.ran == {"high"}
    assert [row.key for row in some.every_row] == ["low", "high"]
    assert some.outcomes[1][1].sentence == "Needs the row low, which was not run."


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


def test_a_frame_has_a_row_for_each_score(found):
    frame = found.to_frame()
    assert list(frame["row"]) == ["low", "low", "high", "high"] and set(frame["score"]) == {"score", "undefined"}
    high = frame.iloc[2]
    assert high["published"] == 0.87 and high["low"] < high["mean"] < high["high"] and high["seeds"] == 3
