"""Every public name has a docstring with examples, and the examples run."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nearid

REFERENCE = (Path(__file__).parents[1] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
# Every name that has a page, but for exceptions, which explain themselves.
NAMES = [
    name for name in re.findall(r"^   ([A-Za-z][\w.]+)$", REFERENCE, re.M) if not name.endswith(("Error", "Warning"))
]
# What modules need that `import nearid` does not.
NEEDS = {
    "callbacks.probe": "torch",
    "callbacks.hf": "transformers",
    "callbacks.lightning": "lightning",
    "questions.extract.weights": "torch",
}


@pytest.mark.own_seeds
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_public_name_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module, _, attribute = name.rpartition(".")
    if module in NEEDS:
        pytest.importorskip(NEEDS[module])
    public = getattr(import_module(f"nearid.{module}".rstrip(".")), attribute)
    tests = doctest.DocTestFinder(recurse=False).find(inspect.unwrap(public), name, globs={"nearid": nearid, "np": np})
    examples = [example for test in tests for example in test.examples]
    assert examples, f"nearid.{name} has no examples"
    if any("torch" in example.source for example in examples):
        pytest.importorskip("torch")
    if any("to_frame" in example.source or "pandas" in example.source for example in examples):
        pytest.importorskip("pandas")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
