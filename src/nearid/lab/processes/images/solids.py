"""Solids in a room, in colour: a cube, cylinder, ball or capsule of any size on a floor, seen from above the floor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from nearid.lab.processes.assumptions import Assumption
from nearid.lab.processes.images.base import SOFT, FactorImages, Setting, hue_colours
from nearid.lab.processes.images.factors import Factor, category, circle, interval
from nearid.lab.processes.images.kernels import CYLINDER_RADIUS, SIN_VIEW, draw_solids
from nearid.moments import Floats

# The factors of Shapes3D (Burgess & Kim 2018), with hues that go all the way round.
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
    """One solid on the floor of a room, after Shapes3D.

    Factors: floor_hue, wall_hue and object_hue in turns, scale, shape (0 cube, 1 cylinder, 2 ball, 3 capsule), and
    orientation in radians, which turns solid and room alike.

    Parameters
    ----------
    side : int
    factors : tuple of Factor
        By default those of Shapes3D, on whose grid there are 480,000 images.
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
