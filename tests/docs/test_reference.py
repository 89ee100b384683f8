"""Every public name has a page in the reference, and a docstring that says what it takes and gives, with examples.

Public is what `import nearid` gives, the callbacks, and what the README and the guide import from nearid's modules.
"""

import inspect
import re
from importlib import import_module

import pytest
from blocks import ROOT, blocks_of, pages
from numpydoc.docscrape import NumpyDocString

import nearid

IMPORT = re.compile(r"^from (nearid\.[\w.]+) import (?:\(([^)]*)\)|(.*))$", re.M)
OWN = set(nearid.__all__) - {"__version__"}
CALLBACKS = {
    "nearid.callbacks.probe.Probe",
    "nearid.callbacks.hf.IdentifiabilityCallback",
    "nearid.callbacks.lightning.IdentifiabilityCallback",
}


def imported():
    """Functions and classes that the README and the guide import from modules; pages of the lab are left out."""
    names = set()
    for page in pages():
        if page.parent.name in ("guide", "start") or page.name == "README.md":
            for block in blocks_of(page.read_text(encoding="utf-8"), page.name):
                for module, several, one in IMPORT.findall(block.code):
                    words = [word.split(" as ")[0].strip() for word in (several or one).split(",")]
                    names |= {f"{module}.{word}" for word in words if word and not word.isupper() and word not in OWN}
    return {name for name in names if not name.startswith("nearid.lab.")}


PUBLIC = sorted({f"nearid.{name}" for name in OWN} | CALLBACKS | imported())
REFERENCE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
LISTED = [f"nearid.{name}" for name in re.findall(r"^   ([A-Za-z][\w.]+)$", REFERENCE, re.M)]


def resolved(name):
    module, _, attribute = name.rpartition(".")
    if module.startswith(("nearid.callbacks", "nearid.questions.extract")):
        pytest.importorskip("torch")
    if module.endswith((".hf", ".lightning")):
        pytest.importorskip("transformers" if module.endswith(".hf") else "lightning")
    return getattr(import_module(module), attribute)


def parameters_of(call):
    return [name for name in inspect.signature(call).parameters if name not in ("self", "cls")]


def sections(public):
    """The docstring of an object by its sections."""
    return NumpyDocString(inspect.getdoc(public) or "")


def lacking(call, returns):
    """Parameters that the docstring of a function or method leaves out; "Returns" where it has no such section."""
    doc = sections(call)
    told = {word.lstrip("*") for entry in doc["Parameters"] for word in entry.name.split(", ")}
    missing = [name for name in parameters_of(call) if name not in told]
    return missing if doc["Returns"] or not returns else [*missing, "Returns"]


def gives(call):
    """Whether something comes back that is not the object itself, as from the fit of an estimator."""
    return str(inspect.signature(call).return_annotation) not in ("None", "Self", "typing.Self")


def test_the_reference_lists_every_public_name_once():
    assert len(LISTED) == len(set(LISTED))
    assert [name for name in PUBLIC if name not in LISTED] == []


@pytest.mark.parametrize("name", LISTED)
def test_the_docstring_of_a_public_name_is_complete(name):
    public = resolved(name)
    doc = sections(public)
    assert doc["Summary"]
    if inspect.isclass(public) and issubclass(public, Exception):
        return
    assert doc["Examples"]
    if not inspect.isclass(public):
        assert lacking(public, gives(public)) == []
        return
    told = {word.lstrip("*") for key in ("Parameters", "Attributes") for e in doc[key] for word in e.name.split(", ")}
    assert [name for name in parameters_of(public) if name not in told] == []


@pytest.mark.parametrize("name", [name for name in LISTED if name.rpartition(".")[2] in OWN | {"Probe"}])
def test_the_methods_of_a_public_class_are_documented(name):
    public = resolved(name)
    for key, method in inspect.getmembers(public, inspect.isroutine) if inspect.isclass(public) else ():
        if (getattr(method, "__module__", None) or "").startswith("nearid.") and not key.startswith("_"):
            assert inspect.getdoc(method), key
            # A method without parameters says in its first line what it gives.
            assert (key, lacking(method, bool(parameters_of(method)) and gives(method))) == (key, [])


def test_a_gap_in_a_docstring_is_found():
    def whole(x: int, *more: int) -> int:
        """Return the sum.

        Parameters
        ----------
        x, *more : int

        Returns
        -------
        int
        """

    def partial(x: int, y: int) -> int:
        """Return the sum.

        Parameters
        ----------
        x : int
        """

    assert lacking(whole, gives(whole)) == []
    assert lacking(partial, gives(partial)) == ["y", "Returns"]
