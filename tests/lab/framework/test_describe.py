"""What there is to run, as JSON."""

import json

from nearid.lab.framework.describe import details, summary
from nearid.lab.framework.plan import plan
from nearid.lab.framework.registry import experiments
from toy_experiments import TOY


def test_every_experiment_in_the_list():
    told = json.loads(json.dumps([summary(e) for e in experiments()], allow_nan=False))
    radial = next(e for e in told if e["experiment"] == "radial")
    assert radial["shows"] == "Fig. 2" and radial["presets"]["cpu"]["seeds"] == 8 and radial["paper"]["url"]


def test_a_run_before_it_begins(tmp_path):
    asked = plan(TOY, tmp_path, preset="smoke", rows=["high"], changes={"noise": "inf"})
    told = json.loads(json.dumps(details(asked), allow_nan=False))
    assert told["parameters"]["steps"] == {"value": 2, "about": "points of the curve"}
    assert told["parameters"]["sizes"]["value"] == [1, 2] and told["seeds"] == 2
    assert [(row["row"], row["changes"]) for row in told["rows"]] == [("high", {"level": 0.9})]
    assert "High is high." in told["claims"] and told["folder"] == str(tmp_path / "smoke,noise=inf,row=high")
