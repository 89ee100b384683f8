"""Write the drawings of the pages on concepts, as SVG files in docs/concepts/drawings.

    python docs/concepts/drawings.py

Colours follow the reader's light or dark page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np

DRAWN = Path(__file__).parent / "drawings"
STYLE = """
text { font: 14px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1c2024; text-anchor: middle }
.title { font-weight: 600 } .small { font-size: 12.5px } .left { text-anchor: start }
.page { fill: #ffffff } .box { fill: none; stroke: #8a939b; stroke-width: 1 }
.line { stroke: #5a636b; stroke-width: 1.5; fill: none } .thin { stroke: #8a939b; stroke-width: 1; fill: none }
.one { fill: #0072b2 } .two { fill: #d55e00 } .three { fill: #009e73 }
.one-line { stroke: #0072b2; stroke-width: 2; fill: none } .two-line { stroke: #d55e00; stroke-width: 2; fill: none }
.three-line { stroke: #009e73; stroke-width: 2; fill: none } .pale { fill: #e3e8ec }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9ec } .page { fill: #14171a } .line { stroke: #b6bec6 } .pale { fill: #333b42 }
.one { fill: #56b4e9 } .two { fill: #f0904a } .three { fill: #2fc99a }
.one-line { stroke: #56b4e9 } .two-line { stroke: #f0904a } .three-line { stroke: #2fc99a } }
"""
ARROW = (
    '<marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L10 5 L0 10 z" fill="#8a939b"/></marker>'
)
Points = np.ndarray


def svg(width: int, height: int, about: str, parts: Iterable[str]) -> str:
    """A whole picture; `about` is read to those who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>{escape(about)}</title><style>{STYLE}</style><defs>{ARROW}</defs>'
        f'<rect class="page" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """A line of text; its middle is at x, or its start for the kind "left"."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def line(ends: Sequence[float], kind: str = "line", *, arrow: bool = False) -> str:
    """A straight line from (x, y) to (x, y)."""
    x1, y1, x2, y2 = (f"{end:.1f}" for end in ends)
    head = ' marker-end="url(#arrow)"' if arrow else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{kind}"{head}/>'


def box(x: float, y: float, width: float, height: float, kind: str = "box") -> str:
    """A rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" class="{kind}"/>'


def dots(points: Points, centre: tuple[float, float], size: float, kind: str, radius: float = 2.2) -> str:
    """Points of the plane; `size` pixels are one unit, and up is up."""
    places = ((centre[0] + size * x, centre[1] - size * y) for x, y in points)
    circles = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in places)
    return f'<g class="{kind}" fill-opacity="0.75">{"".join(circles)}</g>'


def turned(points: Points, degrees: float) -> Points:
    """Points turned about the origin."""
    a = np.deg2rad(degrees)
    return np.asarray(points @ np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]))


def letter() -> Points:
    """Points along the letter F, which has no symmetry: every map of it can be seen."""
    t = np.linspace(0, 1, 25)[:, None]
    strokes = [((-0.5, -1.0), (-0.5, 1.0)), ((-0.5, 1.0), (0.7, 1.0)), ((-0.5, 0.1), (0.4, 0.1))]
    ends = [(np.array(a), np.array(b)) for a, b in strokes]
    return np.concatenate([a + t[::step] * (b - a) for step, (a, b) in zip((1, 2, 2), ends, strict=True)])


def statistical_structural() -> str:
    """Two runs that are compared with each other, and with the truth."""
    f = letter()
    parts = [
        text(130, 28, "the world", "title"),
        text(400, 28, "the model", "title"),
        text(650, 28, "questions", "title"),
    ]
    parts += [box(40, 120, 180, 150), dots(f, (130, 195), 55, "three"), text(130, 292, "true factors", "small")]
    for top, name, kind, angle in ((50, "run 1", "one", 35.0), (220, "run 2", "two", -70.0)):
        parts += [box(320, top, 160, 130), dots(turned(f, angle), (400, top + 65), 46, kind)]
        parts += [text(400, top + 148, name, "small"), line((224, 195, 314, top + 65), arrow=True)]
    parts += [
        line((492, 115, 492, 285), "one-line"),
        line((484, 115, 492, 115), "one-line"),
        line((484, 285, 492, 285), "one-line"),
    ]
    parts += [
        text(506, 178, "statistical", "title left"),
        text(506, 198, "Are the runs the same as each other?", "small left"),
    ]
    parts += [text(506, 217, "You need two runs. nearid compare", "small left")]
    parts += [
        line((130, 300, 130, 405), "three-line"),
        line((130, 405, 400, 405), "three-line"),
        line((400, 380, 400, 405), "three-line"),
    ]
    parts += [
        text(506, 400, "structural", "title left"),
        text(506, 420, "Is a run the same as the truth?", "small left"),
    ]
    parts += [
        text(506, 439, "You need the true factors. nearid score", "small left"),
        line((400, 405, 496, 405), "three-line"),
    ]
    return svg(780, 460, "Statistical identifiability compares runs with each other, structural with the truth.", parts)


def ladder() -> str:
    """The same points under the maps of each group."""
    f = letter()
    spread = f * [1.5, 0.7]
    rungs = [
        ("source", f, "one", ("one run",)),
        ("signed permutation", f[:, ::-1] * [-1, 1], "two", ("axes swapped or", "flipped, one scale")),
        ("scaled permutation", f[:, ::-1] * [-1.4, 0.6], "two", ("and a scale for", "each axis")),
        ("rigid", turned(f, 35), "two", ("turned or mirrored,", "one scale")),
        ("linear", turned(turned(spread, 30) * [1.0, 0.75], 20), "two", ("also stretched", "and sheared")),
    ]
    parts = []
    for k, (name, points, kind, words) in enumerate(rungs):
        x = 90 + 172 * k
        parts += [text(x, 26, name, "title"), line((x - 66, 120, x + 66, 120), "thin"), line((x, 45, x, 195), "thin")]
        parts.append(dots(points, (x, 120), 42, kind))
        parts += [text(x, 218 + 17 * at, word, "small") for at, word in enumerate(words)]
    return svg(
        870,
        250,
        "The letter F under a signed permutation, a scaled permutation, a rigid motion and a linear map.",
        parts,
    )


def epsilon() -> str:
    """The error of a row over the diameter of the target."""
    rng = np.random.default_rng(3)
    target = np.clip(rng.normal(size=(60, 2)), -2.1, 2.1) * [1.0, 0.65]
    apart = np.linalg.norm(target[:, None] - target[None], axis=2)
    i, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
    source = target + rng.normal(scale=0.05, size=target.shape)
    shown = int(np.argmin(np.linalg.norm(target - [-0.2, 0.9], axis=1)))
    source[shown] = target[shown] + [0.45, 0.25]
    centre, size = (250.0, 165.0), 92.0

    def place(point: Points) -> tuple[float, float]:
        return centre[0] + size * point[0], centre[1] - size * point[1]

    parts = [line((*place(target[i]), *place(target[j])), "three-line"), dots(target, centre, size, "two", 3.4)]
    parts += [dots(source, centre, size, "one", 2.4), line((*place(target[shown]), *place(source[shown])), "two-line")]
    parts += [text(500, 70, "target rows", "small left"), '<circle cx="486" cy="66" r="5" class="two"/>']
    parts += [text(500, 95, "source rows after the map", "small left"), '<circle cx="486" cy="91" r="4" class="one"/>']
    parts += [line((476, 125, 496, 125), "two-line"), text(506, 130, "error of one row", "small left")]
    parts += [line((476, 155, 496, 155), "three-line"), text(506, 160, "diameter of the target", "small left")]
    parts += [
        text(476, 205, "epsilon = error / diameter", "title left"),
        text(476, 228, "0: the rows coincide", "small left"),
    ]
    return svg(
        720,
        330,
        "Epsilon is the distance of a mapped row from its target row over the largest distance of two target rows.",
        parts,
    )


def whitening_ica() -> str:
    """Points after mixing, whitening and ICA."""
    rng = np.random.default_rng(1)
    sources = rng.uniform(-1.7, 1.7, size=(260, 2))
    sources = (sources - sources.mean(axis=0)) / sources.std(axis=0)
    mixed = sources @ np.array([[1.0, 0.35], [0.75, 0.6]])
    # The same rotation for all: whitening finds the square, but not how it is turned.
    white = turned(sources, 28)
    steps = [
        ("true factors", sources, "three", ("independent",)),
        ("one run", mixed * 0.72, "one", ("mixed by an", "unknown linear map")),
        ("whitened", white, "one", ("stretch and shear", "are removed")),
        ("ICA", sources[:, ::-1] * [1, -1], "one", ("the rotation is removed;", "order and signs stay open")),
    ]
    parts = []
    for k, (name, points, kind, words) in enumerate(steps):
        x = 100 + 200 * k
        parts += [text(x, 26, name, "title"), line((x - 80, 125, x + 80, 125), "thin"), line((x, 45, x, 205), "thin")]
        parts.append(dots(points, (x, 125), 36, kind, 1.8))
        parts += [text(x, 228 + 17 * at, word, "small") for at, word in enumerate(words)]
        parts += [line((x - 118, 125, x - 86, 125), arrow=True)] if k else []
    return svg(
        800,
        260,
        "True factors, a linear mixture of them, the whitened mixture, and the components that ICA finds.",
        parts,
    )


def dependent_rows() -> str:
    """Folds that separate copies, and folds that keep blocks together."""
    rng = np.random.default_rng(2)
    images, copies = 8, 5
    random_fold = rng.permutation(np.arange(images * copies) % 5)
    blocked_fold = np.repeat(np.array([2, 0, 4, 1, 0, 3, 2, 1]), copies)
    parts = [text(20, 28, "Eight images, five rows each. Fold 1 is held out:", "left")]
    designs = (("random folds leak", random_fold, 62), ("whole blocks do not", blocked_fold, 190))
    for name, fold, top in designs:
        parts.append(text(20, top + 4, name, "title left"))
        for row in range(images * copies):
            x = 20 + 17 * row + 12 * (row // copies)
            parts.append(box(x, top + 18, 14, 34, "two" if fold[row] == 0 else "pale"))
        for image in range(images):
            parts.append(text(20 + (17 * copies + 12) * image + 42, top + 70, f"image {image + 1}", "small"))
    leaks = "Copies of held-out rows are fitted on: the score is too high."
    parts += [text(20, 156, leaks, "small left")]
    parts += [text(20, 284, "All rows of an image are held out together: the score is honest.", "small left")]
    parts += [box(590, 16, 14, 14, "two"), text(610, 28, "held out", "small left")]
    parts += [box(690, 16, 14, 14, "pale"), text(710, 28, "fitted on", "small left")]
    return svg(800, 300, "Random folds hold out single rows of every image; blocks hold out whole images.", parts)


DRAWINGS = {
    "statistical-structural": statistical_structural,
    "ladder": ladder,
    "epsilon": epsilon,
    "whitening-ica": whitening_ica,
    "dependent-rows": dependent_rows,
}


if __name__ == "__main__":
    DRAWN.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        (DRAWN / f"{name}.svg").write_text(draw(), encoding="utf-8")
