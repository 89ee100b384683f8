"""Renderers beside a straightforward loop that supersamples in numpy, in one run on the same factors; prints ratios.

usage: python benchmarks/bench_renderer.py [--size 10000] [--side 64] [--threads 2] [--loop 100]

1. Sprites: images a second of ours and of the loop, which tests 4 x 4 points a pixel image by image; and how far apart
   the pictures are. Ours are anti-aliased and smooth in the factors, the loop's are neither between its 17 levels.
2. Every process: images a second on one thread and on all.
3. Along a fine path of one factor, the largest second difference over the square of the step at two steps: the same
   where pixels are smooth, 16 times as large at jumps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from measure import row, timed

from nearid.lab.processes.images.masks import draw_mask_process
from nearid.lab.processes.images.outlines import heart
from nearid.lab.processes.images.scenes import DSPRITES, HUE, MARGIN, RADIUS, SolidProcess, SpriteProcess

POINTS = 4
BATCH = 1000


def sprites_by_loop(z: np.ndarray, side: int) -> np.ndarray:
    """What people write: for each image, test a fine grid of points and average over pixels."""
    outline = heart()
    harmonics = np.arange(len(outline.cosines))
    fine = (np.arange(side * POINTS) + 0.5) / POINTS
    images = np.empty((len(z), 1, side, side), np.float32)
    for image, (shape, scale, turn, x, y) in zip(images, z, strict=True):
        across = fine[None, :] - side * (MARGIN + (1 - 2 * MARGIN) * x)
        down = fine[:, None] - side * (MARGIN + (1 - 2 * MARGIN) * y)
        radius = RADIUS * side * scale
        u = (np.cos(turn) * across + np.sin(turn) * down) / radius
        v = (np.cos(turn) * down - np.sin(turn) * across) / radius
        if shape == 0:
            inside = np.maximum(np.abs(u), np.abs(v)) <= np.sqrt(0.5)
        elif shape == 1:
            inside = u * u + 4 * v * v <= 1
        else:
            inside = np.zeros(u.shape, bool)
            # The harmonics are dear: only where the answer is open.
            open_ = u * u + v * v <= 1
            turns = np.arctan2(v[open_], u[open_])[:, None] * harmonics
            limit = np.cos(turns) @ outline.cosines + np.sin(turns) @ outline.sines
            inside[open_] = np.hypot(u[open_], v[open_]) <= limit
        image[0] = inside.reshape(side, POINTS, side, POINTS).mean((1, 3))
    return images


def rate(draw: Callable[[], object], size: int) -> float:
    """Images a second, drawn in batches as training does; the best of some runs."""
    batches = max(size // BATCH, 1)

    def run() -> None:
        for _ in range(batches):
            draw()

    return batches * BATCH / timed(run, repeats=4)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--loop", type=int, default=100, help="images drawn by the loop")
    asked = parser.parse_args()
    size, side, threads = asked.size, asked.side, asked.threads
    rng = np.random.default_rng(0)

    sprites, coloured, solids = SpriteProcess(side), SpriteProcess(side, (*DSPRITES, HUE)), SolidProcess(side)
    masks = draw_mask_process(8, rng, side=side)
    z = sprites.sample(BATCH, rng)
    # Compiled before the clock starts.
    images = sprites.observe(z, threads=threads)
    ours = rate(lambda: sprites.observe(z, threads=threads), size)
    loop, plain = timed(lambda: sprites_by_loop(z[: asked.loop], side))
    apart = np.abs(images[: asked.loop] - plain)
    print(f"sprites {side} x {side}, float32, {threads} threads, batches of {BATCH:,}")
    what = f"1,000 sprites of {side} x {side}, {threads} threads"
    row(what, ours=1000 / ours, peer=1000 * loop / asked.loop, by="numpy, one thread")
    print(f"  ours {ours:,.0f} images/s, loop {asked.loop / loop:,.0f} images/s on one thread")
    print(f"  ratio {ours * loop / asked.loop:,.0f}; mean difference of a pixel {apart.mean():.4f}")

    print("images/s: wall clock, and in brackets per second of CPU on one thread")
    latents, _, walkers = masks.pairs(BATCH, rng)
    hues, rooms = coloured.sample(BATCH, rng), solids.sample(BATCH, rng)
    for name, draw in (
        ("sprites, white", lambda t: sprites.observe(z, threads=t)),
        ("sprites, hues", lambda t: coloured.observe(hues, threads=t)),
        ("solids in a room", lambda t: solids.observe(rooms, threads=t)),
        ("masks, binary", lambda t: masks.observe(latents, walkers, threads=t)),
    ):
        draw(threads)
        one, all_ = (rate(lambda t=t, d=draw: d(t), size) for t in (1, threads))
        start = time.thread_time()
        draw(1)
        free = BATCH / (time.thread_time() - start)
        print(f"  {name}: {one:,.0f} on 1 thread ({free:,.0f}), {all_:,.0f} on {threads}")

    print("largest second difference over the square of the step, along x")
    base = np.array([2, 0.75, 0.4, 0.3, 0.6])
    for name, draw in (
        ("ours", lambda at: sprites.observe(at, np.float64)),
        ("loop", lambda at: sprites_by_loop(at, side)),
    ):
        found = []
        for points in (26, 101):
            at = np.tile(base, (points, 1))
            at[:, 3] += np.linspace(0, 0.03, points)
            found.append(np.abs(np.diff(draw(at), 2, axis=0)).max() / (0.03 / (points - 1)) ** 2)
        print(
            f"  {name}: {found[0]:,.0f} at a step of 0.0012, {found[1]:,.0f} at 0.0003, ratio {found[1] / found[0]:.2f}"
        )


if __name__ == "__main__":
    main()
