"""What every page shares: one self-contained file, offline, printable, in the reader's colour scheme."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid import __version__
from nearid.base.errors import InputError
from nearid.base.files import check_target
from nearid.base.jsonable import finite
from nearid.questions.compare.plots import Figure
from nearid.questions.compare.tables import headline, number, span, verdict_line

if TYPE_CHECKING:
    from jinja2 import Environment


def check_report(path: str | os.PathLike[str]) -> Path:
    """Refuse a place where a page cannot or should not be written, such as a file of data."""
    # A link leads to the file that is written.
    for place in (Path(path), Path(os.path.realpath(path))):
        if place.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"A report is an HTML page: name it something.html, not {place.name}.")
    return check_target(path)


def render(template: str, title: str, figures: dict[str, Figure], **context: Any) -> str:
    """A whole page as text; elements with class "plot" name their figure as data-figure."""
    from plotly.offline import get_plotlyjs

    page = environment().get_template(template)
    return page.render(title=title, figures=figures, plotly=get_plotlyjs(), version=__version__, **context)


@cache
def environment() -> Environment:
    """The templates, with everything escaped that is put into them."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    env = Environment(
        loader=PackageLoader("nearid.questions.compare"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    env.filters.update(
        number=number,
        mean=_mean,
        headline=headline,
        verdict_line=verdict_line,
        script=lambda v: Markup(_script_json(v)),
    )
    env.globals["span"] = span
    return env


def _script_json(value: Any) -> str:
    """JSON that may stand inside a script element: no markup can be closed or opened from within."""
    text = json.dumps(finite(value), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _mean(values: Any) -> float:
    return float(np.mean(values))
