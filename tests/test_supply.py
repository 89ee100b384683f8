"""Nothing in the source runs what comes from elsewhere, and dependencies with known holes are not allowed."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import nearid

SOURCE = Path(nearid.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"

FORBIDDEN = {
    "eval", "exec", "input", "pickle.load", "pickle.loads", "joblib.load", "marshal.loads", "shelve.open", "yaml.load",
    "pandas.read_pickle", "os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.Popen",
    "tempfile.mktemp",
}  # fmt: skip
# Arguments that a call must have where its name ends so.
REQUIRED = {
    "torch.load": ("weights_only", "True"),
    "np.load": ("allow_pickle", "False"),
    ".from_pretrained": ("trust_remote_code", "False"),
}
NEVER = {("allow_pickle", "True"), ("shell", "True"), ("trust_remote_code", "True"), ("verify", "False")}


def calls():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                given = {(k.arg, ast.unparse(k.value)) for k in node.keywords}
                yield f"{path.name}:{node.lineno}", ast.unparse(node.func), given


def test_no_call_runs_what_comes_from_elsewhere():
    found = list(calls())
    assert len(found) > 10_000
    assert [(where, name) for where, name, _ in found if name in FORBIDDEN or name.endswith("extractall")] == []
    assert [(where, given & NEVER) for where, _, given in found if given & NEVER] == []
    for ending, needed in REQUIRED.items():
        assert [where for where, name, given in found if name.endswith(ending) and needed not in given] == []


@pytest.mark.parametrize(
    ("package", "least"),
    [
        ("torch", (2, 6)),  # CVE-2025-32434: weights_only could be passed by
        ("pyarrow", (14, 0, 1)),  # CVE-2023-47248: extension types were unpickled
        ("numcodecs", (0, 16, 6)),  # its pickle codec decoded without being asked
    ],
)
def test_versions_with_known_holes_are_excluded(package, least):
    if not PROJECT.exists():
        pytest.skip("this is an installed copy without pyproject.toml")
    project = tomllib.loads(PROJECT.read_text())["project"]
    given = [*project["dependencies"], *(d for group in project["optional-dependencies"].values() for d in group)]
    bounds = [m[1] for text in given if (m := re.match(rf"{package}>=([\d.]+)", text))]
    assert bounds and all(tuple(map(int, bound.split("."))) >= least for bound in bounds)


def test_the_core_depends_on_nothing_of_the_lab():
    if not PROJECT.exists():
        pytest.skip("this is an installed copy without pyproject.toml")
    project = tomllib.loads(PROJECT.read_text())["project"]
    names = {re.match(r"[\w-]+", text)[0] for text in project["dependencies"]}
    assert names.isdisjoint({"pooch", "requests", "torch", "pillow"})
    extras = project["optional-dependencies"]
    assert {re.match(r"[\w-]+", text)[0] for text in extras["lab"]} == {"pooch", "requests", "torch", "pillow"}
    assert extras["train"] == ["nearid[lab]"]


def test_every_extra_that_a_sentence_names_exists():
    if not PROJECT.exists():
        pytest.skip("this is an installed copy without pyproject.toml")
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    docs = [PROJECT.with_name("README.md"), *(PROJECT.parent / "docs").rglob("*.md")]
    texts = "".join(path.read_text(encoding="utf-8") for path in (*SOURCE.rglob("*.py"), *docs))
    named = {name for group in re.findall(r"nearid\[([a-z,]+)\]", texts) for name in group.split(",")}
    assert "lab" in named and named <= extras.keys()
