"""Comparison of two versions: names that changed, and answers that did not."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FAILED = {"error": "No."}
PATH = Path(__file__).parents[1] / "benchmarks" / "same_results.py"


@pytest.fixture
def same_results():
    spec = importlib.util.spec_from_file_location("same_results", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_old_paths_are_given_their_new_names(same_results):
    quantile = {"share": 0.5, "value": 1.0}
    old = {
        "options": {"engine": "local", "tol": 0.1},
        "seed": 3,
        "input": {"name": "b.npy"},
        "diagnostics": {"cautions": [{"kind": "gaussian", "text": "Few."}], "passes": 4},
        "sampled": {"local": {"mean": 2.0, "quantiles": [quantile, quantile, quantile, quantile]}},
        "provenance": {"ica": {"cautions": [{"kind": "gaussian"}]}},
    }
    assert same_results.expected("unmix", old) == {
        "provenance.options.tol": 0.1,
        "provenance.seed": 3,
        "provenance.inputs.0.name": "b.npy",
        "alerts.0.code": "gaussian",
        "diagnostics.passes": 4,
        "sampled.local.mean.value": 2.0,
        **{f"sampled.local.quantiles.{share}.value": 1.0 for share in ("0.05", "0.5", "0.95", "0.99")},
    }


def test_a_group_has_another_name_in_the_verdicts_of_score_alone(same_results):
    old = {"verdict": {"group": "permutation", "yardstick": "rigid"}, "resolved": {"verdict": {"group": "permutation"}}}
    renamed = same_results.expected("score-ica", old)
    assert list(renamed.values()) == ["scaled_permutation", "rigid", "scaled_permutation"]
    assert same_results.expected("compare", old)["verdict.group"] == "permutation"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [({"n": 1}, {"n": 1}, 0), ({"n": 1}, {"n": 2}, 1), (FAILED, FAILED, 1), ({}, FAILED, 1)],
)
def test_a_failure_in_either_version_is_wrong(same_results, monkeypatch, tmp_path, old, new, code):
    monkeypatch.setattr(same_results, "draw", lambda folder: None)
    monkeypatch.setattr(same_results.subprocess, "run", lambda *args, **kwargs: None)
    monkeypatch.setattr(same_results, "run", lambda nearid, arguments, folder: {"old": old, "new": new}[nearid])
    words = ["same_results.py", "--old", "old", "--new", "new", "--only", "heads", "--kept", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        same_results.main()
    assert end.value.code == code and json.loads((tmp_path / "heads.json").read_text()) == old
