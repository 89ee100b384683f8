"""Views as HTML: one self-contained page, offline, printable, in the reader's colours; and a part for notebooks."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearid import __version__
from nearid.base.errors import InputError
from nearid.base.files import check_target, write_text
from nearid.base.jsonable import finite, plain
from nearid.show.figures import Drawing, Figure
from nearid.show.view import View, cell_lines

if TYPE_CHECKING:
    from jinja2 import Environment


def check_report(path: str | os.PathLike[str]) -> Path:
    """Refuse a place where a page cannot or should not be written, such as a file of data."""
    # A link leads to the file that is written.
    for place in (Path(path), Path(os.path.realpath(path))):
        if place.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"A report is an HTML page: name it something.html, not {place.name}.")
    return check_target(path)


def write(view: View, path: str | os.PathLike[str]) -> None:
    """Write the page of a view, atomically."""
    write_text(check_report(path), page(view))


def page(view: View) -> str:
    """The whole page as text."""
    from plotly.offline import get_plotlyjs

    template = _environment().get_template("page.html")
    return template.render(
        view=view, drawings=_drawings(view, "top"), plotly=get_plotlyjs(), version=__version__, pictures=True
    )


def fragment(view: View) -> str:
    """The headline, tables and alerts alone, for a notebook."""
    module = _environment().get_template("section.html").make_module({"pictures": False})
    return f'<div class="nearid">{module.section(view, "top", False)}</div>'  # type: ignore[attr-defined]


def plotly_figure(figure: Figure) -> Any:
    """A figure as a plotly Figure."""
    import plotly.graph_objects

    drawing = figure.draw()
    return plotly.graph_objects.Figure(drawing["data"], {**drawing["layout"], "title": {"text": figure.title}})


def _drawings(view: View, name: str) -> dict[str, Drawing]:
    """The drawings of a view and its parts, by the names that the template gives their places."""
    drawings = {f"{name}-{k}": figure.draw() for k, figure in enumerate(view.figures) if figure.draws}
    for k, part in enumerate(view.parts):
        drawings |= _drawings(part, f"part{k}" if name == "top" else f"{name}part{k}")
    return drawings


@cache
def _environment() -> Environment:
    """The templates, with everything escaped that is put into them."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    env = Environment(loader=PackageLoader("nearid.show"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    env.filters.update(lines=cell_lines, script=lambda value: Markup(_script_json(value)))
    env.policies["json.dumps_kwargs"] = {"sort_keys": False, "default": plain}
    return env


def _script_json(value: Any) -> str:
    """JSON that may stand inside a script element: no markup can be closed or opened from within."""
    text = json.dumps(finite(value), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
