"""Hidden states of a model, layer by layer, into a folder or into memory."""

from __future__ import annotations

import os
import platform
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearid import __version__
from nearid.arrays import first_nonfinite, open_rows
from nearid.arrays.formats.layers import FORMAT, Extraction
from nearid.arrays.names import patterns_of
from nearid.base.errors import InputError, unknown
from nearid.base.options import checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.questions.extract.batches import MASK, Batch, DataHash, Source, open_source, peeked
from nearid.questions.extract.forward import Forward, Preprocess
from nearid.questions.extract.network import Network, open_network, torch_device
from nearid.questions.extract.pooling import Pooler, check_pool, pool_name, token_id_type, token_ids
from nearid.questions.extract.store import Store, check_format, check_out, refuse_inputs_in
from nearid.questions.extract.taps import Taps

DTYPES = ("float32", "float16", "float64")
MIXED = {"float16": torch.float16, "bfloat16": torch.bfloat16}
# Batches that may wait for the disk while the next is computed.
AHEAD = 2
# Inputs that show what the layers give, before anything is written: at most so many.
PROBE = 3
Blocks = dict[str, np.ndarray]


@checked
def extract(
    model: Any,
    data: Any,
    *,
    layers: Iterable[str] | str | None = None,
    pool: str | Pooler = "mean",
    out: str | os.PathLike[str] | None = None,
    format: str = "npy",
    dtype: str = "float32",
    batch_size: int = 128,
    device: Any = None,
    mixed: str | None = None,
    mask: Any = None,
    ids: Any = None,
    key: str | None = None,
    scale: float | None = None,
    mean: Any = None,
    std: Any = None,
    channels: str | None = None,
    factory: str | None = None,
    prefix: str | None = None,
    revision: str | None = None,
    keep_nonfinite: bool = False,
    restart: bool = False,
    overwrite: bool = False,
    progress: Reporting = False,
) -> Extraction:
    """Run a model over inputs and keep what its layers give, one row for each input.

    The model runs in evaluation mode without gradients, batch by batch; memory is bounded by a few batches, beside
    inputs that are in memory, as all files but .npy are. A folder appears whole or not at all. An interrupted run
    leaves `out`.partial, from which the same call goes on to the same bytes.

    Parameters
    ----------
    model : torch.nn.Module or str
        A module; a file of weights (.safetensors, .pt, .ckpt; never unpickled) with a `factory`;
        package.module:function that returns a module; a folder of a transformers model, or its name on the hub.
    data : array, tensor, dict of such, path, torch dataset or iterable of batches
        One entry per input along the first axis. Images of bytes, (n, h, w, c) or (n, c, h, w), are divided by 255.
        Other whole numbers are token ids. A dict is passed by name; its "attention_mask" also guides pooling, its
        "ids" name the rows. Files: .npy, .npz, .safetensors, .pt, .ckpt. Of batches that are tuples, the first is the
        input.
    layers : names or patterns, optional
        Dotted names of modules; * stays within a part, ** spans any number of them ("layer*.*", "encoder.**"); a part
        of an output as "lstm:0". For transformers models also "hidden_states.*", which is their default; for other
        modules the default are the blocks: children, with containers opened. "output" is what the model returns.
    pool : {"mean", "cls", "last", "patches", "tokens", "flatten"} or callable, default="mean"
        mean: over positions of maps and over tokens that are no padding. cls, last: the first and the last such token.
        patches: mean of the tokens after the first. tokens: a row for each token that is no padding, with the id
        input x 2^20 + position. flatten: everything. A callable takes (tensor, mask) and gives rows.
    out : path, optional
        Folder to write: a file for each layer, ids.npy and extraction.json. Without it rows are kept in memory.
    format : {"npy", "zarr", "safetensors"}, default="npy"
    dtype : {"float32", "float16", "float64"}, default="float32"
        Of the rows.
    batch_size : int, default=128
    device : str, optional
        Such as "cuda", or "auto"; where the model is by default.
    mixed : {"float16", "bfloat16"}, optional
        Automatic mixed precision, on devices other than the CPU.
    mask : array or path of shape (n, t), optional
        Not 0 where a token is no padding. transformers models get it too; there padding may be on either side.
    ids : array or path of shape (n,), optional
        Strings or integers that name the inputs; their numbers by default.
    key : str, optional
        The entry of a file (or dict) that is the input, where it holds other things.
    scale, mean, std, channels : optional
        Divide the inputs by `scale`, subtract `mean`, divide by `std` (one number, or one per channel); "first" or
        "last" where it cannot be told which axis holds the channels; floats are taken as they are without it.
    factory, prefix, revision : str, optional
        What makes the module for a file of weights, which part of the weights it gets, and the version on the hub.
    keep_nonfinite : bool, default=False
        Write NaN and infinities, which are an error otherwise.
    restart, overwrite : bool, default=False
        Begin anew where a part is left; replace a folder of layers.
    progress : bool, default=False
        Draw a progress bar on stderr.

    Returns
    -------
    Extraction
        A mapping from layers to rows.
    """
    if dtype not in DTYPES:
        raise InputError(unknown("dtype", dtype, DTYPES))
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}.")
    patterns, prepare = patterns_of(layers), Preprocess.of(scale, mean, std, channels)
    check_pool(pool), check_format(format)
    target = None if out is None else check_out(out, overwrite=overwrite)
    if target is not None:
        refuse_inputs_in(target, model, data, mask, ids)
    network = open_network(model, factory=factory, prefix=prefix, revision=revision)
    place = network.device if device is None else torch_device(device)
    cast, notes = _mixed(mixed, place)
    source = open_source(data, mask=mask, ids=ids, key=key, size=batch_size)
    options = {
        "pool": pool_name(pool),
        "dtype": dtype,
        "precision": str(cast or network.dtype).removeprefix("torch."),
        "device": place.type,
        "batch_size": batch_size,
        "preprocess": prepare.to_dict(),
        "keep_nonfinite": keep_nonfinite,
    }
    with (
        network.evaluating(place),
        Taps(network.module, patterns, pool, hidden=network.pretrained) as taps,
        reporting(progress) as report,
    ):
        forward = Forward(network, taps, prepare, place, cast)
        run = Run(forward, source, options, tokens=pool == "tokens", keep_nonfinite=keep_nonfinite, progress=report)
        found = run.into_memory() if target is None else run.into_folder(target, format, restart=restart)
    found.notes = (*network.notes, *notes, *found.notes)
    return found


