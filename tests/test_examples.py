"""Every public name has a docstring with examples, and the examples run."""

import doctest
import inspect

import numpy as np
import pytest

import nearid

# Exceptions and plain types explain themselves.
PLAIN = {"__version__"}
NAMES = [
    name
    for name in nearid.__all__
    if name not in PLAIN
    and not (inspect.isclass(getattr(nearid, name)) and issubclass(getattr(nearid, name), Exception))
]


@pytest.mark.own_seeds
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_public_name_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    public = getattr(nearid, name)
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
