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
from nearid.show.figures import Figure
from nearid.show.svg import HALF, PHONE, WHOLE, points, svg
from nearid.show.view import View, cell_lines

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# Points that the static figures draw on a page that has more than twice as many, as one of many pairs has.
POINTS = 25_000


def check_report(path: str | os.PathLike[str]) -> Path:
    """Refuse a place where a page cannot or should not be written, such as a file of data."""
    # A link leads to the file that is written.
    for place in (Path(path), Path(os.path.realpath(path))):
        if place.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"A report is an HTML page: name it something.html, not {place.name}.")
    return check_target(path)


def write(view: View, path: str | os.PathLike[str], interactive: bool = False) -> None:
    """Write the page of a view, atomically."""
    write_text(check_report(path), page(view, interactive))


def page(view: View, interactive: bool = False) -> str:
    """The whole page as text: with static figures, or also with Plotly and figures that can be zoomed."""
    live: dict[str, Any] = {}
    drawings = [f.draw() for f in view.all_figures if f.draws]
    many = sum(map(points, drawings))
    share = POINTS / many if many > 2 * POINTS else 1.0
    if interactive:
        from plotly.offline import get_plotlyjs

        live = {"plotly": get_plotlyjs(), "drawings": drawings}
    template = _environment().get_template("page.html")
    return template.render(view=view, version=__version__, pictures=True, share=share, **live)


def fragment(view: View) -> str:
    """The headline, tables and alerts alone, for a notebook."""
    module = _environment().get_template("section.html").make_module({"pictures": False})
    return f'<div class="nearid">{module.section(view, "top", False)}</div>'  # type: ignore[attr-defined]


def plotly_figure(figure: Figure) -> Any:
    """A figure as a plotly Figure."""
    import plotly.graph_objects

    drawing = figure.draw()
    return plotly.graph_objects.Figure(drawing["data"], {**drawing["layout"], "title": {"text": figure.title}})


def _static(figure: Figure, share: float) -> Markup:
    """The pictures of a figure: one for half of the page, or one for the whole and one for a telephone."""
    from markupsafe import Markup

    drawing = figure.draw()
    if not figure.wide:
        return Markup(svg(drawing, HALF, share=share))
    both = (("broad", WHOLE), ("slim", PHONE))
    return Markup("".join(f'<div class="{name}">{svg(drawing, width, share=share)}</div>' for name, width in both))


def _note(figure: Figure, share: float, interactive: bool) -> str:
    """How many points a picture leaves out. On an interactive page it is seen only on paper and on a telephone."""
    if share >= 1 or not points(figure.draw()):
        return ""
    if interactive:
        return f" On paper and on narrow screens, about {share:.0%} of the points are drawn."
    return f" To keep the page small, about {share:.0%} of the points are drawn. An interactive page has all of them."


@cache
def _environment() -> Environment:
    """The templates, with everything escaped that is put into them."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    env = Environment(loader=PackageLoader("nearid.show"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    env.filters.update(lines=cell_lines, static=_static, note=_note, script=lambda value: Markup(_script_json(value)))
    env.policies["json.dumps_kwargs"] = {"sort_keys": False, "default": plain}
    return env


def _script_json(value: Any) -> str:
    """JSON that may stand inside a script element: no markup can be closed or opened from within."""
    text = json.dumps(finite(value), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
