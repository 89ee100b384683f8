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
        """A figure of the report as a plotly Figure: the first one, or the one whose title contains `title`."""
        from nearid.show.page import plotly_figure

        figures = [figure for figure in self.view.all_figures if figure.draws]
        named = [figure for figure in figures if title is None or title.lower() in figure.title.lower()]
        if not named:
            titles = ", ".join(dict.fromkeys(figure.title for figure in figures)) or "none"
            raise InputError(f"No figure is called {title!r}; the figures are: {titles}.")
        return plotly_figure(named[0])

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page."""
        from nearid.show.page import write

        write(self.view, path)

    def __str__(self) -> str:
        from nearid.show.terminal import text

        return text(self.view)

    def __repr__(self) -> str:
        view = self.view
        return f"<{type(self).__name__} {view.subject}: {view.headline}>"

    def _repr_html_(self) -> str:
        from nearid.show.page import fragment

        return fragment(self.view)
