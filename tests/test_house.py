"""The house: imports point down its storeys, lazy ones included, and rooms do not import in circles."""

import ast
from pathlib import Path

import pytest

import nearid

SOURCE = Path(nearid.__file__).parent
# From the ground up; what is named on one line may import each other, as long as there is no circle of rooms.
STOREYS = (
    ("base",),
    ("arrays",),
    ("moments", "folds", "dependence", "engines"),
    ("groups", "measures", "ica", "geometry"),
    ("show",),
    ("questions",),
    ("callbacks", "lab"),
    ("cli", "__main__"),
)
# Folders whose folders are rooms.
FLOORS = ("questions", "lab")
# Loaded where they are needed, by the rooms that need them.
TORCH = ("questions/extract", "questions/lipschitz", "callbacks", "lab")


def room(parts):
    """The room that dotted parts below the package lead to."""
    if parts[0] in FLOORS and len(parts) > 1 and (SOURCE / parts[0] / parts[1]).is_dir():
        return "/".join(parts[:2])
    return parts[0]


def storey(name):
    return next(k for k, rooms in enumerate(STOREYS) if name.split("/")[0] in rooms)


def imports():
    """(file, its room, module as parts, whether it is imported) of imports, and of homes that a registry names."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: a relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("nearid."):
                names = [node.value.partition(":")[0]] if " " not in node.value else []
            for name in names:
                yield path.relative_to(SOURCE), room(parts), name.split("."), not isinstance(node, ast.Constant)


def inner(registries=True):
    """Imports of the package itself."""
    for path, here, parts, imported in imports():
        if not imported and not registries:
            continue
        known = len(parts) > 1 and ((SOURCE / parts[1]).is_dir() or (SOURCE / f"{parts[1]}.py").is_file())
        if parts[0] == "nearid" and known:
            yield path, here, room(parts[1:])


def test_no_import_points_upwards():
    upwards = [f"{path} imports {to}" for path, here, to in inner() if storey(to) > storey(here)]
    assert not upwards, upwards


def test_rooms_do_not_import_in_circles():
    below = {}
    # A registry may name what registers itself there.
    for _, here, to in inner(registries=False):
        if here != to:
            below.setdefault(here, set()).add(to)

    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for each in below.get(todo.pop(), ()):
                if each not in seen:
                    seen.add(each)
                    todo.append(each)
        return seen

    circles = sorted(here for here in below if here in reached(here))
    assert not circles, circles


@pytest.mark.parametrize("module", ["torch", "transformers", "lightning"])
def test_torch_stays_where_networks_run(module):
    strays = [f"{path}" for path, here, parts, _ in imports() if parts[0] == module and not here.startswith(TORCH)]
    # Tensors that a user hands over, and files of torch, are read without it being imported first. Of the engines, one
    # file runs on a device of torch.
    elsewhere = [s for s in strays if not s.startswith("arrays/")]
    assert elsewhere == ["engines/torch_engine.py"] * (len(elsewhere) if module == "torch" else 0)


def test_every_file_has_a_subject():
    silent = [p.relative_to(SOURCE) for p in SOURCE.rglob("*.py") if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent, silent


def lost_strings(tree):
    """Lines of strings that stand alone and are no docstring, such as half of a message that lost its parentheses."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, owners) and node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and id(node) not in docstrings:
            value = node.value
            if isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str)):
                yield node.lineno


def test_no_string_is_lost():
    source = 'def f(x):\n    """Doc."""\n    y = "a"\n    f"b {x}"\n    if x:\n        "c"\n    return y\n'
    assert list(lost_strings(ast.parse(source))) == [4, 6]
    paths = sorted(SOURCE.rglob("*.py"))
    lost = [f"{p.relative_to(SOURCE)}:{line}" for p in paths for line in lost_strings(ast.parse(p.read_text("utf-8")))]
    assert not lost, lost
