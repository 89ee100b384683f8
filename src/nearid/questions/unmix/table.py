"""An unmixing in words and tables: for a terminal, and what its page says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nearid.questions.compare.tables import WIDE, number, warned

if TYPE_CHECKING:
    from nearid.ica.estimators import ICA

LEADING = 10


def render(ica: ICA, width: int) -> RenderableType:
    """The conclusion, the leading components, the facts and the cautions, for so many columns of text."""
    colour = {"good": "green", "careful": "yellow", "bad": "red"}[standing(ica)]
    head = Text(conclusion(ica), style=f"bold {colour}")
    panel = Panel(head, title=escape(ica.input_["name"]), border_style=colour)
    said = Text(";  ".join(f"{name} {value}" for name, value in facts(ica)), style="dim")
    return Group(panel, _leading(ica, width), said, *warned(c.text for c in ica.diagnostics_.cautions))


def standing(ica: ICA) -> str:
    """Whether the fit is good, to be taken with care, or not settled."""
    if not ica.converged_:
        return "bad"
    return "careful" if ica.diagnostics_.cautions else "good"


def conclusion(ica: ICA) -> str:
    """The outcome in a sentence."""
    d = ica.diagnostics_
    gaussian = int(np.sum(d.gaussian))
    apart = f"{gaussian} of them cannot be told from Gaussian" if gaussian else "none of them Gaussian"
    ended = f"found in {counted(d.passes, 'pass', 'passes')}" if d.converged else f"not settled after {d.passes} passes"
    return f"{counted(d.components, 'component', 'components')}, {ended}; {apart}"


def counted(n: int, one: str, many: str) -> str:
    """A number of things."""
    return f"{n} {one if n == 1 else many}"


def facts(ica: ICA) -> list[tuple[str, str]]:
    """Figures of the whole fit, with their names."""
    d = ica.diagnostics_
    told = [
        ("rows", f"{d.rows:,}"),
        ("rows per parameter", f"{d.rows_per_parameter:.3g}"),
        ("rank", f"{d.rank} of {d.columns}"),
        ("variances", f"{d.largest_variance:.3g} to {d.smallest_variance:.3g}"),
        ("relative gradient", f"{d.gradient:.1e} (tol {d.tol:g})"),
        ("super-Gaussian", str(d.super_gaussian)),
        ("sub-Gaussian", str(d.sub_gaussian)),
    ]
    if d.curvature:
        i, j, least = d.curvature[0]
        told.append(("least curvature (mu)", f"{number(least)} between components {i} and {j}"))
    if d.stability is not None:
        told.append(("least stability", number(float(np.min(d.stability)))))
    return told


def _leading(ica: ICA, width: int) -> Table:
    d = ica.diagnostics_
    shown = min(LEADING, d.components)
    table = Table(
        title=f"the {shown} least Gaussian of {d.components} components" if shown < d.components else "components",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1) if width >= WIDE else (0, 0, 0, 1),
    )
    stable = [] if d.stability is None else ["stability"]
    for name in ("component", "non-Gaussianity", "z", "kind", *stable, "largest in column"):
        table.add_column(name, justify="left" if name == "kind" else "right", no_wrap=True)
    names = ica.input_.get("columns") or range(d.columns)
    column = np.abs(ica.mixing_).argmax(axis=0)
    for i, kind in enumerate(d.kinds[:shown]):
        again = [] if d.stability is None else [f"{d.stability[i]:.3f}"]
        largest = escape(str(names[column[i]]))
        table.add_row(str(i), number(float(d.nongaussianity[i])), f"{d.z[i]:.1f}", kind, *again, largest)
    return table
