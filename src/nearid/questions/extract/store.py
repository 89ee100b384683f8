"""Write layers to a folder: first a partial folder, which can be continued, then one rename to the final name."""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.layers import BLOCKS, IDS, LABELS, MANIFEST, is_extraction, read_manifest
from nearid.arrays.formats.registry import format_of, writable
from nearid.base.errors import InputError
from nearid.base.files import check_parent, is_left_of, local_path, put_folder, write_text
from nearid.base.limits import readable
from nearid.base.resume import NAME as NOTE, Resumable, load_note

# Reserved file names of a folder.
RESERVED = ("ids", "blocks", "labels", "extraction", "progress")
LONGEST = 120
# Seconds between two syncs; rows count as done after a sync.
SECONDS = 10.0
AGAIN = "Start again with restart=True (--restart), or write to another folder."
# Note of a partial folder: its inputs and rows, the hash of the inputs, and whether only the last step is missing.
EMPTY = {"inputs": 0, "rows": 0, "digest": "", "complete": False}
KINDS = {name: type(value) for name, value in EMPTY.items()}
# Rows of the same inputs differ by less than this share of the largest.
CLOSE = 1e-2
# Suffix of rows without a header; only .zarr stores them in another file.
RAW = ".rows"
# Chunks of a zarr array, which are also read at once while it is made.
CHUNK_BYTES = 8 << 20
# More rows than any file holds, to leave room for the number in the header.
_MOST = 10**18


def partial_folder(out: Path) -> Path:
    """The partial folder, which is used until all rows are written."""
    return out.with_name(f"{out.name}.partial")