def _mixed(name: str | None, device: torch.device) -> tuple[torch.dtype | None, tuple[str, ...]]:
    if name is None or name == "float32":
        return None, ()
    if name not in MIXED:
        raise InputError(unknown("mixed precision", name, MIXED))
    # On processors it gains little, and some that claim to have bfloat16 stop at it.
    fit = device.type != "cpu" and torch.amp.is_autocast_available(device.type)
    if fit and device.type == "cuda" and name == "bfloat16":
        fit = torch.cuda.is_bf16_supported()
    return (MIXED[name], ()) if fit else (None, (f"The device {device.type} runs in full precision, not in {name}.",))


class Run:
    """An extraction for which everything is open.

    Parameters
    ----------
    forward : Forward
    source : ArraySource or BatchSource
    options : dict
        As they go into the provenance; "dtype" and "batch_size" are used here.
    tokens : bool
        Whether every token is a row.
    keep_nonfinite : bool
    progress : Progress
    """

    def __init__(
        self,
        forward: Forward,
        source: Source,
        options: dict[str, Any],
        *,
        tokens: bool,
        keep_nonfinite: bool,
        progress: Progress,
    ) -> None:
        self._source, self._options = source, options
        self._tokens, self._keep_nonfinite = tokens, keep_nonfinite
        self._dtype = np.dtype(options["dtype"])
        first, self._batches = peeked(source.batches(options["batch_size"]))
        main = forward.main_of(first.arrays)
        if main is not None:
            x = first.arrays[main]
            forward.preprocess.check(main or source.name, tuple(x.shape), str(x.dtype).removeprefix("torch."))
        self._arrays = {
            name or "input": {"dtype": str(x.dtype).removeprefix("torch."), "shape": list(x.shape[1:])}
            for name, x in first.arrays.items()
        }
        # Not as many as in the batches: a layer whose first axis is something else cannot fit both.
        count = PROBE if first.n > PROBE else max(first.n - 1, 1)
        self._forward, found = forward.settled(first.first(count))
        forward.taps.refuse_silent(found)
        self._probed = found
        self._widths = {layer: int(rows.shape[1]) for layer, rows in found.items()}
        size = options["batch_size"]
        self._tick = progress("batches", -(-source.rows // size) if source.rows else 0)
        self._hash = DataHash()

    def into_memory(self) -> Extraction:
        """Rows in memory."""
        held: list[Blocks] = []
        ids: list[np.ndarray] = []
        inputs = 0
        for batch in self._batches:
            blocks, names = self._rows(batch)
            self._check(batch, blocks)
            held.append(blocks)
            ids.append(names)
            self._hash.update(batch)
            inputs += batch.n
            self._tick()
        every = np.concatenate(ids)
        rows = {
            layer: open_rows(np.concatenate([blocks[layer] for blocks in held]), ids=every, name=layer)
            for layer in self._widths
        }
        digest = self._hash.hexdigest()
        for each in rows.values():
            each.inputs_sha256 = digest
        layers = {layer: {"shape": list(r.shape), "dtype": self._dtype.name} for layer, r in rows.items()}
        told = self._provenance(digest, inputs)
        return Extraction(None, {**told, "rows": len(every), "layers": layers}, rows)

    def into_folder(self, out: Path, form: str, *, restart: bool) -> Extraction:
        """Rows in a folder."""
        id_type = token_id_type(self._source.id_type) if self._tokens else self._source.id_type
        model = self._forward.network.about()
        identity = {
            **self._options,
            "format": form,
            "layers": self._widths,
            "model": model["sha256"],
            "data": [self._source.rows, self._arrays],
            "ids": self._source.id_digest(),
            "versions": _versions(self._forward.network),
        }
        about = {"nearid": __version__, "model": model["sha256"], "pool": self._options["pool"]}
        layers = {layer: (width, self._dtype) for layer, width in self._widths.items()}
        store = Store(out, form, layers, id_type, identity, about, restart=restart)
        with store.open():
            store.check_space(None if self._tokens else self._source.rows)
            before = store.inputs
            store.refuse_others({layer: rows.numpy(force=True) for layer, rows in self._probed.items()})
            if store.complete:
                # Only the end is missing; but the data may be others by now.
                if next(self._remaining(store, store.inputs), None) is not None:
                    raise _changed(store, "there are more inputs than before")
            else:
                self._fill(store)
                if store.rows < 2:
                    raise InputError(f"The data gave {store.rows} row, but at least 2 are needed.")
                store.keep(self._hash.with_ids(), complete=True)
            digest = self._hash.hexdigest()
            store.finish(self._provenance(digest, store.inputs, model), {"data": digest})
        found = Extraction.open(out)
        if before:
            found.notes = (f"Went on from an earlier run: the rows of the first {before:,} inputs were there.",)
        return found

    def _fill(self, store: Store) -> None:
        done = store.inputs
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="nearid-extract") as writer:
                pending: deque[Future[None]] = deque()
                for batch in self._remaining(store, done):
                    blocks, ids = self._rows(batch)
                    pending.append(writer.submit(self._write, store, batch, blocks, ids))
                    if len(pending) > AHEAD:
                        pending.popleft().result()
                    self._tick()
                for each in pending:
                    each.result()
        except InputError as error:
            # Where rows are kept, it says so; unless the refusal is about them.
            if not store.kept or str(store.folder) in str(error):
                raise
            left = f"The rows of {store.kept} inputs are kept in {store.folder}"
            raise InputError(f"{error} {left}; with that mended, the same call goes on from there.") from error
        except BaseException:
            # An interruption: what has been written counts.
            if store.inputs:
                store.keep(self._hash.with_ids())
            raise

    def _remaining(self, store: Store, done: int) -> Iterator[Batch]:
        """Batches that are not written yet; the others are hashed, to see that they are the same."""
        seen = 0
        for batch in self._batches:
            if seen >= done:
                yield batch
                continue
            self._hash.update(batch)
            seen += batch.n
            self._tick()
            if seen >= done and (seen > done or self._hash.with_ids() != store.digest):
                break
        else:
            if seen >= done:
                return
        raise _changed(store, f"the first {done} inputs, or their ids, have changed")

    def _write(self, store: Store, batch: Batch, blocks: Blocks, ids: np.ndarray) -> None:
        if batch.start != store.inputs:
            return  # the batch before could not be written, which is told; nothing may come after it
        self._check(batch, blocks)
        store.append(blocks, ids, batch.n)
        self._hash.update(batch)
        if store.due():
            store.keep(self._hash.with_ids())

    def _rows(self, batch: Batch) -> tuple[Blocks, np.ndarray]:
        """Rows of every layer in memory, in the precision they are kept in, and their ids."""
        found, mask = self._forward(batch)
        widths = {layer: int(rows.shape[1]) for layer, rows in found.items()}
        if widths != self._widths:
            layer = next(k for k in {**self._widths, **widths} if widths.get(k) != self._widths.get(k))
            raise InputError(
                f"The layer {layer} gave {widths.get(layer, 'no')} columns for the inputs from {batch.start} on, but "
                f"{self._widths.get(layer, 'none')} for the first ones. Give inputs of one shape, or pool them to one."
            )
        with np.errstate(over="ignore"):
            blocks = {layer: rows.numpy(force=True).astype(self._dtype, copy=False) for layer, rows in found.items()}
        if not self._tokens:
            return blocks, batch.ids
        counts = {layer: len(block) for layer, block in blocks.items()}
        if mask is None:
            each = next(iter(counts.values())) // batch.n
            real = np.ones((batch.n, each), bool)
        else:
            real = mask.numpy(force=True)
        ids = token_ids(batch.ids, real)
        odd = next((layer for layer, count in counts.items() if count != len(ids)), None)
        if odd is not None:
            raise InputError(
                f"The layer {odd} gives {counts[odd]} tokens, but {len(ids)} are those of the first layer or of the "
                "mask; choose layers with the same tokens."
            )
        return blocks, ids

    def _check(self, batch: Batch, blocks: Blocks) -> None:
        """Refuse values that are not finite, by layer and input."""
        if self._keep_nonfinite:
            return
        for layer, block in blocks.items():
            bad = first_nonfinite(block, 0)
            if bad is not None:
                row, column, value = bad
                at = f"token row {row} of the batch" if self._tokens else f"input {batch.start + row}"
                name = "" if self._tokens else f" (id {batch.ids[row].item()!r})"
                raise InputError(
                    f"The layer {layer} gave {value} for {at}{name}, column {column}, in a batch that begins at input "
                    f"{batch.start}. Look at that input and at the weights; larger numbers than {self._dtype} holds "
                    "need another dtype. Such values are written with keep_nonfinite=True (--keep-nonfinite)."
                )

    def _provenance(self, digest: str, inputs: int, model: dict[str, Any] | None = None) -> dict[str, Any]:
        data = {"name": self._source.name, "sha256": digest, "inputs": inputs, "arrays": self._arrays}
        return {
            "format": FORMAT,
            "model": model or self._forward.network.about(),
            "data": {**data, "masked": MASK in self._arrays},
            "options": self._options,
            "versions": _versions(self._forward.network),
        }


def _changed(store: Store, how: str) -> InputError:
    return InputError(
        f"{store.folder} holds a part of other data: {how}. Begin anew with restart=True (--restart), or "
        "write elsewhere."
    )


def _versions(network: Network) -> dict[str, str]:
    found = {"nearid": __version__, "python": platform.python_version(), "numpy": np.__version__}
    found["torch"] = torch.__version__
    if network.pretrained:
        found["transformers"] = sys.modules["transformers"].__version__
    return found
