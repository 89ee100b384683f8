"""Hidden states of a model, layer by layer, into a folder or into memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch

from nearid.arrays.formats.layers import Extraction
from nearid.arrays.names import patterns_of
from nearid.base.errors import InputError, unknown
from nearid.base.options import checked
from nearid.base.progress import Reporting, reporting
from nearid.questions.extract.batches import open_source
from nearid.questions.extract.device import torch_device
from nearid.questions.extract.formats import check_format
from nearid.questions.extract.forward import Forward
from nearid.questions.extract.network import open_network
from nearid.questions.extract.passes import Run
from nearid.questions.extract.pooling import Pooler, check_pool, pool_name
from nearid.questions.extract.preprocess import Preprocess
from nearid.questions.extract.store import check_out, refuse_inputs_in
from nearid.questions.extract.taps import Taps

DTYPES = ("float32", "float16", "float64")
MIXED = {"float16": torch.float16, "bfloat16": torch.bfloat16}


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
