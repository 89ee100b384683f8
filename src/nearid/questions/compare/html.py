"""What questions share whose pages are not yet those of a View."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid import __version__
from nearid.questions.compare.plots import Figure
from nearid.show.page import _script_json, check_report
from nearid.show.view import number, span

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["check_report", "environment", "render"]


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
        mean=lambda values: float(np.mean(values)),
        script=lambda v: Markup(_script_json(v)),
    )
    env.globals["span"] = span
    return env
