"""Figures as static SVG: the part of Plotly's description that `figures` uses, in the reader's colours."""

from __future__ import annotations

import math
import os
import re
import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape, unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.base.files import check_target, write_text
from nearid.base.printable import printable
from nearid.show.figures import EDGE, FEW, MANY, Drawing, Figure, wrapped

# Pixels across: the whole page, half of it, and a telephone.
WHOLE, HALF, PHONE = 1000, 490, 440
# Pixels of a character and of a line of text; the sign before a name in a legend; a scale of colours with its numbers.
CHARACTER, LINE, SIGN, SCALE = 7.0, 15, 34, 70
# From here on panels stand in two columns; cells of a heat map, and points of a group, that tell their values.
NARROW, CELLS, TOLD = 560, 1000, 50
# Points of one colour lie in so many layers, so that places with many points are darker.
LAYERS = 4
# Half pixels from the top to the bottom of the strips in which these points are written.
STRIP = 40
# Colours of a large heat map: more than an eye tells apart.
SHADES = 64
# A range below this is none: its steps would be smaller than the smallest float.
TINY = 1e-300
VIRIDIS = ("440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")
DASH = {"dash": "7 4", "dot": "2 3", "dashdot": "8 3 2 3"}
# Text and grid have the colour of their surroundings; these are for a picture that stands alone.
STYLE = (
    "<style>svg.nearid{color:#1c2024;background:#fff}"
    "@media screen and (prefers-color-scheme:dark){svg.nearid{color:#e6e9ec;background:#14171a}}</style>"
)
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Picture:
    """A figure of a result as a static picture. A notebook shows it.

    Attributes
    ----------
    svg : str
        The picture as SVG. Its colours follow the light or dark scheme of the reader.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> picture = nearid.compare(x, 2 * x, permutations=1).picture()
    >>> picture.svg[:4]
    '<svg'
    """

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path : str or PathLike
            A file name that ends in .svg. A file of that name is replaced.

        Examples
        --------
        >>> import numpy as np
        >>> import nearid
        >>> x = np.random.default_rng(0).normal(size=(60, 2))
        >>> nearid.compare(x, 2 * x, permutations=1).picture().save("ladder.svg")
        """
        # A link leads to the file that is written.
        for place in (Path(path), Path(os.path.realpath(path))):
            if place.suffix.lower() != ".svg":
                raise InputError(
                    f"A picture is written as SVG: name it something.svg, not {place.name}. "
                    "For other formats use plot(), which returns a plotly figure."
                )
        write_text(check_target(path), self.svg)


def picture(figure: Figure) -> Picture:
    """A figure with its title as a picture that stands alone.

    Parameters
    ----------
    figure : Figure
        Such as `nearid.show.figures.Lines`.

    Returns
    -------
    Picture
        A notebook shows it. Its method `save` writes it to a file.

    Examples
    --------
    >>> from nearid.show.figures import Curve, Lines
    >>> from nearid.show.svg import picture
    >>> curves = {"first run": Curve([0, 100, 200], [0.5, 0.8, 0.9], markers=True)}
    >>> figure = Lines("R2 in training", "", "steps", "R2", curves)
    >>> picture(figure).save("curve.svg")
    """
    return Picture(svg(figure.draw(), WHOLE if figure.wide else 640, figure.title))


def svg(drawing: Drawing, width: float, title: str = "", share: float = 1.0) -> str:
    """A drawing as an SVG element; with a title it stands alone, else it takes the colours of its page.

    A share below 1 draws so much of the points of each group that has many: every second one, for example.
    """
    layout, data = drawing["layout"], [_thinned(trace, share) for trace in drawing["data"]]
    heading = 30 if title else 0
    plots = _plots(layout, data, width, heading)
    below = max(plot.top + plot.height + plot.foot for plot in plots)
    out = [part for plot in plots for part in plot.drawn()]
    legend, height = _legend(layout, data, width, below)
    out += legend
    if title:
        out.insert(0, _text(12, 20, [title], size=15, weight="600"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="nearid" viewBox="0 0 {_n(width)} {_n(height)}"'
    head += f' width="{_n(width)}" height="{_n(height)}" font-family="{FONT}" font-size="12" fill="currentColor"'
    name = f' role="img" aria-label="{_safe(title)}"' if title else ' role="img"'
    return f"{head}{name}>{STYLE if title else ''}{''.join(out)}</svg>"


class Axis:
    """A horizontal or vertical axis: where a value lies on it, from 0 to 1, and its ticks."""

    def __init__(self, layout: dict[str, Any], values: Sequence[Any], pad: float) -> None:
        self.layout = layout
        self.title = layout.get("title", {}).get("text", "")
        known = [v for v in values if v is not None]
        self.names: list[str] = []
        self.log = layout.get("type") == "log"
        self.reversed = layout.get("autorange") == "reversed"
        if layout.get("type") == "category" or any(isinstance(v, str) for v in known):
            self.names = list(dict.fromkeys([*layout.get("categoryarray", []), *known]))
            self.low, self.high = 0.0, float(max(len(self.names), 1))
            self._index = {name: k + 0.5 for k, name in enumerate(self.names)}
        elif "range" in layout:
            start, end = layout["range"]
            self.low, self.high, self.reversed = min(start, end), max(start, end), start > end
            if self.high - self.low <= TINY:
                self.high = self.low + max(1.0, abs(self.low))
        else:
            known = [math.log10(v) for v in known if v > 0] if self.log else known
            self.low, self.high = self._around(known or [0.0, 1.0], pad)

    def _around(self, values: Sequence[float], pad: float) -> tuple[float, float]:
        low, high = min(values), max(values)
        zero = self.layout.get("rangemode") == "tozero"
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low <= max(1e-9 * max(abs(low), abs(high)), TINY):
            free = max(abs(low) * 0.1, 1e-9) if low else 0.5
            return low - free, high + free
        room = pad * (high - low)
        return (low if zero and low == 0 else low - room), (high if zero and high == 0 else high + room)

    def share(self, value: Any) -> float | None:
        """Where a value lies between the ends of the axis."""
        if value is None or (self.log and value <= 0):
            return None
        at = self._index[value] if self.names else math.log10(value) if self.log else value
        share = (at - self.low) / (self.high - self.low)
        return 1 - share if self.reversed else share

    def ticks(self, pixels: float, apart: float) -> list[tuple[float, list[str]]]:
        """Shares and lines of text of the ticks, at least so many pixels apart."""
        if "tickvals" in self.layout:
            pairs = list(zip(self.layout["tickvals"], self.layout["ticktext"], strict=True))
        elif self.names:
            every = math.ceil(len(self.names) * 13 / max(pixels, 1))
            pairs = [(name, name) for name in self.names[:: max(every, 1)]]
        elif self.layout.get("type") == "category":
            pairs = []
        elif self.log:
            pairs = [(v, _power(v)) for v in self._decades(pixels, apart)]
            # A narrow range may have no power of ten between its ends, and no 2 or 5 times one.
            if len(pairs) < 2 and self.high - self.low < 1:
                pairs = max(pairs, self._steps(10.0**self.low, 10.0**self.high, pixels, apart), key=len)
        else:
            pairs = self._steps(self.low, self.high, pixels, apart)
        return [(share, _lines(text)) for value, text in pairs if (share := self.share(value)) is not None]

    def _steps(self, low: float, high: float, pixels: float, apart: float) -> list[tuple[float, str]]:
        rough = (high - low) / max(1.0, pixels / apart)
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough * (1 - 1e-9))
        places = max(0, -math.floor(math.log10(step) + 1e-9))
        count = range(math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6) + 1)
        values, largest = [k * step for k in count], max(abs(low), abs(high))
        texts = [f"{value:.{places}f}" for value in values]
        if largest >= 1e5 or places > 5:
            # As many digits as tell two steps apart.
            digits = math.floor(math.log10(largest)) - math.floor(math.log10(step) + 1e-9) + 1
            texts = min([f"{value:.{max(digits, 1)}g}" for value in values], texts, key=lambda each: len("".join(each)))
        return list(zip(values, texts, strict=True))

    def _decades(self, pixels: float, apart: float) -> list[float]:
        whole = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
        if len(whole) >= 2:
            every = max(1, math.ceil(len(whole) * apart / max(pixels, 1)))
            return [10.0**k for k in whole if k % every == 0] or [10.0 ** whole[0]]
        return [m * 10.0**k for k in range(math.floor(self.low), whole.stop) for m in (1, 2, 5) if self._holds(m, k)]

    def _holds(self, factor: int, power: int) -> bool:
        return self.low - 1e-9 <= math.log10(factor) + power <= self.high + 1e-9


@dataclass
class Plot:
    """One plane with its axes: what is drawn on it, and its place in the picture."""

    x: Axis
    y: Axis
    traces: list[dict[str, Any]]
    notes: list[str]
    images: list[dict[str, Any]]
    named: bool
    scale: bool
    left: float = 0
    top: float = 0
    width: float = 0
    height: float = 0

    @cached_property
    def side(self) -> float:
        """Pixels of what stands left of the plane."""
        longest = max((_wide(text) for _, text in self.y.ticks(self.height, 36)), default=0) if self.named else 0
        return longest + 10 + (LINE * len(self._title(self.y, self.height)) + 6 if self.y.title else 0)

    @property
    def turned(self) -> bool:
        """Whether the names below have no room beside one another."""
        ticks = self.x.ticks(self.width, 60)
        return bool(self.x.names) and max(map(_wide, (t for _, t in ticks)), default=0) + 8 > self.width / len(ticks)

    @property
    def foot(self) -> float:
        """Pixels of what stands below the plane."""
        texts = [text for _, text in self.x.ticks(self.width, 60)] if self.x.layout.get("showticklabels", True) else []
        lines = max(map(len, texts), default=0)
        below = 0.71 * max(map(_wide, texts), default=0) + 12 + LINE if self.turned else 8 + LINE * lines
        return below + (LINE * len(self._title(self.x, self.width)) + 6 if self.x.title else 0)

    @staticmethod
    def _title(axis: Axis, pixels: float) -> list[str]:
        whole = unescape(axis.title.replace("<br>", ""))
        return _lines(wrapped(whole, max(12, int(pixels / CHARACTER))))

    def at(self, x: Any, y: Any) -> tuple[float, float] | None:
        """The place of a point in the picture."""
        across, up = self.x.share(x), self.y.share(y)
        return None if across is None or up is None else (self._across(across), self._down(up))

    def _across(self, share: float) -> float:
        return self.left + share * self.width

    def _down(self, share: float) -> float:
        return self.top + (1 - share) * self.height

    def drawn(self) -> Iterator[str]:
        """The grid, then the data, then the text."""
        yield from self._axes()
        groups = list(dict.fromkeys(t["offsetgroup"] for t in self.traces if "offsetgroup" in t))
        step = self.height / max(len(self.y.names), 1) * 0.7 / max(len(groups), 1)
        for trace in self.traces:
            if trace["type"] == "heatmap":
                yield from self._heat(trace)
                continue
            if trace["type"] == "bar":
                yield from self._bars(trace)
                continue
            place = groups.index(trace["offsetgroup"]) - (len(groups) - 1) / 2 if "offsetgroup" in trace else 0
            yield from self._trace(trace, place * step)
        for image in self.images:
            yield _picture(image["source"], self.left, self.top, self.width, self.height)
        if self.notes:
            yield _text(
                self._across(0.5), self.top - 6 - LINE * (len(self.notes) - 1), self.notes, "middle", weight="600"
            )

    def _axes(self) -> Iterator[str]:
        right, bottom = self.left + self.width, self.top + self.height
        grid, heat = [], any(t["type"] == "heatmap" for t in self.traces)
        below, beside, turned = [], [], self.turned
        for share, text in self.x.ticks(self.width, 60):
            at = self._across(share)
            if not self.x.names and not self.images:
                grid.append(f"M{_n(at)} {_n(self.top)}V{_n(bottom)}")
            if self.x.layout.get("showticklabels", True):
                below.append(_turned(at + 4, bottom + 12, text) if turned else _text(at, bottom + 16, text))
        for share, text in self.y.ticks(self.height, 36):
            at = self._down(share)
            if not heat and not self.images:
                grid.append(f"M{_n(self.left)} {_n(at)}H{_n(right)}")
            if self.named:
                beside.append(_text(self.left - 6, at + 4 - LINE * (len(text) - 1) / 2, text))
        shared = 'text-anchor="end" transform="rotate(-45)"' if turned else 'text-anchor="middle"'
        for attributes, texts in ((shared, below), ('text-anchor="end"', beside)):
            if texts:
                yield f"<g {attributes}>{''.join(texts)}</g>"
        if grid:
            yield f'<path d="{"".join(grid)}" stroke="currentColor" stroke-opacity=".16"/>'
        lines = []
        if not self.images and not heat:
            for axis, across in ((self.x, True), (self.y, False)):
                share_of_zero = axis.share(0.0) if axis.layout.get("zeroline", not axis.names) else None
                if share_of_zero is not None and 0 <= share_of_zero <= 1:
                    x, y = _n(self._across(share_of_zero)), _n(self._down(share_of_zero))
                    lines.append(f"M{x} {_n(self.top)}V{_n(bottom)}" if across else f"M{_n(self.left)} {y}H{_n(right)}")
        if lines:
            yield f'<path d="{"".join(lines)}" stroke="currentColor" stroke-opacity=".4"/>'
        if self.x.title:
            title = self._title(self.x, self.width)
            yield _text(self._across(0.5), bottom + self.foot - 2 - LINE * (len(title) - 1) - 4, title, "middle")
        if self.y.title:
            title = self._title(self.y, self.height)
            yield _text(self.left - self.side + 14, self._down(0.5), title, "middle", turn=-90)

    def _heat(self, heat: dict[str, Any]) -> Iterator[str]:
        values = [v for line in heat["z"] for v in line if v is not None]
        low, high = heat.get("zmin", min(values, default=0.0)), heat.get("zmax", max(values, default=1.0))
        z = np.array(heat["z"], dtype=float).reshape(len(heat["y"]), len(heat["x"]))
        shares = np.clip((z - low) / ((high - low) or 1.0), 0, 1)
        bright = 1 - shares if heat["reversescale"] else shares
        if z.size > CELLS:
            yield _picture(_png(bright), self.left, self.top, self.width, self.height)
        else:
            yield from self._cells(heat, z, _viridis(bright))
        if heat["showscale"]:
            yield from self._scale(low, high, heat["reversescale"])

    def _cells(self, heat: dict[str, Any], z: np.ndarray, colours: np.ndarray) -> Iterator[str]:
        """Cells that tell their value where one points at them."""
        across, down = self.width / max(z.shape[1], 1), self.height / max(z.shape[0], 1)
        # A little larger, so that no gap shows between them.
        size = f'width="{_n(across + 0.3)}" height="{_n(down + 0.3)}"'
        for i, j in zip(*np.nonzero(np.isfinite(z)), strict=True):
            told = f"{_joined(heat['y'][i])}, {_joined(heat['x'][j])}: {z[i, j]:.3f}"
            told += f" ({unescape(heat['customdata'][i][j])})" if "customdata" in heat else ""
            place = f'x="{_n(self.left + j * across)}" y="{_n(self.top + i * down)}"'
            yield f'<rect {place} {size} fill="{_hex(colours[i, j])}">{_tip(told)}</rect>'

    def _scale(self, low: float, high: float, flipped: bool) -> Iterator[str]:
        left, shares = self.left + self.width + 14, np.linspace(0, 1, 32)[:, None]
        yield _picture(_png(shares if flipped else 1 - shares), left, self.top, 12, self.height)
        ends = Axis({"range": [low, max(low, high)]}, [], 0)
        for share, text in ends.ticks(self.height, 40):
            yield _text(left + 17, self._down(share) + 4, text)

    def _bars(self, trace: dict[str, Any]) -> Iterator[str]:
        """Horizontal bars, each from where it begins; they tell their value where one points at them."""
        high, colour, name = 0.7 * self.height / max(len(self.y.names), 1), trace["marker"]["color"], trace["name"]
        for row, base, value in zip(trace["y"], trace["base"], trace["x"], strict=True):
            start, end = self.at(base, row), self.at(base + value, row)
            if start is None or end is None or not value:
                continue
            left, right = (min(max(x, self.left), self.left + self.width) for x in sorted((start[0], end[0])))
            place = f'x="{_n(left)}" y="{_n(start[1] - high / 2)}" width="{_n(right - left)}" height="{_n(high)}"'
            told = _tip(f"{_joined(row)}, {_joined(name)}: {value:.3g}")
            yield f'<rect {place} fill="{colour}">{told}</rect>'

    def _trace(self, trace: dict[str, Any], offset: float) -> Iterator[str]:
        placed = [self.at(x, y) for x, y in zip(trace["x"], trace["y"], strict=True)]
        points = [None if p is None else (p[0], p[1] + offset) for p in placed]
        modes, opacity = trace.get("mode", "").split("+"), trace.get("opacity", 1)
        name = _joined(trace.get("name", ""))
        hover = unescape(trace["hovertemplate"].split(": %{")[0]) if "%{x}" in trace.get("hovertemplate", "") else name
        if "lines" in modes:
            yield from self._line(trace, points, opacity, hover)
        if "error_x" in trace:
            yield self._reach(trace, points)
        if "markers" in modes:
            yield from self._markers(trace, points, hover)
        if "text" in modes:
            yield from self._words(trace, points, "markers" in modes)

    def _line(
        self, trace: dict[str, Any], points: list[tuple[float, float] | None], opacity: float, name: str
    ) -> Iterator[str]:
        line, steps = trace["line"], trace["line"].get("shape") == "hvh"
        runs: list[list[tuple[float, float]]] = [[]]
        for point in points:
            if point is not None:
                runs[-1].append(point)
            elif runs[-1]:
                runs.append([])
        runs = [_stepped(run) if steps else run for run in runs if run]
        paths = [_path(run) for run in runs]
        dash = f' stroke-dasharray="{DASH[line["dash"]]}"' if line["dash"] in DASH else ""
        fill = "none"
        if "fill" in trace and runs:
            floor = self._down(self.y.share(0.0) or 0.0)
            paths = [f"{p}V{_n(floor)}H{_n(run[0][0])}z" for p, run in zip(paths, runs, strict=True)]
            fill = f'{line["color"]}" fill-opacity=".35'
        yield (
            f'<path d="{"".join(paths)}" fill="{fill}" stroke="{line["color"]}" stroke-width="{line["width"]}"'
            f'{dash} opacity="{opacity}">{_tip(name)}</path>'
        )

    def _reach(self, trace: dict[str, Any], points: list[tuple[float, float] | None]) -> str:
        """Intervals, with a cap at either end."""
        out, bars = [], trace["error_x"]
        colours = _each(trace["marker"]["color"], len(points))
        for point, x, up, down, colour in zip(
            points, trace["x"], bars["array"], bars["arrayminus"], colours, strict=True
        ):
            ends = [self.x.share(x - down), self.x.share(x + up)]
            if point is None or None in ends or not (up or down):
                continue
            left, right = (self._across(end) for end in ends if end is not None)
            y = point[1]
            out.append(
                f'<path d="M{_n(left)} {_n(y)}H{_n(right)}M{_n(left)} {_n(y - 4)}v8M{_n(right)} {_n(y - 4)}v8"'
                f' stroke="{colour}" stroke-width="1.5"/>'
            )
        return "".join(out)

    def _markers(self, trace: dict[str, Any], points: list[tuple[float, float] | None], name: str) -> Iterator[str]:
        marker = {"symbol": "circle", "opacity": 1, "color": trace.get("line", {}).get("color"), **trace["marker"]}
        names, skipped = trace.get("customdata"), trace.get("hoverinfo") == "skip"
        alone = len(points) <= (MANY if names else TOLD) and not skipped
        colours = _each(marker["color"], len(points))
        if alone:
            for k, (point, colour) in enumerate(zip(points, colours, strict=True)):
                if point is not None:
                    told = f"{unescape(names[k])} ({name})" if names and name else self._told(trace, k, name)
                    yield _sign(marker, [[point]], colour, _tip(told))
            return
        known = list(dict.fromkeys((round(2 * p[0]) / 2, round(2 * p[1]) / 2) for p in points if p is not None))
        layers = [known[k::LAYERS] for k in range(LAYERS)] if len(known) > FEW else [known]
        if known:
            yield _sign(marker, layers, colours[0], _tip(name))

    def _told(self, trace: dict[str, Any], k: int, name: str) -> str:
        """What a point stands for."""
        x, y = trace["x"][k], trace["y"][k]
        if self.y.names:
            bars = trace.get("error_x")
            reach = (
                f" [{x - bars['arrayminus'][k]:.4g}, {x + bars['array'][k]:.4g}]" if bars and bars["array"][k] else ""
            )
            return f"{_joined(y)}, {name}: {x:.4g}{reach}"
        return f"{name}: {_joined(x) if isinstance(x, str) else f'{x:.5g}'}, {y:.5g}"

    def _words(self, trace: dict[str, Any], points: list[tuple[float, float] | None], beside: bool) -> Iterator[str]:
        """Names above their points, or values in the cells of a heat map if there is room for them."""
        texts, colours = trace["text"], _each(trace["textfont"]["color"], len(points))
        longest = max(map(len, texts), default=0)
        if not beside and CHARACTER * longest > self.width / max(len(self.x.names), 1):
            return
        for point, text, colour in zip(points, texts, colours, strict=False):
            if point is not None:
                yield _text(
                    point[0], point[1] + (-8 if beside else 4), _lines(text), "middle", 10 if beside else 11, colour
                )


def _plots(layout: dict[str, Any], data: Sequence[dict[str, Any]], width: float, heading: float) -> list[Plot]:
    """The planes of a drawing, in their places."""
    # Without data there is one plane with its axes.
    suffixes = list(dict.fromkeys(trace.get("xaxis", "x")[1:] for trace in data)) or [""]
    notes = {note["xref"].split()[0][1:]: _lines(note["text"]) for note in layout.get("annotations", [])}
    grid, margin = layout.get("grid", {"rows": 1, "columns": 1}), layout["margin"]
    columns, before = grid["columns"], grid["rows"]
    # Panels without titles are a matrix, which keeps its form.
    if width < NARROW and columns > 2 and notes:
        columns = 2
    scale = any(trace.get("showscale") for trace in data)
    share = (layout["height"] - margin["t"] - margin["b"]) / before
    high = share * (1 - grid.get("ygap", 0)) - (40 if scale else 0)
    plots = []
    for k, suffix in enumerate(suffixes):
        traces = [trace for trace in data if trace.get("xaxis", "x")[1:] == suffix]
        across, down = _values(traces, "x"), _values(traces, "y")
        # Dots and bars reach beyond their places.
        broad = any("markers" in trace.get("mode", "") or "fill" in trace for trace in traces)
        x = Axis(layout[f"xaxis{suffix}"], across, 0.05 if broad else 0.0)
        y = Axis(layout[f"yaxis{suffix}"], down, 0.05)
        # Heat maps of one line share the names of their rows.
        named = k % columns == 0 if scale else y.layout.get("showticklabels", True)
        if scale and named:
            y.title = layout["yaxis"]["title"]["text"]
        plot = Plot(x, y, traces, notes.get(suffix, []), layout.get("images", []), named, scale)
        plot.height = high
        plots.append(plot)
    return _arranged(plots, columns, width, heading)


def _arranged(plots: list[Plot], columns: int, width: float, top: float) -> list[Plot]:
    sides = [max((p.side for p in plots[c::columns]), default=0) + 8 for c in range(columns)]
    right = SCALE if any(p.scale for p in plots) else 20
    across = max(40.0, (width - sum(sides) - right - 8) / columns)
    for start in range(0, len(plots), columns):
        row = plots[start : start + columns]
        top += 14 + max(LINE * len(p.notes) for p in row)
        for c, plot in enumerate(row):
            plot.top, plot.left, plot.width = top, 4 + sum(sides[: c + 1]) + c * across, across
            if plot.images:
                # Pixels are square.
                unit = min(across / plot.x.high, 70.0)
                plot.width, plot.height = unit * plot.x.high, unit * plot.y.high
        top += max(p.height + p.foot for p in row)
    return plots


def points(drawing: Drawing) -> int:
    """Points of the groups that have many."""
    return sum(len(trace["x"]) for trace in drawing["data"] if _has_many(trace))


def _has_many(trace: dict[str, Any]) -> bool:
    # Dots with a line each, which have groups beside one another, are no cloud.
    return bool(trace.get("mode") == "markers" and "offsetgroup" not in trace and len(trace["x"]) > FEW)


def _thinned(trace: dict[str, Any], share: float) -> dict[str, Any]:
    """A group of points with a share of them, evenly along their order; at least `FEW`."""
    if share >= 1 or not _has_many(trace):
        return trace
    n = len(trace["x"])
    kept = np.linspace(0, n - 1, max(FEW, int(share * n))).round().astype(int)
    lists: dict[str, Any] = {name: [trace[name][k] for k in kept] for name in ("x", "y", "customdata") if name in trace}
    return {**trace, **lists}


def _values(traces: Sequence[dict[str, Any]], axis: str) -> list[Any]:
    """All that an axis has to hold."""
    values = [v for trace in traces for v in trace[axis]]
    if axis == "y":
        return values + [0.0 for trace in traces if "fill" in trace]
    for trace in traces:
        values += [x + base for x, base in zip(trace["x"], trace.get("base", []), strict=False)]
        bars = trace.get("error_x", {"array": [], "arrayminus": []})
        values += [x + up for x, up in zip(trace["x"], bars["array"], strict=False)]
        values += [x - down for x, down in zip(trace["x"], bars["arrayminus"], strict=False)]
    return values


def _legend(
    layout: dict[str, Any], data: Sequence[dict[str, Any]], width: float, top: float
) -> tuple[list[str], float]:
    """Names and signs in lines below the plot, and where they end."""
    named = [trace for trace in data if trace.get("name") and trace.get("showlegend", True)]
    # A single group needs no name, unless it is that of the crosses at the edge.
    alone = len(named) < 2 and not any(trace.get("meta") == EDGE for trace in named)
    if alone or not layout.get("showlegend", True):
        return [], top + 6
    out: list[str] = []
    x, y, lines = 12.0, top + 14, 1
    for trace in named:
        text = _lines(trace["name"])
        needs = SIGN + _wide(text) + 10
        if x > 12 and x + needs > width:
            x, y, lines = 12.0, y + LINE * lines + 5, 1
        marker, line = trace.get("marker"), trace.get("line")
        if line:
            dash = f' stroke-dasharray="{DASH[line["dash"]]}"' if line["dash"] in DASH else ""
            out.append(f'<path d="M{_n(x)} {_n(y)}h24" stroke="{line["color"]}" stroke-width="2.5"{dash}/>')
        if marker and "color" in marker:
            colour = marker["color"] if isinstance(marker["color"], str) else "currentColor"
            out.append(_sign({"symbol": "circle", **marker, "size": 9, "opacity": 1}, [[(x + 12, y)]], colour, ""))
        out.append(_text(x + 30, y + 4, text))
        x, lines = x + needs, max(lines, len(text))
    return out, y + LINE * lines + 2


def _sign(marker: dict[str, Any], layers: Sequence[Sequence[tuple[float, float]]], colour: str, tip: str) -> str:
    """Signs of one colour as a path for each layer."""
    r, symbol = marker["size"] / 2, marker["symbol"]
    d = _n(1.2 * r)
    shape = {
        "circle": "h0",
        "diamond": f"m0 -{d}l{d} {d} -{d} {d} -{d} -{d}z",
        "cross": f"m{_n(-r)} 0h{_n(2 * r)}m{_n(-r)} {_n(-r)}v{_n(2 * r)}",
        "line-ns-open": f"m0 {_n(-r)}v{_n(2 * r)}",
    }[symbol]
    stroke = {"circle": 2 * r, "diamond": 0, "cross": 3, "line-ns-open": 3}[symbol]
    paint = f'fill="{colour}"' if not stroke else f'stroke="{colour}" stroke-width="{_n(stroke)}"'
    if symbol == "circle":
        # Their units are half pixels.
        paint = f'stroke="{colour}" stroke-width="{_n(2 * stroke)}" stroke-linecap="round" transform="scale(.5)"'
    seen = marker.get("opacity", 1)
    opacity = f' {"stroke" if stroke else "fill"}-opacity="{seen}"' if seen != 1 else ""
    each = _dots if symbol == "circle" else lambda points: "".join(f"M{_n(x)} {_n(y)}{shape}" for x, y in points)
    paths = [each(points) for points in layers]
    if len(paths) == 1:
        return f'<path d="{paths[0]}" {paint}{opacity}>{tip}</path>'
    drawn = "".join(f'<path d="{path}"/>' for path in paths)
    return f"<g {paint}{opacity}>{tip}{drawn}</g>"


def _dots(points: Sequence[tuple[float, float]]) -> str:
    """Lines of no length, which round ends make dots, in units of half a pixel.

    They are in the order of short steps, which take few letters: to and fro through strips of the plane.
    """
    places = [(round(2 * x), round(2 * y)) for x, y in points]
    places.sort(key=lambda p: (p[1] // STRIP, p[0] * (-1) ** (p[1] // STRIP)))
    path = f"M{places[0][0]} {places[0][1]}h0"
    for (left, before), (x, y) in pairwise(places):
        path += f"m{x - left} {y - before}h0".replace(" -", "-")
    return path


def _path(run: Sequence[tuple[float, float]]) -> str:
    """A line. Its level and upright parts are one number each, and level steps of one direction are one step."""
    places = [(_n(x), _n(y)) for x, y in run]
    corners = [
        place
        for k, place in enumerate(places)
        if k in (0, len(places) - 1)
        or not (places[k - 1][1] == place[1] == places[k + 1][1])
        or (run[k][0] - run[k - 1][0]) * (run[k + 1][0] - run[k][0]) < 0
    ]
    path = f"M{corners[0][0]} {corners[0][1]}"
    for (left, before), (x, y) in pairwise(corners):
        if y == before:
            path += f"H{x}" if x != left else ""
        elif x == left:
            path += f"V{y}"
        else:
            # Steps are shorter to write than places.
            path += f"l{_n(float(x) - float(left))} {_n(float(y) - float(before))}".replace(" -", "-")
    return path


def _stepped(run: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Steps that change halfway between two points."""
    middles = [(a[0] + b[0]) / 2 for a, b in pairwise(run)]
    half = (middles[0] - run[0][0]) if middles else 0.0
    edges = [run[0][0] - half, *middles, run[-1][0] + half]
    return [(x, y) for k, (_, y) in enumerate(run) for x in (edges[k], edges[k + 1])]


