"""The package as a whole: light to import, lazily complete, every public name documented."""

import subprocess
import sys

import numpy as np
import pytest

import nearid

HEAVY = ("torch", "sklearn", "plotly", "scipy", "numba", "pandas", "pyarrow", "jinja2", "pydantic", "dask", "h5py")
# Of scipy, a comparison uses two compiled modules without their packages.
OF_SCIPY = ("scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats", "scipy.sparse")
DRAWING = ("rich", "nearid.show.terminal", "nearid.show.page", "nearid.show.svg")
NUMBERS = ("numpy", "nearid.questions.compare.run")


def loaded(code, modules, cwd=None):
    """Exit code of a script, and which of some modules are loaded when it ends."""
    script = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print('LOADED', *[m for m in {modules!r} if m in sys.modules]))\n{code}"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=cwd)
    return done.returncode, done.stdout.rpartition("LOADED")[2].split()


def command(*words):
    return f"import sys; sys.argv = {['nearid', *words]!r}; import nearid.cli.app as a; a.main()"


def test_importing_the_package_loads_nothing_heavy():
    assert loaded("import nearid", HEAVY + DRAWING) == (0, [])


def test_the_list_of_commands_loads_no_question():
    assert loaded(command("--help"), HEAVY + DRAWING + NUMBERS) == (0, [])


def test_help_of_a_command_loads_nothing_heavy():
    assert loaded(command("compare", "--help"), HEAVY + DRAWING) == (0, [])


def test_a_refused_path_loads_nothing_heavy(tmp_path):
    assert loaded(command("compare", "missing.npy", "gone.npy"), HEAVY + DRAWING, tmp_path) == (2, [])


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_a_small_comparison_loads_nothing_heavy(tmp_path, rng, option):
    x = rng.normal(size=(300, 4))
    np.save(tmp_path / "a.npy", x)
    np.save(tmp_path / "b.npy", x[:, ::-1] + 0.1 * rng.normal(size=x.shape))
    heavy = tuple(name for name in HEAVY if name != "scipy") + OF_SCIPY
    code = command("compare", "a.npy", "b.npy", "--folds", "4", option)
    assert loaded(code, (*heavy, "scipy"), tmp_path) == (0, ["scipy"])


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
