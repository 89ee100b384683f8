"""Compiled drawing of images: every pixel is a continuously differentiable function of every parameter.

An edge is a smooth step across it, over `soft` pixels to either side. That is the image blurred by the biweight kernel
across the edge: exact for straight edges and their right-angled corners, to first order in the curvature for others.
Lengths are in pixels, x to the right and y down; images are (size, channels, side, side).
"""

import math

from numba import njit

# Sums may be reordered for SIMD.
FAST = {"reassoc", "contract", "nsz", "arcp"}
SQUARE, ELLIPSE, HEART = range(3)
CUBE, CYLINDER, SPHERE, CAPSULE = range(4)
# Half the side of a square, and the smaller half-axis of an ellipse, inside the unit circle.
SQUARE_HALF = math.sqrt(0.5)
ELLIPSE_HALF = 0.5
# The camera looks down at solids by this angle.
SIN_VIEW = 0.4
COS_VIEW = math.sqrt(1 - SIN_VIEW**2)
CYLINDER_RADIUS = 0.95
# Where the floor meets the wall, and where solids stand, as shares of the frame from above.
HORIZON = 0.5
GROUND = 0.74


@njit(fastmath=FAST, nogil=True, cache=True)
def _step(t):  # type: ignore[no-untyped-def]
    """0 below -1, 1 above 1, between them the integral of the biweight kernel (15/16)(1 - t^2)^2."""
    t = min(max(t, -1.0), 1.0)
    s = t * t
    # Near the ends, rounding may give values slightly outside of [0, 1].
    return min(max(0.5 + t * (15.0 - 10.0 * s + 3.0 * s * s) / 16.0, 0.0), 1.0)


@njit(fastmath=FAST, nogil=True, cache=True)
def _bar(t, half, soft):  # type: ignore[no-untyped-def]
    """Coverage of a bar, |t| <= half."""
    return max(_step((t + half) / soft) - _step((t - half) / soft), 0.0)


@njit(fastmath=FAST, nogil=True, cache=True)
def _ellipse(u, v, a, b, soft):  # type: ignore[no-untyped-def]
    """Coverage of an ellipse of half-axes a and b."""
    p, q = u / a, v / b
    level = math.sqrt(p * p + q * q)
    if level < 0.02:
        # The distance below is at least 0.98 times the smaller half-axis here.
        return _step(0.98 * min(a, b) / soft)
    p, q = p / a, q / b
    return _step((1.0 - level) * level / math.sqrt(p * p + q * q) / soft)


@njit(fastmath=FAST, nogil=True, cache=True)
def _outline(u, v, scale, cosines, sines, bounds, soft):  # type: ignore[no-untyped-def]
    """Coverage of an outline given by harmonics, times a scale."""
    square = u * u + v * v
    inner, outer = scale * bounds[0] - soft * bounds[2], scale * bounds[1] + soft * bounds[2]
    if square >= outer * outer:
        return 0.0
    if inner > 0 and square <= inner * inner:
        return 1.0
    distance = math.sqrt(square) + 1e-300
    c1, s1 = u / distance, v / distance
    c, s = 1.0, 0.0
    radius, slope = cosines[0], 0.0
    for k in range(1, len(cosines)):
        c, s = c * c1 - s * s1, s * c1 + c * s1
        radius += cosines[k] * c + sines[k] * s
        slope += k * (sines[k] * c - cosines[k] * s)
    slope /= radius
    return _step((scale * radius - distance) / (math.sqrt(1.0 + slope * slope) * soft))


@njit(fastmath=FAST, nogil=True, cache=True)
def draw_sprites(shape, radius, angle, centre, colour, cosines, sines, bounds, soft, out):  # type: ignore[no-untyped-def]
    """Squares, ellipses and hearts of a colour on black.

    Parameters
    ----------
    shape : ndarray of int, shape (size,)
    radius, angle : ndarray of shape (size,)
        Radius of the circle around the sprite, and clockwise rotation.
    centre : ndarray of shape (size, 2)
    colour : ndarray of shape (size, channels)
    cosines, sines, bounds : ndarray, ndarray, tuple
        Outline of the heart.
    out : ndarray of shape (size, channels, side, side)
    """
    side = out.shape[3]
    for i in range(len(out)):
        image = out[i]
        image[:] = 0
        cx, cy, size, kind = centre[i, 0], centre[i, 1], radius[i], shape[i]
        cos, sin = math.cos(angle[i]), math.sin(angle[i])
        reach = size + 2 * soft
        left, right = max(int(cx - reach), 0), min(int(cx + reach) + 1, side)
        for row in range(max(int(cy - reach), 0), min(int(cy + reach) + 1, side)):
            y = row + 0.5 - cy
            for column in range(left, right):
                x = column + 0.5 - cx
                u, v = cos * x + sin * y, cos * y - sin * x
                if kind == SQUARE:
                    half = size * SQUARE_HALF
                    cover = _bar(u, half, soft) * _bar(v, half, soft)
                elif kind == ELLIPSE:
                    cover = _ellipse(u, v, size, size * ELLIPSE_HALF, soft)
                else:
                    cover = _outline(u, v, size, cosines, sines, bounds, soft)
                for channel in range(len(image)):
                    image[channel, row, column] = cover * colour[i, channel]


