"""Linear maps of rows, block by block, into memory or a file."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from nearid.arrays import Rows, first_nonfinite, nonfinite
from nearid.arrays.formats.registry import Format, format_of, suffixes
from nearid.base.errors import InputError
from nearid.base.files import changing_with, check_parent, check_target, refuse_source
from nearid.base.limits import readable
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks
from nearid.moments import Floats

# float64 temporaries of a block are made in pieces of this size.
PIECE_BYTES = 1 << 21


@dataclass(frozen=True)
class Affine:
    """The map y = matrix (x - origin) + shift in float64, with matrix of shape (q, p). y has the dtype of x."""

    matrix: Floats
    origin: Floats
    shift: Floats

    def __call__(self, x: Floats) -> Floats:
        q, p = self.matrix.shape
        y = np.empty((len(x), q), x.dtype)
        size = max(64, PIECE_BYTES // (8 * max(p, q)))
        for a in range(0, len(x), size):
            piece = np.subtract(x[a : a + size], self.origin, dtype=np.float64) @ self.matrix.T
            y[a : a + size] = np.add(piece, self.shift, out=piece)
        return y

    def cut(self, n: int) -> list[tuple[int, int]]:
        """Return blocks of n rows that are small on both sides of the map."""
        return blocks(n, max(self.matrix.shape))

    def over(
        self,
        rows: Rows | Floats,
        *,
        drop_nonfinite: bool = False,
        engine: Engine = LOCAL,
        tick: Callable[[], object] | None = None,
    ) -> Iterator[Floats]:
        """Yield mapped blocks of rows in order. The next blocks are computed while one is used.

        Rows with NaN or infinity raise an error. With `drop_nonfinite` they become rows of NaN.
        """
        return engine.map(mapped, self.cut(rows.shape[0]), self, rows, drop_nonfinite, tick=tick)


def mapped(block: tuple[int, int], affine: Affine, rows: Rows | Floats, drop_nonfinite: bool) -> Floats:
    """Return the mapped rows of a block, see `Affine.over`."""
    x = _read(rows, *block)
    bad = first_nonfinite(x, block[0])
    if bad is None:
        return affine(x)
    if not drop_nonfinite:
        raise nonfinite(_name(rows), *bad, rows.columns if isinstance(rows, Rows) else None)
    good = np.asarray(np.isfinite(x).all(axis=1))
    y = affine(np.where(good[:, None], x, x.dtype.type(0)))
    y[~good] = np.nan
    return y


def write_part(
    block: tuple[int, int], affine: Affine, rows: Rows | Floats, drop_nonfinite: bool, write: Callable[..., object]
) -> None:
    """Write the mapped rows of a block: a task for the process that computes them."""
    write(block[0], mapped(block, affine, rows, drop_nonfinite))


def _read(rows: Rows | Floats, start: int, stop: int) -> Floats:
    return rows.read(start, stop) if isinstance(rows, Rows) else rows[start:stop]


def _name(rows: Rows | Floats) -> str:
    return rows.name if isinstance(rows, Rows) else "array"


def write_mapped(
    affine: Affine,
    rows: Rows | Floats,
    path: str | os.PathLike[str],
    *,
    drop_nonfinite: bool = False,
    engine: Engine = LOCAL,
    tick: Callable[[], object] | None = None,
) -> None:
    """Write the mapped rows to a file or folder, completely or not at all. Ids are written to a file next to it.

    Rows and ids are replaced together. After a failure, the old files are kept. A format of which each block is a file
    (.zarr) is written by the processes of the engine, so that no rows come to this process. A block that is written
    again, because a process died, has the same bytes.
    """
    target = Path(path)
    shape = (rows.shape[0], len(affine.matrix))
    check_space(target, shape[0] * shape[1] * rows.dtype.itemsize)
    known, work = _format(target), affine.cut(shape[0])
    ids = rows.ids if isinstance(rows, Rows) else None
    write_ids = None if ids is None else partial(np.lib.format.write_array, array=ids, allow_pickle=False)
    with changing_with(ids_path(target), write_ids) as change:
        if known.parts is None:
            blocks_of_rows = affine.over(rows, drop_nonfinite=drop_nonfinite, engine=engine, tick=tick)
            known.write_rows(target, shape, rows.dtype, blocks_of_rows, change)
            return
        with known.parts(target, shape, rows.dtype, work[0][1] - work[0][0], change) as write:
            for _ in engine.map(write_part, work, affine, rows, drop_nonfinite, write, tick=tick):
                pass


def ids_path(target: Path) -> Path:
    """Return the path of the ids of the rows in `target`: x.ids.npy for x.npy, x.zarr.ids.npy for x.zarr."""
    return target.with_name(f"{target.name.removesuffix('.npy')}.ids.npy")


def check_output(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Raise an error if mapped rows cannot or should not be written to a path. Called before long work."""
    target = Path(path)
    known = _format(target)
    if not known.is_folder:
        check_target(target)
    elif target.exists() and not (target.is_dir() and known.is_at and known.is_at(target)):
        raise InputError(f"{target} is not a {target.suffix[1:]} directory and would be replaced. Give another name.")
    else:
        check_parent(target)
    check_target(ids_path(target))
    for path in (target, ids_path(target)):
        if path.exists() and not overwrite:
            raise InputError(f"{path} already exists. Give another name, or replace it with --overwrite.")
    return target


def refuse_input(target: Path, source: str | os.PathLike[str]) -> None:
    """Raise an error if the rows or their ids would overwrite the input."""
    for path in (target, ids_path(target)):
        refuse_source(path, source)


def _format(target: Path) -> Format:
    known = format_of(target)
    if known is None or not known.writes:
        accepted = ", ".join(suffixes("writes"))
        raise InputError(f"Rows are written as {accepted}, but the output is {target.name}. Name it {target.stem}.npy.")
    return known


def check_space(target: Path, size: int) -> None:
    """Raise an error if there is not enough disk space."""
    free = shutil.disk_usage(target.parent).free
    # Compression saves little for such numbers.
    if size > free:
        raise InputError(
            f"{target.name} needs {readable(size)} of disk space, but {readable(free)} are free in "
            f"{target.parent.resolve()}. Free some space, or write to another disk."
        )
