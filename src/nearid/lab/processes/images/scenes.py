"""Scenes with known factors: flat sprites on black as in dSprites, and solids in a room as in Shapes3D."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from nearid.lab.processes.images.base import SOFT, FactorImages, Setting, hue_colours
from nearid.lab.processes.images.factors import Factor, category, circle, interval
from nearid.lab.processes.images.kernels import CYLINDER_RADIUS, ELLIPSE_HALF, SIN_VIEW, draw_solids, draw_sprites
from nearid.lab.processes.images.outlines import Outline, heart
from nearid.lab.processes.spaces import Assumption
from nearid.moments import Floats

# The factors of dSprites (Matthey et al. 2017), except that the grid of the rotation has no duplicate at its end.
DSPRITES: tuple[Factor, ...] = (
    category("shape", 3),
    interval("scale", 0.5, 1.0, 6),
    circle("rotation", 2 * math.pi, 40),
    interval("x", 0.0, 1.0, 32),
    interval("y", 0.0, 1.0, 32),
)
HUE = circle("hue", 1.0, 10)
# As shares of the frame: radius of the circle around a sprite of scale 1, and position of the centre at x or y of 0.
RADIUS = 0.23
MARGIN = 0.25
# Order of the rotational symmetry of each shape.
SYMMETRY = (4, 2, 1)


@dataclass(frozen=True)
class SpriteProcess(FactorImages):
    """One sprite on black, as in dSprites.

    Factors: shape (0 square, 1 ellipse, 2 heart), scale, rotation in radians, x and y from 0 to 1, and hue in turns;
    images are white on black unless the hue is among the factors.

    Parameters
    ----------
    factors : tuple of Factor
        Default: those of dSprites, whose grid has 737,280 images. (*DSPRITES, HUE) adds colour. category("shape", 1, 2)
        instead of the shape gives only hearts.
    """

    side: int = 64
    factors: tuple[Factor, ...] = DSPRITES

    settings: ClassVar[Mapping[str, Setting]] = MappingProxyType(
        {
            "shape": Setting(0, 2, 0),
            "scale": Setting(0.1, 1.0, 0.75),
            "rotation": Setting(-2 * math.pi, 2 * math.pi, 0.0, 2 * math.pi),
            "x": Setting(0.0, 1.0, 0.5),
            "y": Setting(0.0, 1.0, 0.5),
            "hue": Setting(0.0, 1.0, 0.0, 1.0),
        }
    )
    shapes: ClassVar[tuple[str, ...]] = ("square", "ellipse", "heart")

    @property
    def channels(self) -> int:
        return 3 if "hue" in self.names else 1

    @property
    def _thinnest(self) -> float:
        return RADIUS * self.side * self._range("scale")[0] * min(ELLIPSE_HALF, _heart().thickness)

    def _draw(self, z: Floats, out: Floats) -> None:
        places = np.column_stack([self._column(z, "x"), self._column(z, "y")])
        outline = _heart()
        draw_sprites(
            self._column(z, "shape").astype(np.int64),
            RADIUS * self.side * self._column(z, "scale"),
            self._column(z, "rotation"),
            self.side * (MARGIN + (1 - 2 * MARGIN) * places),
            hue_colours(self._column(z, "hue")) if self.channels == 3 else np.ones((len(z), 1)),
            outline.cosines,
            outline.sines,
            outline.bounds,
            SOFT,
            out,
        )

    def _injective(self) -> Assumption:
        needed = "images determine the factors"
        low, high = self._range("rotation")
        alike = [
            f"{self.shapes[shape]}: the same after a turn by {360 // SYMMETRY[shape]} degrees"
            for shape in self._shapes_drawn()
            if SYMMETRY[shape] > 1 and high - low >= 2 * math.pi / SYMMETRY[shape]
        ]
        return Assumption("injective rendering", needed, not alike, "; ".join(alike) or "no two factors look the same")


@lru_cache(maxsize=1)
def _heart() -> Outline:
    return heart()


# The factors of Shapes3D (Burgess & Kim 2018), with hues of the full circle.
SHAPES3D: tuple[Factor, ...] = (
    circle("floor_hue", 1.0, 10),
    circle("wall_hue", 1.0, 10),
    circle("object_hue", 1.0, 10),
    interval("scale", 0.75, 1.25, 8),
    category("shape", 4),
    interval("orientation", -math.pi / 6, math.pi / 6, 15),
)
# Unit of length of a solid of scale 1, as a share of the frame.
UNIT = 0.16


@dataclass(frozen=True)
class SolidProcess(FactorImages):
    """One solid on the floor of a room, as in Shapes3D.

    Factors: floor_hue, wall_hue and object_hue in turns, scale, shape (0 cube, 1 cylinder, 2 ball, 3 capsule), and
    orientation in radians, which rotates both the solid and the room.

    Parameters
    ----------
    factors : tuple of Factor
        Default: those of Shapes3D, whose grid has 480,000 images.
    """

    side: int = 64
    factors: tuple[Factor, ...] = SHAPES3D

    settings: ClassVar[Mapping[str, Setting]] = MappingProxyType(
        {
            "floor_hue": Setting(0.0, 1.0, 0.6, 1.0),
            "wall_hue": Setting(0.0, 1.0, 0.45, 1.0),
            "object_hue": Setting(0.0, 1.0, 0.0, 1.0),
            "scale": Setting(0.2, 1.4, 1.0),
            "shape": Setting(0, 3, 0),
            # Beyond an eighth of a turn the cube would show another pair of faces.
            "orientation": Setting(-0.75, 0.75, 0.0),
        }
    )
    shapes: ClassVar[tuple[str, ...]] = ("cube", "cylinder", "ball", "capsule")

    @property
    def channels(self) -> int:
        return 3

    @property
    def _thinnest(self) -> float:
        return UNIT * self.side * self._range("scale")[0] * CYLINDER_RADIUS * SIN_VIEW

    def _draw(self, z: Floats, out: Floats) -> None:
        draw_solids(
            self._column(z, "shape").astype(np.int64),
            UNIT * self.side * self._column(z, "scale"),
            self._column(z, "orientation"),
            hue_colours(self._column(z, "floor_hue")),
            hue_colours(self._column(z, "wall_hue")),
            hue_colours(self._column(z, "object_hue")),
            SOFT,
            out,
        )

    def _injective(self) -> Assumption:
        note = "each hue has pixels of its own, and the corner of the room shows the orientation of round solids"
        return Assumption("injective rendering", "images determine the factors", True, note)