@njit(fastmath=FAST, nogil=True, cache=True)
def draw_masks(outline, scale, pole, cosines, sines, bounds, soft, out):  # type: ignore[no-untyped-def]
    """White outlines on black.

    Parameters
    ----------
    outline : ndarray of int, shape (size,)
    scale : ndarray of shape (size,)
    pole : ndarray of shape (size, 2)
    cosines, sines, bounds : ndarray of shape (outlines, harmonics + 1), the same, and (outlines, 3)
    out : ndarray of shape (size, 1, side, side)
    """
    side = out.shape[3]
    for i in range(len(out)):
        image, k = out[i, 0], outline[i]
        image[:] = 0
        cx, cy, a, b, c = pole[i, 0], pole[i, 1], cosines[k], sines[k], bounds[k]
        reach = scale[i] * c[1] + soft * c[2]
        left, right = max(int(cx - reach), 0), min(int(cx + reach) + 1, side)
        for row in range(max(int(cy - reach), 0), min(int(cy + reach) + 1, side)):
            for column in range(left, right):
                u, v = column + 0.5 - cx, row + 0.5 - cy
                image[row, column] = _outline(u, v, scale[i], a, b, c, soft)


@njit(fastmath=FAST, nogil=True, cache=True)
def draw_solids(shape, size, turn, floor, wall, colour, soft, out):  # type: ignore[no-untyped-def]
    """Cubes, cylinders, balls and capsules on the floor of a room, in parallel projection from above the horizon.

    Parameters
    ----------
    shape : ndarray of int, shape (count,)
    size : ndarray of shape (count,)
        Unit of length of the solid.
    turn : ndarray of shape (count,)
        Rotation about the vertical axis, in radians between -pi/4 and pi/4; the corner of the room moves with it.
    floor, wall, colour : ndarray of shape (count, 3)
    out : ndarray of shape (count, 3, side, side)
    """
    side = out.shape[3]
    for i in range(len(out)):
        image, unit = out[i], size[i]
        _room(floor[i], wall[i], side * (0.5 + 0.6 * math.sin(turn[i])), soft, image)
        _shadow(0.5 * side, GROUND * side, 1.7 * unit, image)
        if shape[i] == CUBE:
            _cube(0.85 * unit, turn[i], colour[i], soft, image)
        elif shape[i] == CYLINDER:
            _round(CYLINDER_RADIUS * unit, CYLINDER_RADIUS * SIN_VIEW * unit, 0.85 * unit, True, colour[i], soft, image)
        elif shape[i] == SPHERE:
            _round(1.1 * unit, 1.1 * unit, 0.0, False, colour[i], soft, image)
        else:
            _round(0.75 * unit, 0.75 * unit, 0.7 * unit, False, colour[i], soft, image)


@njit(fastmath=FAST, nogil=True, cache=True)
def _room(floor, wall, corner, soft, image):  # type: ignore[no-untyped-def]
    """Floor, and two walls that meet in a corner, the right one darker."""
    side = image.shape[2]
    horizon = HORIZON * side
    for channel in range(3):
        for row in range(side):
            y = row + 0.5 - horizon
            below = _step(y / soft)
            ground = floor[channel] * below * (0.75 + 0.25 * y / (side - horizon))
            high = wall[channel] * (1.0 - below)
            line = image[channel, row]
            for column in range(side):
                line[column] = ground + high * (1.0 - 0.25 * _step((column + 0.5 - corner) / soft))


@njit(fastmath=FAST, nogil=True, cache=True)
def _shadow(cx, cy, a, image):  # type: ignore[no-untyped-def]
    """A soft round shadow on the floor."""
    side, b = image.shape[2], a * SIN_VIEW
    left, right = max(int(cx - a), 0), min(int(cx + a) + 1, side)
    for row in range(max(int(cy - b), 0), min(int(cy + b) + 1, side)):
        q = (row + 0.5 - cy) / b
        for column in range(left, right):
            p = (column + 0.5 - cx) / a
            depth = max(1.0 - p * p - q * q, 0.0)
            light = 1.0 - 0.5 * depth * depth
            for channel in range(3):
                image[channel, row, column] *= light


