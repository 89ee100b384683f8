"""What every question returns: one protocol, so that a reader who knows one result knows all."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.jsonable import plain

if TYPE_CHECKING:
    from nearid.show.figures import Figure
    from nearid.show.svg import Picture
    from nearid.show.view import View


class Result(ABC):
    """The answer to a question.

    A subclass is a frozen dataclass with `alerts` and `provenance`; it writes `_view` and `_records`.

    Attributes
    ----------
    alerts : sequence of Alert
        What to be careful about.
    provenance : dict
        What made the result: version, options, inputs.
    """

    alerts: Sequence[Alert]
    provenance: dict[str, Any]
    # Fields that are drawn, not printed: left out of `to_dict`.
    _drawn_only: ClassVar[tuple[str, ...]] = ("views",)

    @abstractmethod
    def _view(self) -> View:
        """What a person sees."""

    @abstractmethod
    def _records(self) -> list[dict[str, Any]]:
        """Rows of the table of `to_frame`."""

    @property
    def view(self) -> View:
        """What a person sees, as plain data: headline, alerts, tables and figures."""
        return self._view()

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (NaN becomes null)."""
        names = [f.name for f in fields(self) if f.name not in self._drawn_only]  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in names}

    def to_frame(self) -> Any:
        """The main table as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_frame needs pandas. Install it: pip install pandas") from None
        return pandas.DataFrame(self._records())

    def plot(self, title: str | None = None) -> Any:
        """A figure of the report as an interactive plotly Figure.

        Parameters
        ----------
        title : str, optional
            A part of the figure's title, in any case. Default: the first figure.

        Returns
        -------
        plotly.graph_objects.Figure

        Examples
        --------
        >>> import numpy as np
        >>> import nearid
        >>> x = np.random.default_rng(0).normal(size=(60, 2))
        >>> nearid.compare(x, 2 * x, permutations=1).plot().layout.title.text
        'How nearly: the ladder'
        """
        from nearid.show.page import plotly_figure

        return plotly_figure(self._figure(title))

    def picture(self, title: str | None = None) -> Picture:
        """A figure of the report as a static SVG picture, which a notebook shows and `save` writes to a file.

        Parameters
        ----------
        title : str, optional
            A part of the figure's title, in any case. Default: the first figure.

        Returns
        -------
        Picture

        Examples
        --------
        >>> import numpy as np
        >>> import nearid
        >>> x = np.random.default_rng(0).normal(size=(60, 2))
        >>> nearid.compare(x, 2 * x, permutations=1).picture().save("ladder.svg")
        """
        from nearid.show.svg import picture

        return picture(self._figure(title))

    def _figure(self, title: str | None) -> Figure:
        figures = [figure for figure in self.view.all_figures if figure.draws]
        named = [figure for figure in figures if title is None or title.lower() in figure.title.lower()]
        if not named:
            titles = ", ".join(dict.fromkeys(figure.title for figure in figures)) or "none"
            raise InputError(f"No figure is called {title!r}; the figures are: {titles}.")
        return named[0]

    def save_report(self, path: str | os.PathLike[str], *, interactive: bool = False) -> None:
        """Write the result as one self-contained HTML page.

        Parameters
        ----------
        path : str or PathLike
            A file name that ends in .html. A file of that name is replaced.
        interactive : bool
            Whether the figures can be zoomed and show values under the pointer. This adds about 5 MB to the page.

        Examples
        --------
        >>> import numpy as np
        >>> import nearid
        >>> x = np.random.default_rng(0).normal(size=(60, 2))
        >>> nearid.compare(x, 2 * x, permutations=1).save_report("report.html")
        """
        from nearid.show.page import write

        write(self.view, path, interactive)

    def __str__(self) -> str:
        from nearid.show.terminal import text

        return text(self.view)

    def __repr__(self) -> str:
        view = self.view
        return f"<{type(self).__name__} {view.subject}: {view.headline}>"

    def _repr_html_(self) -> str:
        from nearid.show.page import fragment

        return fragment(self.view)
