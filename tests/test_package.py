"""The package as a whole: light to import, lazily complete, every public name documented."""

import subprocess
import sys

import pytest

import nearid

HEAVY = ("torch", "sklearn", "plotly", "scipy", "numba", "pandas", "pyarrow", "jinja2")


HELP = "import sys; sys.argv = ['nearid', '--help']; import nearid.cli.app as a; a.main()"


@pytest.mark.parametrize("code", ["import nearid", HELP])
def test_nothing_heavy_is_loaded(code):
    script = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print('LOADED', [m for m in {HEAVY!r} if m in sys.modules]))\n{code}"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("LOADED []")


@pytest.mark.parametrize("name", [n for n in nearid.__all__ if n != "__version__"])
def test_public_names_load_and_are_documented(name):
    assert getattr(nearid, name).__doc__
    assert name in dir(nearid)


def test_unknown_names_are_told():
    with pytest.raises(AttributeError, match="no attribute 'comparison'"):
        _ = nearid.comparison


WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pooch", "requests", "torch", "PIL"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, Blocked())
"""


def without_the_lab(code):
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, timeout=120)


def test_the_core_needs_nothing_of_the_lab():
    done = without_the_lab(
        "import numpy as np, nearid\n"
        "x = np.random.default_rng(0).normal(size=(200, 3))\n"
        "print(nearid.compare(x, x[:, ::-1], random_state=0).verdict.group)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "permutation"


@pytest.mark.parametrize("call", ["nearid.extract('os:getcwd', [[0.0]])", "nearid.load('mnist')"])
def test_what_needs_the_lab_says_which_extra_brings_it(call):
    done = without_the_lab(f"import nearid\n{call}")
    assert done.returncode == 1 and "pip install 'nearid[lab]'" in done.stderr.splitlines()[-1]
