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