@njit(fastmath=FAST, nogil=True, cache=True)
def _round(a, b, length, flat, colour, soft, image):  # type: ignore[no-untyped-def]
    """An ellipse of half-axes a and b swept upwards by a half-length: a cylinder with a flat top, or a capsule."""
    side = image.shape[2]
    half = length * COS_VIEW
    cx, cy = 0.5 * side, GROUND * side - (half if flat else half + a * COS_VIEW)
    left, right = max(int(cx - a - 2 * soft), 0), min(int(cx + a + 2 * soft) + 1, side)
    reach = half + b + 2 * soft
    for row in range(max(int(cy - reach), 0), min(int(cy + reach) + 1, side)):
        y = row + 0.5 - cy
        beyond = y - min(max(y, -half), half)
        for column in range(left, right):
            x = column + 0.5 - cx
            cover = _ellipse(x, beyond, a, b, soft)
            if cover > 0:
                p = x / a
                if flat:
                    light, gloss = 0.7 - 0.2 * p - 0.15 * p * p, 0.0
                    # Beyond the far edge of the top no side is visible.
                    light += (1.0 - light) * _ellipse(x, max(y + half, 0.0), a, b, soft)
                else:
                    # The signed square is smooth where the caps begin.
                    q = beyond * abs(beyond) / (b * b)
                    light = 0.85 - 0.2 * (p + q) - 0.12 * (p * p + q * q)
                    near = max(1.0 - 5.0 * ((p + 0.4) ** 2 + (q + 0.2) ** 2), 0.0)
                    gloss = 0.5 * near * near
                _paint(cover, light, gloss, colour, image, row, column)


@njit(fastmath=FAST, nogil=True, cache=True)
def _cube(a, turn, colour, soft, image):  # type: ignore[no-untyped-def]
    """A cube of half-edge a, one edge towards the camera; all its edges are projected to one of three directions."""
    side = image.shape[2]
    half = a * COS_VIEW
    cx, cy = 0.5 * side, GROUND * side - half
    cos, sin = math.cos(turn), math.sin(turn)
    # Normals (down in the image) of the projected edges of the top, which is a parallelogram, and its half-widths.
    n1x, n1y = (cos + sin) * SIN_VIEW, cos - sin
    n2x, n2y = (sin - cos) * SIN_VIEW, cos + sin
    n1, n2 = math.sqrt(n1x * n1x + n1y * n1y), math.sqrt(n2x * n2x + n2y * n2y)
    n1x, n1y, n2x, n2y = n1x / n1, n1y / n1, n2x / n2, n2y / n2
    diagonal = math.sqrt(2.0) * a
    d1, d2 = diagonal * SIN_VIEW / n1, diagonal * SIN_VIEW / n2
    width, front = diagonal * cos, diagonal * sin
    # Faces towards the light, which comes from the left of the camera, are brighter.
    left_light, right_light = 0.62 + 0.2 * math.cos(turn - 0.26), 0.62 + 0.2 * math.cos(turn + 1.31)
    left, right = max(int(cx - width - soft), 0), min(int(cx + width + soft) + 1, side)
    reach = half + diagonal * SIN_VIEW + 2 * soft
    for row in range(max(int(cy - reach), 0), min(int(cy + reach) + 1, side)):
        y = row + 0.5 - cy
        for column in range(left, right):
            x = column + 0.5 - cx
            p, q = n1x * x + n1y * y, n2x * x + n2y * y
            cover = _bar(p, d1 + n1y * half, soft) * _bar(q, d2 + n2y * half, soft) * _bar(x, width, soft)
            if cover > 0:
                top = _step((d1 - p - n1y * half) / soft) * _step((d2 - q - n2y * half) / soft)
                light = left_light + (right_light - left_light) * _step((x - front) / soft)
                light += (1.0 - light) * top
                _paint(cover, light, 0.0, colour, image, row, column)


@njit(fastmath=FAST, nogil=True, cache=True)
def _paint(cover, light, gloss, colour, image, row, column):  # type: ignore[no-untyped-def]
    """Draw a colour, with light and a white gloss, over a pixel."""
    for channel in range(3):
        seen = colour[channel] * light
        seen += gloss * (1.0 - seen)
        image[channel, row, column] += cover * (seen - image[channel, row, column])