def check_out(out: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Raise an error, before long work, if layers cannot or should not be written to a place."""
    target = local_path(out)
    target = target if target.name else target.resolve()
    if (format_of(target) is not None and not is_extraction(target)) or target.suffix == ".html":
        raise InputError(
            f"Layers are written to a folder with one file each. Give a folder such as {target.stem}, "
            f"not {target.name}."
        )
    check_parent(target)
    if target.exists():
        refuse_foreign(target)
        if is_extraction(target) and not overwrite:
            raise InputError(
                f"{target} already contains extracted layers. Give another name, or replace them (--overwrite)."
            )
    return target


def refuse_inputs_in(target: Path, *sources: Any) -> None:
    """Refuse to replace or restart a folder that contains one of the inputs."""
    for source in sources:
        if isinstance(source, str | os.PathLike):
            places = Path(os.path.realpath(local_path(source))).parents
            if target.resolve() in places or partial_folder(target).resolve() in places:
                raise InputError(f"{target} would be replaced, but it contains the input {source}. Give another name.")


def refuse_foreign(target: Path) -> None:
    """Refuse to replace a folder that is not an extraction or contains other files."""
    held = {path.name for path in target.iterdir()} if target.is_dir() else {target.name}
    if not held:
        return
    try:
        manifest = read_manifest(target) if is_extraction(target) else None
    except InputError:
        manifest = None
    if manifest is None:
        raise InputError(f"{target} exists and is not a folder of extracted layers. Give another name.")
    # The note of progress remains if a run was killed at its very end.
    own = {MANIFEST, IDS, NOTE, manifest.get("blocks"), manifest.get("labels")}
    strange = held - own - {x["file"] for x in manifest["layers"].values()}
    if strange:
        raise InputError(f"{target} also contains {min(strange)}, which extract did not write. Give another name.")


class Store:
    """The folder of an extraction while it is made.

    Parameters
    ----------
    out : Path
        The final folder; until it is complete it has the suffix .partial.
    layers : dict of str to (int, numpy.dtype)
        Width and dtype of each layer.
    id_type : numpy.dtype
    beside : dict of str to numpy.dtype
        Types of further values per row: "blocks" (the input of each row, if inputs have several rows) and "labels".
    identity : dict
        Identity of the extraction; a partial folder of another extraction is not continued.
    about : dict of str to str
        Metadata of the files, if their format supports it.
    total : int, optional
        Number of all rows, if batches and rows have different orders; each row is then written at its index.
    """

    def __init__(
        self,
        out: Path,
        form: str,
        layers: dict[str, tuple[int, np.dtype[Any]]],
        id_type: np.dtype[Any],
        beside: dict[str, np.dtype[Any]],
        identity: dict[str, Any],
        about: dict[str, str],
        total: int | None = None,
    ) -> None:
        self.out, self.folder = out, partial_folder(out)
        self._layers = {
            layer: Part(self.folder, stem, form, *layers[layer], layer, {**about, "layer": layer})
            for layer, stem in file_stems(layers).items()
        }
        self._ids = Part(self.folder, Path(IDS).stem, "npy", None, id_type)
        self._beside = {name: Part(self.folder, name, "npy", None, kind) for name, kind in beside.items()}
        self._parts = [*self._layers.values(), self._ids, *self._beside.values()]
        self._written, self._total = written(layers, form), total
        self._note = Resumable(self.folder, identity, "a part of an extraction", AGAIN, SECONDS)
        # Written inputs and rows; and those that are synced and noted, with the hash of their inputs.
        self.inputs = self.rows = 0
        self.noted: dict[str, Any] = EMPTY

    @property
    def kept(self) -> int:
        """Number of inputs whose rows are synced."""
        return int(self.noted["inputs"])

    @contextmanager
    def open(self, *, restart: bool) -> Iterator[None]:
        """Create or continue the partial folder; after a failure it stays only if it has synced rows."""
        self._refuse_strange()
        with self._writing():
            self.folder.mkdir(exist_ok=True)
        with self._note.locked():
            state = None if restart else self._note.read()
            if state is not None and not _is_sound(state):
                raise InputError(f"{self._note.path} is damaged. {AGAIN}")
            try:
                with self._writing():
                    self._begin(state)
                yield
            except BaseException:
                if not self.kept:
                    with suppress(OSError):
                        self._clear()
                        self.folder.rmdir()
                raise

    def _begin(self, state: dict[str, Any] | None) -> None:
        if state is None or not state["inputs"]:
            # Remove the rest of a partial folder that cannot be used.
            self._clear()
            self._note.keep(EMPTY, now=True)
        else:
            self.noted, self.inputs, self.rows = state, state["inputs"], state["rows"]
        for part in self._parts:
            part.cut(self.rows, self._total)
        # The first rows also wait for a sync.
        self._note.due()

    def check_space(self, rows: int | None) -> None:
        """Raise an error if the disk has too little space; checked if the number of rows is known."""
        need = max((rows or 0) - self.rows, 0) * sum(part.row_bytes for part in self._parts)
        free = shutil.disk_usage(self.out.parent).free
        if need > free:
            raise InputError(
                f"{self.out} needs {readable(need)} of disk space, but {readable(free)} are free there. Free some, "
                "choose fewer layers, pool them, or write to another disk."
            )

    def refuse_others(self, probed: dict[str, np.ndarray], places: np.ndarray | None = None) -> None:
        """Refuse to continue if the first inputs now give other rows than the stored ones.

        Hashes do not include the code of a pool function or the state of a module besides weights.

        Parameters
        ----------
        probed : dict of ndarray
            Rows of the first inputs, by layer.
        places : ndarray, optional
            Indices of these rows. Default: they are the first rows.
        """
        for layer, part in self._layers.items():
            now = probed[layer]
            known = np.arange(len(now)) if places is None else places
            held = part.at(known[: self.rows]).astype(np.float64)
            with np.errstate(over="ignore"):
                now = now[: len(held)].astype(part.dtype).astype(np.float64)
            # Batches of another size are rounded differently.
            near = CLOSE * np.abs(held, where=np.isfinite(held), out=np.zeros_like(held)).max(initial=0.0)
            if not np.allclose(now, held, rtol=CLOSE, atol=near, equal_nan=True):
                raise InputError(
                    f"The rows of the layer {layer} in {self.folder} differ from those of the first inputs now. The "
                    f"inputs, the model or the pool function have changed. {AGAIN}"
                )

    def put(
        self,
        blocks: dict[str, np.ndarray],
        ids: np.ndarray,
        inputs: int,
        beside: dict[str, np.ndarray],
        places: np.ndarray | None = None,
    ) -> None:
        """Write the rows of a batch of inputs, and their further values.

        Without `places` they are appended.
        """
        with self._writing():
            for layer, part in self._layers.items():
                part.put(blocks[layer], places)
            self._ids.put(ids, places)
            for name, part in self._beside.items():
                part.put(beside[name], places)
        self.inputs += inputs
        self.rows += len(ids)

    def due(self) -> bool:
        """Whether it is time for a sync."""
        return self._note.due()

    def keep(self, digest: str, *, complete: bool = False) -> None:
        """Sync the added rows, so that another run can continue from here."""
        state = {"inputs": self.inputs, "rows": self.rows, "digest": digest, "complete": complete}
        with self._writing():
            for part in self._parts:
                part.sync()
            self._note.keep(state, now=True)
        self.noted = state

    def finish(self, manifest: dict[str, Any], about: dict[str, str]) -> None:
        """Give every file its header, write the manifest and rename the folder."""
        with self._writing():
            for part in self._parts:
                part.finish(self.rows, about)
            layers = {
                layer: {"file": part.final.name, "shape": [self.rows, part.width], "dtype": part.dtype.name}
                for layer, part in self._layers.items()
            }
            facts = {"rows": self.rows, "layers": layers, **{name: f"{name}.npy" for name in self._beside}}
            write_text(self.folder / MANIFEST, json.dumps({**manifest, **facts}, indent=2))
            for leftover in self.folder.glob(".*"):
                # Temporary files of a run that was killed.
                if self._is_ours(leftover):
                    _remove(leftover)
            if self.out.exists():
                refuse_foreign(self.out)
            put_folder(self.folder, self.out)
            (self.out / NOTE).unlink()

    def _refuse_strange(self) -> None:
        """Refuse a partial folder that contains files which this extraction did not write."""
        if not self.folder.exists():
            return
        self._written |= _written_before(self._note.path)
        there = self.folder.iterdir() if self.folder.is_dir() else [self.folder]
        strange = min((path.name for path in there if not self._is_ours(path)), default=None)
        if strange is not None:
            raise InputError(
                f"{self.folder} exists and holds {strange}, which this extraction did not write. Move it, or choose "
                "another folder."
            )

    def _is_ours(self, path: Path) -> bool:
        """Whether a path in the partial folder was written by an extraction."""
        if path.is_symlink():
            return False
        if path.name == NOTE:
            return _is_note(path)
        if path.name in self._written:
            return path.is_dir() if self._written[path.name] else path.is_file()
        return any(is_left_of(path.with_name(name), path.name) for name in (NOTE, *self._written))

    def _clear(self) -> None:
        """Remove the files of extractions; the folder itself is locked and stays."""
        for path in list(self.folder.iterdir()):
            if self._is_ours(path):
                _remove(path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn a system error into a message that says which rows are kept."""
        try:
            yield
        except (OSError, InputError) as raised:
            # Errors of files that are replaced atomically have their own message.
            error = raised.__cause__ if isinstance(raised, InputError) else raised
            if not isinstance(error, OSError):
                raise
            why = error.strerror or str(error)
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                why += " (the disk is full, or a limit on sizes is reached)"
            left = f"The rows of {self.kept} inputs are kept in {self.folder}. The same call continues from there."
            raise InputError(
                f"Could not write {self.out}: {why}. {left if self.kept else 'Nothing was left behind.'}"
            ) from error


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_note(path: Path) -> bool:
    """Whether a file is the (possibly damaged) note of an extraction, and not another file of this name."""
    if not path.is_file():
        return False
    try:
        note = load_note(path)
    except (ValueError, OSError, RecursionError):
        return True
    return isinstance(note, dict) and "identity" in note


def _is_sound(state: dict[str, Any]) -> bool:
    if {name: type(value) for name, value in state.items()} != KINDS:
        return False
    return bool(state["inputs"] >= 0 and state["rows"] >= 0)


def written(layers: Iterable[str], form: str) -> dict[str, bool]:
    """Names of the files of an extraction besides its note, and whether each is a folder."""
    known = writable(form)
    names = {MANIFEST: False, IDS: False, BLOCKS: False, LABELS: False}
    for stem in file_stems(layers).values():
        names[f"{stem}.{form}"] = known.is_folder
        if known.header is None:
            names[f"{stem}{RAW}"] = False
    return names


def _written_before(note: Path) -> dict[str, bool]:
    """Names of the files of the extraction that wrote a note; its layers may differ from those of the new one."""
    try:
        match load_note(note):
            case {"identity": {"layers": dict(layers), "format": str(form)}}:
                return written(layers, form)
    except (ValueError, OSError, RecursionError, InputError):
        pass  # nothing is known, then
    return {}


def resume_hint(out: str | os.PathLike[str]) -> str:
    """What an interrupted run has stored, and how to continue."""
    folder = partial_folder(Path(out))
    if not (folder / NOTE).is_file():
        return "nothing was written"
    return f"the rows so far are kept in {folder}; run the same command again (without --restart) to continue"


class Part:
    """The rows of one layer (or the ids, or the blocks) while they are written.

    The file is opened for each write and closed again, so that a model may have more layers than the limit of open
    files. Until `finish` its header is zeros, so that no program reads it as a complete file.

    Parameters
    ----------
    stem : str
        Name without suffix.
    form : str
        Suffix, without its dot, of the format of the rows.
    width : int or None
        Columns; None for rows that are single values.
    name, about : str, dict of str
        Of the tensor in a .safetensors file, and its metadata.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        form: str,
        width: int | None,
        dtype: np.dtype[Any],
        name: str = "rows",
        about: dict[str, str] | None = None,
    ) -> None:
        self.final = folder / f"{stem}.{form}"
        self._format = writable(form)
        self.path = self.final if self._format.header else folder / f"{stem}{RAW}"
        self.width, self.dtype = width, dtype.newbyteorder("<")
        self._name, self._about = name, about or {}
        self._offset = len(self._header(_MOST))

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dtype.itemsize * (1 if self.width is None else self.width)

    def cut(self, rows: int, total: int | None = None) -> None:
        """Keep only the first rows; 0 starts a new file. `total` reserves space for this number of rows."""
        if not self._format.header and self.final.exists():
            return  # already complete
        size = self._offset + (rows if total is None else total) * self.row_bytes
        with open(self.path, "r+b" if rows else "wb") as file:
            if rows and os.fstat(file.fileno()).st_size < size:
                raise InputError(f"{self.path} is shorter than before. Start again with restart=True (--restart).")
            file.truncate(size)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Rows that were written."""
        if not self._format.header and self.final.exists():
            return self._format.open(str(self.final), self.final.name, None, None).take(places)
        rows = [self._rows(int(place), 1) for place in places]
        return np.concatenate(rows) if rows else self._rows(0, 0)

    def put(self, block: np.ndarray, places: np.ndarray | None = None) -> None:
        """Append rows, or write each at its index."""
        plain = np.ascontiguousarray(block, self.dtype)
        # Neighbours are written at once.
        cuts = (np.flatnonzero(np.diff(places) != 1) + 1).tolist() if places is not None else []
        with open(self.path, "ab" if places is None else "r+b", buffering=0) as file:
            for first, rows in zip([0, *cuts], np.split(plain, cuts), strict=True):
                if places is not None and len(rows):
                    file.seek(self._offset + int(places[first]) * self.row_bytes)
                left = rows.view(np.uint8).reshape(-1).data
                while len(left):
                    left = left[file.write(left) :]

    def sync(self) -> None:
        """Sync the added rows to disk."""
        if self.path.exists():
            with open(self.path, "rb") as file:
                os.fsync(file.fileno())

    def finish(self, rows: int, about: dict[str, str]) -> None:
        """Write the header, or convert the rows to their format; safe to repeat after an interruption."""
        self._about = {**self._about, **about}
        if self._format.header:
            header = self._header(rows, self._offset)
            with open(self.path, "r+b") as file:
                file.write(header)
                file.flush()
                os.fsync(file.fileno())
        elif not self.final.exists():
            chunk = max(1, min(rows, CHUNK_BYTES // self.row_bytes))
            shape = (rows, self.width or 1)
            blocks = (self._rows(start, min(chunk, rows - start)) for start in range(0, rows, chunk))
            self._format.write_rows(self.final, shape, self.dtype, blocks, about=self._about)
            self.path.unlink()

    def _header(self, rows: int, size: int | None = None) -> bytes:
        shape = (rows,) if self.width is None else (rows, self.width)
        header = self._format.header
        return b"" if header is None else header(shape, self.dtype, self._name, self._about, size)

    def _rows(self, start: int, count: int) -> np.ndarray:
        width, offset = self.width or 1, self._offset + start * self.row_bytes
        return np.fromfile(self.path, self.dtype, count * width, offset=offset).reshape(count, width)


def file_stems(layers: Iterable[str]) -> dict[str, str]:
    """A file name without suffix for each layer: the name of the layer, changed where file systems do not allow it."""
    stems: dict[str, str] = {}
    taken = set(RESERVED)
    for layer in layers:
        plain = re.sub(r"[^A-Za-z0-9._#-]+", "_", layer).lstrip(".")[:LONGEST] or "layer"
        stem, count = plain, 1
        # Some file systems ignore case.
        while stem.lower() in taken:
            count += 1
            stem = f"{plain}_{count}"
        taken.add(stem.lower())
        stems[layer] = stem
    return stems