def _text(
    x: float,
    y: float,
    lines: Sequence[str],
    anchor: str = "start",
    size: int = 12,
    colour: str = "",
    weight: str = "",
    turn: int = 0,
) -> str:
    """Lines of text, escaped."""
    attributes = f' text-anchor="{anchor}"' if anchor != "start" else ""
    attributes += f' font-size="{size}"' if size != 12 else ""
    attributes += f' font-weight="{weight}"' if weight else ""
    attributes += f' fill="{colour}"' if colour else ""
    attributes += f' transform="rotate({turn} {_n(x)} {_n(y)})"' if turn else ""
    if len(lines) == 1:
        return f'<text x="{_n(x)}" y="{_n(y)}"{attributes}>{_safe(lines[0])}</text>'
    spans = "".join(f'<tspan x="{_n(x)}" y="{_n(y + LINE * k)}">{_safe(line)}</tspan>' for k, line in enumerate(lines))
    return f"<text{attributes}>{spans}</text>"


def _turned(x: float, y: float, lines: Sequence[str]) -> str:
    """Text at a place of the picture, within a group that is turned by -45 degrees."""
    return _text((x - y) * math.sqrt(0.5), (x + y) * math.sqrt(0.5), lines)


def _picture(source: str, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<image {place} preserveAspectRatio="none" image-rendering="pixelated" href="{escape(source)}"/>'


def _tip(text: str) -> str:
    return f"<title>{_safe(text)}</title>" if text else ""


def _safe(text: str) -> str:
    """Text of an element: no markup, and no character that XML forbids."""
    known = printable(text.encode("utf-8", "replace").decode("utf-8"))
    return escape(re.sub("[\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", known))


def _lines(text: str) -> list[str]:
    """The lines of a text of a drawing, where markup is escaped."""
    return [unescape(line) for line in text.split("<br>")]


def _joined(text: str) -> str:
    return "".join(_lines(text))


def _wide(lines: Sequence[str]) -> float:
    return CHARACTER * max(map(len, lines), default=0)


def _each(value: Any, n: int) -> list[str]:
    return [value] * n if isinstance(value, str) else list(value)


def _n(value: float) -> str:
    """A coordinate: a tenth of a pixel is more than anybody sees."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _power(value: float) -> str:
    """A tick of a logarithmic axis."""
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    mantissa, _, power = f"{value:.0e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if mantissa == "1" else f"{mantissa}·10{raised}"


def _viridis(shares: np.ndarray) -> np.ndarray:
    """Red, green and blue of shares from 0 to 1; of what is not known, anything."""
    stops = np.array([[int(stop[i : i + 2], 16) for i in (0, 2, 4)] for stop in VIRIDIS])
    known, places = np.nan_to_num(shares), np.linspace(0, 1, len(VIRIDIS))
    return np.stack([np.interp(known, places, stops[:, k]) for k in range(3)], axis=-1).round().astype(np.uint8)


def _hex(colour: np.ndarray) -> str:
    return "#" + "".join(f"{v:02x}" for v in colour)


def _png(shares: np.ndarray) -> str:
    """A pixel for each cell, as the address of a picture; what is not known is transparent."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    known, last = np.isfinite(shares), SHADES - 1
    used, pixels = np.unique(np.where(known, np.nan_to_num(shares) * last, SHADES).round(), return_inverse=True)
    pixels = pixels.reshape(len(shares), -1).astype(np.uint8)
    palette = _viridis(np.minimum(used / last, 1.0)).tobytes()
    # Each line begins with its filter: none.
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = struct.pack(">IIBBBBB", shares.shape[1], len(shares), 8, 3, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"PLTE", palette)
    if not known.all():
        # The last colour of the palette.
        parts += chunk(b"tRNS", b"\xff" * (len(used) - 1) + b"\0")
    parts += chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()
