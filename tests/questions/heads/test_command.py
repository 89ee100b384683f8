"""`nearid heads` as a user types it."""

import json

import numpy as np


def test_heads(nearid, refused, tmp_path, rng):
    f, g, matrix = rng.normal(size=(200, 3)), rng.normal(size=(9, 3)), rng.normal(size=(3, 3))
    np.savez(tmp_path / "one.npz", **{"fc.weight": g, "fc.bias": np.arange(9.0), "f": f})
    np.savez(
        tmp_path / "two.npz", **{"fc.weight": g @ np.linalg.inv(matrix).T, "fc.bias": np.arange(9.0), "f": f @ matrix}
    )
    given = ("one.npz:fc.weight", "two.npz:fc.weight", "one.npz:f", "two.npz:f")
    done = nearid("heads", *given, "--biases", "one.npz:fc.bias,own", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verdict"]["outcome"] == "agree" and told["biased"] and told["r2_heads"] > 0.999999
    shown = nearid("heads", *given, "--biases", "none", "--pairs", "--draws", "5")
    assert "The heads predict the map between the features" in shown.stdout and "the best of 5 choices" in shown.stdout
    assert "1 biases were given" in refused("heads", *given, "--biases", "one.npz:fc.bias")
    assert "There is no file" in refused("heads", "three.npz:w", *given[1:])
