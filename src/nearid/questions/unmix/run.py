"""Unmix rows: fit, model and components of a file of any size; an interrupted fit can be continued."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from nearid.arrays import Rows, open_rows
from nearid.arrays.blocks import recorded as recorded_blocks
from nearid.arrays.derived import SelectedColumns
from nearid.arrays.formats.registry import suffixes, writable
from nearid.arrays.metadata import without_suspects
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.files import alone_in, refuse_source
from nearid.base.options import Bound, Count, Seed, as_given, checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.base.resume import Resumable
from nearid.base.streams import say
from nearid.engines.base import Engine
from nearid.engines.local import open_engine
from nearid.ica.fit import with_options
from nearid.ica.model import (
    ABOUT,
    CHECKPOINT,
    NUMBERS,
    check_size,
    describe,
    header,
    make_folder,
    packed,
    read_metadata,
    read_tensors,
    refuse_foreign,
    write_bytes,
)
from nearid.ica.recurrence import Tried
from nearid.ica.solver import Checkpoint
from nearid.ica.starts import MOST_STARTS
from nearid.ica.stream import check_output, check_space, ids_path
from nearid.moments import Floats
from nearid.show.view import counted

if TYPE_CHECKING:
    from nearid.questions.unmix.result import ICA
else:
    # This module loads scikit-learn, which takes seconds. Help and an error about a missing file must be fast.
    ICA = Any

# A fit can be continued with another tol or more passes, but these options must be the same.
FIXED = ("n_components", "whiten", "contrast", "starts", "dtype", "random_state")
# Format 1 was that of a single start.
CHECKPOINT_FORMAT = "2"
STAGES = ("climb", "fixed point", "descend")
# Upper limit of passes; no fit makes so many.
MOST_PASSES = 1_000_000
# A matrix that is farther from a rotation than this was not written by a fit.
ORTHOGONAL = 1e-6


@with_options
@checked
def unmix(
    x: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    n_components: Count | None = None,
    whiten: bool = True,
    contrast: Literal["logcosh", "exp", "cube", "auto"] = "logcosh",
    tol: Annotated[float, Bound(0, open_low=True)] = 1e-4,
    max_passes: Count = 500,
    starts: Annotated[int, Bound(1, MOST_STARTS)] = 3,
    stability: Annotated[int, Bound(0)] = 0,
    dtype: Literal["float32", "float64"] | None = None,
    random_state: Seed = 0,
    engine: str | Engine | None = None,
    format: str = "npy",
    key: str | None = None,
    ids: str | None = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    blocks: Any = None,
    drop_nonfinite: bool = False,
    restart: bool = False,
    overwrite: bool = False,
    progress: Reporting = False,
) -> ICA:
    """What are the independent components? Whitening and ICA of rows, in bounded memory.

    The folder gets components.npy (or .parquet, .safetensors, .zarr), model.safetensors and model.json. After an
    interruption the same call continues. `nearid apply` (in Python `ICA.load` and `transform_to`) maps other rows with
    the model.

    Parameters
    ----------
    x : array, tensor, DataFrame, path or Rows
        One row per example.
    out : str or PathLike, optional
        Folder for the components and the model; created if it does not exist. Default: nothing is written.
    {options}
    random_state : int, default=0
        Seed of the first rotations.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes run: "local" (this process, the default), "dask" (a cluster of this machine's cores), or the
        address of a Dask scheduler such as tcp://127.0.0.1:8786. The result is the same.
    format : str, default="npy"
        Format of the components: the suffix of a file without its dot.
    key : str, optional
        Entry to read from a file with several arrays.
    ids : str, optional
        Column (or entry) with row ids. They are written beside the components.
    features : sequence of str or str, optional
        Columns of a table to use, such as "emb_*,size". Default: all numeric columns except those that look like
        metadata. An alert lists these.
    exclude : sequence of str or str, optional
        Columns of a table to leave out, such as metadata: "plate,well_*".
    blocks : str, path or array of shape (n,), optional
        Rows that belong together, such as the cells of a well: the halves of `stability` consist of whole blocks. Give
        a column (or entry) of the file, a file with one label per row, or the labels themselves. The column is not
        unmixed. "none" treats all rows as independent. Default: the blocks that `extract` wrote for tokens, if any.
    drop_nonfinite : bool, default=False
        Leave rows with NaN or Inf out of the fit. Their components are NaN.
    restart : bool, default=False
        Start again instead of continuing an unfinished fit.
    overwrite : bool, default=False
        Replace a model that is in the folder.
    progress : bool or callable, default=False
        Whether to draw a progress bar on stderr; or a function that takes the name of a stage and its number of steps.

    Returns
    -------
    ICA
        The fit: a transformer and a result.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> rng = np.random.default_rng(0)
    >>> unmixing = nearid.unmix(rng.laplace(size=(2000, 3)) @ rng.normal(size=(3, 3)))
    >>> unmixing.converged_, unmixing.diagnostics_.super_gaussian
    (True, 3)
    """
    writable(format)
    features, exclude = as_given(features), as_given(exclude)
    rows = open_rows(x, key=key, ids=ids, features=features, exclude=exclude, blocks=blocks)
    kept, left_out = without_suspects(rows) if features is None else (None, [])
    rows = rows if kept is None else SelectedColumns(rows, kept)
    if out is not None and isinstance(x, str | os.PathLike):
        refuse_input(Path(out), x)
    from nearid.questions.unmix.result import ICA

    ica = ICA(
        n_components,
        whiten=whiten,
        contrast=contrast,
        tol=tol,
        max_passes=max_passes,
        starts=starts,
        stability=stability,
        dtype=dtype,
        random_state=random_state,
        engine=engine,
    )
    recorded = {
        "drop_nonfinite": drop_nonfinite,
        "features": features,
        "exclude": exclude,
        "blocks": recorded_blocks(blocks),
    }
    with reporting(progress) as stages, open_engine(engine) as opened:
        job = _Job(rows, left_out, describe(x, rows, opened), ica, recorded, stages, progress, opened)
        return job.fit() if out is None else job.into(Path(out), format, restart, overwrite)


@dataclass(frozen=True)
class _Job:
    """Rows, alerts about columns that were left out, the rows' description for the record, and the estimator to fit."""

    rows: Rows
    left_out: list[Alert]
    source: dict[str, Any]
    ica: ICA
    recorded: dict[str, Any]
    stages: Progress
    progress: Reporting
    engine: Engine

    @property
    def drop_nonfinite(self) -> bool:
        """Whether rows that are not finite are left out of the fit."""
        return bool(self.recorded["drop_nonfinite"])

    def fit(self, resume: Checkpoint | None = None, keep: Callable[[Checkpoint], object] | None = None) -> ICA:
        """Fit, from a checkpoint if there is one."""
        from sklearn.exceptions import ConvergenceWarning

        from nearid.ica.estimators import IdentifiabilityWarning, RankWarning

        with warnings.catch_warnings():
            # The alerts report all of these.
            for kind in (ConvergenceWarning, RankWarning, IdentifiabilityWarning):
                warnings.simplefilter("ignore", kind)
            # Every start has as many, and few need them.
            tick = self.stages("passes, at most", self.ica.max_passes * self.ica.starts)
            return self.ica.fit_rows(
                self.rows,
                self.source,
                drop_nonfinite=self.drop_nonfinite,
                recorded=self.recorded,
                alerts=self.left_out or None,
                resume=resume,
                keep=keep,
                tick=tick,
                engine=self.engine,
            )

    def into(self, folder: Path, form: str, restart: bool, overwrite: bool) -> ICA:
        """Fit, and write model and components to a folder; an unfinished fit in the folder is continued."""
        new = not folder.exists()
        make_folder(folder)
        try:
            with alone_in(folder):
                return self._into(folder, form, restart, overwrite)
        except BaseException:
            if new and not any(folder.iterdir()):
                folder.rmdir()
            raise

    def _into(self, folder: Path, form: str, restart: bool, overwrite: bool) -> ICA:
        refuse_foreign(folder, *_places(folder), *_ids(folder))
        fitted = None if restart else self._waiting(folder)
        if fitted is None and not overwrite and (has_model(folder) or _components(folder)):
            raise InputError(
                f"{folder} already contains a model. Write to another folder, or replace it with --overwrite (which "
                f"continues a search that ran out of passes)."
            )
        for path in _components(folder):
            check_output(path, overwrite=True)
        options = {name: getattr(self.ica, name) for name in FIXED}
        keeper = Keeper(folder, {k: self.source[k] for k in ("shape", "dtype", "digest")}, options)
        try:
            target, (n, columns) = folder / f"components.{form}", self.rows.shape
            # Check the disk space before anything is fitted or deleted.
            check_space(target, n * min(columns, self.ica.n_components or columns) * self.rows.dtype.itemsize)
            if fitted is None:
                fitted = self._fit_into(keeper, restart)
            else:
                self._tell(
                    f"The model in {folder} was fitted to this input with these options, so only its components are "
                    f"written."
                )
                if fitted.converged_:
                    keeper.remove()
            fitted.transform_to(
                self.rows,
                target,
                overwrite=True,
                drop_nonfinite=self.drop_nonfinite,
                engine=self.engine,
                progress=self.stages,
            )
        except BaseException:
            keeper.flush()
            raise
        return fitted

    def _fit_into(self, keeper: Keeper, restart: bool) -> ICA:
        """Fit from the checkpoint, if there is one, and replace the model in the folder."""
        if restart:
            keeper.remove()
        resume = keeper.read()
        if resume is not None:
            passes = counted(len(resume.gradients), "pass", "passes")
            self._tell(f"Continuing after {passes} of an earlier run (--restart starts again).")
        fitted = self.fit(resume, keeper.keep)
        for path in _ids(keeper.folder):
            path.unlink(missing_ok=True)
        for path in _components(keeper.folder):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        fitted.save(keeper.folder)
        # A search that ran out of passes can be continued from here with more passes.
        if fitted.converged_:
            keeper.remove()
        return fitted

    def _waiting(self, folder: Path) -> ICA | None:
        """A model of the same input and parameters whose components are not written yet."""
        if not has_model(folder) or _components(folder):
            return None
        try:
            fitted = type(self.ica).load(folder)
        except InputError:
            return None
        source = fitted.provenance["inputs"][0]
        same = all(source.get(name) == self.source[name] for name in ("shape", "dtype", "digest", "columns"))
        wanted = {**self.ica.get_params(), "engine": fitted.engine}
        return fitted if same and fitted.get_params() == wanted else None

    def _tell(self, sentence: str) -> None:
        """Report that an earlier run is continued."""
        if callable(self.progress):
            self.progress(sentence, 1)()
        elif self.progress:
            say(sentence)


class Keeper:
    """Stores the last checkpoint of a fit in a folder, in one file with the identity of the fit.

    Parameters
    ----------
    folder : Path
    source, options : dict
        Identity of the fit; a checkpoint of another fit is refused.
    """

    def __init__(self, folder: Path, source: dict[str, Any], options: dict[str, Any]) -> None:
        again = "Write to another folder, or start again with --restart."
        self.folder, self.path = folder, folder / CHECKPOINT
        self._work = Resumable(folder, {"input": source, "options": options}, "an unfinished fit", again)
        self._last: Checkpoint | None = None

    def keep(self, checkpoint: Checkpoint) -> None:
        """Accept a checkpoint; write it unless one was written a moment ago."""
        self._last = checkpoint
        # Passes of small data take milliseconds. Writing after each pass would take longer.
        if self._work.due():
            self.flush()

    def flush(self) -> None:
        """Write the last accepted checkpoint if it is not written yet."""
        if self._last is None:
            return
        last, self._last = self._last, None
        identity = json.dumps(self._work.identity)
        stages = json.dumps([last.stage, *(other.stage for other in last.race)])
        metadata = {"nearid_checkpoint": CHECKPOINT_FORMAT, "identity": identity, "stage": stages}
        tensors = _tensors(last, "")
        for place, other in enumerate(last.race):
            tensors |= _tensors(other, f"{place}.")
        if last.tried:
            tensors |= {"tried.rotations": last.tried.rotations, "tried.contrasts": last.tried.contrasts}
        write_bytes(self.path, packed(tensors, metadata))

    def remove(self) -> None:
        """Delete the checkpoint; another file of the same name stays."""
        self._last = None
        self._refuse_foreign()
        self.path.unlink(missing_ok=True)

    def read(self) -> Checkpoint | None:
        """The checkpoint in the folder, if there is one; raise an error if it belongs to another fit."""
        self._refuse_foreign()
        if not self.path.is_file():
            return None
        columns = self._work.identity["input"]["shape"][1]
        entries = columns * (columns + 1) + MOST_PASSES
        check_size(self.path, 8, 8 * (1 + 2 * MOST_STARTS) * entries)
        data = self.path.read_bytes()
        texts = read_metadata(data, str(self.path))
        stages = _stages(texts)
        if stages is None:
            raise InputError(
                f"{self.path} is not a checkpoint that this version of nearid can read. Start again with --restart."
            )
        try:
            identity = json.loads(texts.get("identity", ""))
        except (ValueError, RecursionError):
            identity = None
        self._work.refuse_other(identity)
        names = ["", *(f"{place}." for place in range(len(stages) - 1))]
        letters = {f"{name}{part}": axes for name in names for part, axes in _letters(name).items()}
        if "tried.rotations" in (header(self.path) or {}):
            letters |= {"tried.rotations": "skk", "tried.contrasts": "s"}
        tensors = read_tensors(data, str(self.path), letters)
        own, *others = (self._checkpoint(tensors, name, stage) for name, stage in zip(names, stages, strict=True))
        tried = Tried(tensors["tried.rotations"], tensors["tried.contrasts"]) if "tried.rotations" in letters else None
        return replace(own, race=tuple(others), tried=tried)

    def _checkpoint(self, tensors: dict[str, Floats], name: str, stage: str) -> Checkpoint:
        """State of one search."""
        rotation, signs, gradients = (tensors[f"{name}{part}"] for part in ("rotation", "signs", "gradients"))
        off = rotation @ rotation.T - np.eye(len(signs)) if np.abs(rotation).max() < 2 else np.inf
        columns = self._work.identity["input"]["shape"][1]
        if len(signs) > columns or np.abs(off).max() > ORTHOGONAL or (np.abs(signs) != 1).any():
            raise InputError(f"{self.path} is damaged: it contains no rotation. Start again with --restart.")
        return Checkpoint(rotation, signs, gradients.tolist(), stage)

    def _refuse_foreign(self) -> None:
        """Raise an error for a file that was not written by a fit or cannot be read."""
        if self.path.exists() and not is_checkpoint(self.path):
            raise InputError(
                f"{self.path} is not a checkpoint of nearid unmix, or it is damaged. Write to another folder, or move "
                "this file."
            )


def _tensors(checkpoint: Checkpoint, name: str) -> dict[str, Floats]:
    """The numbers of a checkpoint, whose names begin with this."""
    gradients = np.asarray(checkpoint.gradients)
    return {f"{name}rotation": checkpoint.rotation, f"{name}signs": checkpoint.signs, f"{name}gradients": gradients}


def _letters(name: str) -> dict[str, str]:
    """Axes of the arrays of a checkpoint; every search has its own passes, with its own letter."""
    return {"rotation": "kk", "signs": "k", "gradients": chr(256 + int(name[:-1])) if name else "m"}


def _stages(texts: dict[str, str]) -> list[str] | None:
    """The stage of the search and those of a race, or None if this is not a checkpoint."""
    if texts.get("nearid_checkpoint") != CHECKPOINT_FORMAT:
        return None
    try:
        stages = json.loads(texts["stage"])
    except (KeyError, ValueError, RecursionError):
        return None
    known = isinstance(stages, list) and 1 <= len(stages) <= 1 + MOST_STARTS and all(s in STAGES for s in stages)
    return stages if known else None


def is_checkpoint(path: Path) -> bool:
    """Whether a file is the checkpoint of a fit (only the header is checked)."""
    metadata = (header(path) or {}).get("__metadata__")
    return isinstance(metadata, dict) and "nearid_checkpoint" in metadata


def has_model(folder: Path) -> bool:
    """Whether a fit was finished here."""
    return (folder / ABOUT).exists()


def _components(folder: Path) -> list[Path]:
    """Components that are in the folder."""
    return [path for path in _places(folder) if path.exists()]


def _places(folder: Path) -> list[Path]:
    return [folder / f"components{suffix}" for suffix in suffixes("writes")]


def _ids(folder: Path) -> list[Path]:
    return [ids_path(path) for path in _places(folder)]


def refuse_input(folder: Path, source: str | os.PathLike[str]) -> None:
    """Refuse a folder in which the input would be written over."""
    for path in (folder, folder / ABOUT, folder / NUMBERS, folder / CHECKPOINT, *_places(folder), *_ids(folder)):
        refuse_source(path, source)


def left_behind(folder: Path) -> str:
    """What an interrupted run has stored, and how to continue."""
    if is_checkpoint(folder / CHECKPOINT):
        return f"the finished passes are kept in {folder}; run the same command again (without --restart) to continue"
    if has_model(folder) and not _components(folder):
        return f"the model is in {folder}; run the same command again to write its components"
    return "nothing was written"
