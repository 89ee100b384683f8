"""An unmixing into a folder: the fit, its model, the components; taken up again where it was interrupted."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from nearid.arrays import Rows
from nearid.base.errors import InputError
from nearid.base.files import alone_in, refuse_source
from nearid.base.progress import Progress, silent
from nearid.ica.estimators import ICA, IdentifiabilityWarning, RankWarning
from nearid.ica.model import ABOUT, NUMBERS, describe, make_folder, refuse_foreign
from nearid.ica.stream import FORMATS, check_output, check_space, ids_path
from nearid.questions.unmix.checkpoint import NAME, Keeper, is_checkpoint

# A fit may go on with another tol or more passes, but not with another of these.
FIXED = ("n_components", "whiten", "contrast", "dtype", "random_state")


def unmix_into(
    folder: Path,
    rows: Rows,
    ica: ICA,
    *,
    form: str = "npy",
    drop_nonfinite: bool = False,
    restart: bool = False,
    overwrite: bool = False,
    progress: Progress = silent,
    say: Callable[[str], object] = lambda text: None,
) -> ICA:
    """Fit, and write model.safetensors, model.json and components.npy (or .zarr) to a folder.

    After an interruption the folder holds a checkpoint, or the model without the components; the same call goes on
    from there.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    rows : Rows
    ica : ICA
        The parameters.
    form : {"npy", "zarr"}
        Of the components.
    drop_nonfinite : bool
        Leave rows with a NaN or an infinity out of the fit; their components are NaN.
    restart : bool
        Begin anew where an unfinished fit was left.
    overwrite : bool
        Replace a model that is there.
    say : callable
        Told, in a sentence, when an earlier run is taken up.

    Returns
    -------
    ICA
        The fit.
    """
    try:
        ica._validate_params()
    except InvalidParameterError as error:
        raise InputError(str(error)) from None
    new = not folder.exists()
    make_folder(folder)
    try:
        with alone_in(folder):
            return _unmix(folder, rows, ica, form, drop_nonfinite, restart, overwrite, progress, say)
    except BaseException:
        if new and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _unmix(
    folder: Path,
    rows: Rows,
    ica: ICA,
    form: str,
    drop_nonfinite: bool,
    restart: bool,
    overwrite: bool,
    progress: Progress,
    say: Callable[[str], object],
) -> ICA:
    refuse_foreign(folder, *_places(folder), *_ids(folder))
    source = describe(rows)
    fitted = None if restart else _waiting(folder, ica, source)
    if fitted is None and not overwrite and (has_model(folder) or _components(folder)):
        raise InputError(
            f"{folder} holds a model already, which would be lost; write to another folder, or replace it with "
            "--overwrite (which goes on with a search that ran out of passes)."
        )
    for path in _components(folder):
        check_output(path, overwrite=True)
    options = {name: ica.get_params()[name] for name in FIXED}
    keeper = Keeper(folder, {"input": {k: source[k] for k in ("shape", "dtype", "digest")}, "options": options})
    try:
        target = folder / f"components.{form}"
        # Nothing is fitted, and nothing old deleted, for components that would find no room.
        check_space(target, rows.shape[0] * min(rows.shape[1], ica.n_components or rows.shape[1]) * rows.dtype.itemsize)
        if fitted is None:
            fitted = _fit(keeper, rows, ica, drop_nonfinite, restart, progress, say)
        else:
            say(f"The model in {folder} is of this input and these options: only its components are written.")
            if fitted.converged_:
                keeper.remove()
        fitted.transform_to(rows, target, overwrite=True, drop_nonfinite=drop_nonfinite, progress=progress)
    except BaseException:
        keeper.flush()
        raise
    return fitted


def _fit(
    keeper: Keeper,
    rows: Rows,
    ica: ICA,
    drop_nonfinite: bool,
    restart: bool,
    progress: Progress,
    say: Callable[[str], object],
) -> ICA:
    """Fit from the checkpoint, if there is one, and write the model in place of whatever the folder held."""
    if restart:
        keeper.remove()
    resume = keeper.read()
    if resume is not None:
        say(f"Going on after {len(resume.gradients)} passes of an earlier run (--restart would begin anew).")
    with warnings.catch_warnings():
        # The diagnostics say all of these, in words.
        for kind in (ConvergenceWarning, RankWarning, IdentifiabilityWarning):
            warnings.simplefilter("ignore", kind)
        tick = progress("passes, at most", ica.max_passes)
        ica.fit_rows(rows, drop_nonfinite=drop_nonfinite, resume=resume, keep=keeper.keep, tick=tick)
    for path in _ids(keeper.folder):
        path.unlink(missing_ok=True)
    for path in _components(keeper.folder):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ica.save(keeper.folder)
    # A search that ran out of passes can go on from here with more of them.
    if ica.converged_:
        keeper.remove()
    return ica


def _waiting(folder: Path, ica: ICA, source: dict[str, object]) -> ICA | None:
    """The model of the same input and parameters whose components were not written any more."""
    if not has_model(folder) or _components(folder):
        return None
    try:
        found = ICA.load(folder)
    except InputError:
        return None
    wanted = {**ica.get_params(), "engine": found.engine}
    same = found.get_params() == wanted and {**found.input_, "name": ""} == {**source, "name": ""}
    return found if same else None


def has_model(folder: Path) -> bool:
    """Whether a fit was finished here."""
    return (folder / ABOUT).exists()


def _components(folder: Path) -> list[Path]:
    """Components that are in the folder."""
    return [path for path in _places(folder) if path.exists()]


def _places(folder: Path) -> list[Path]:
    return [folder / f"components.{form}" for form in FORMATS]


def _ids(folder: Path) -> list[Path]:
    return [ids_path(path) for path in _places(folder)]


def refuse_input(folder: Path, source: str) -> None:
    """Refuse a folder in which the input would be written over."""
    for path in (folder, folder / ABOUT, folder / NUMBERS, folder / NAME, *_places(folder), *_ids(folder)):
        refuse_source(path, source)


def left_behind(folder: Path) -> str:
    """What an interrupted run has left, and how to go on."""
    if is_checkpoint(folder / NAME):
        return f"the passes made are kept in {folder}; run the same command again (without --restart) to go on"
    if has_model(folder) and not _components(folder):
        return f"the model is in {folder}; run the same command again to write its components"
    return "nothing was written"
