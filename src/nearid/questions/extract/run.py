"""Extract hidden states of a model, layer by layer, into a folder or into memory."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

from nearid.arrays.formats.registry import writable
from nearid.arrays.names import patterns_of
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import Bound, Count, checked
from nearid.base.progress import Reporting, reporting
from nearid.questions.extract.given import given_model, refuse_layers, refuse_length
from nearid.questions.extract.inputs import Given, open_inputs
from nearid.questions.extract.onnx_graph import OnnxGraph, open_graph
from nearid.questions.extract.result import Extraction
from nearid.questions.extract.store import check_out, refuse_inputs_in
from nearid.questions.extract.texts import TOKENS


@checked
def extract(
    model: Any,
    data: Any,
    *,
    layers: Iterable[str] | str | None = None,
    pool: Literal["mean", "cls", "last", "patches", "tokens", "words", "flatten"] | Callable[[Any, Any], Any] = "mean",
    out: str | os.PathLike[str] | None = None,
    format: str = "npy",
    dtype: Literal["float32", "float16", "float64"] = "float32",
    batch_size: Count | Literal["auto"] = 128,
    device: Any = None,
    mixed: Literal["float16", "bfloat16", "auto"] | None = None,
    mask: Any = None,
    ids: Any = None,
    key: str | None = None,
    column: str | None = None,
    tokenizer: Any = None,
    max_length: Count | None = None,
    resize: Any = None,
    crop: Any = None,
    grey: bool = False,
    labels: bool = False,
    drop_unreadable: bool = False,
    scale: Annotated[float, Bound(0, open_low=True)] | None = None,
    mean: Any = None,
    std: Any = None,
    channels: Literal["first", "last"] | None = None,
    factory: str | None = None,
    prefix: str | None = None,
    revision: str | None = None,
    carry: Mapping[str, str] | None = None,
    keep_nonfinite: bool = False,
    restart: bool = False,
    overwrite: bool = False,
    progress: Reporting = False,
) -> Extraction:
    """Return the outputs of a model's layers as rows of numbers, one row for each input.

    The model runs in evaluation mode, without gradients, batch by batch. Rows are written while the model runs, so only
    a few batches and the inputs are in memory (inputs in .npy files are not loaded). The folder `out` appears only when
    it is complete. An interrupted run leaves the folder `out`.partial. The same call then continues from there and
    gives the same bytes.

    Parameters
    ----------
    model : torch.nn.Module or str
        A module; a file of weights (.safetensors, .pt, .pth, .th, .ckpt; nearid never unpickles objects) together with
        a `factory`; package.module:function that returns a module; the folder of a transformers model, or its name on
        the hub; an ONNX file (.onnx), which runs on the CPU.
    data : texts, pictures, array, tensor, dict of such, path, torch dataset or iterable of batches
        Texts: a list or Series of strings; a file .txt (one text per line), .jsonl, .csv or .parquet (see `column`); a
        folder of the library datasets. The model's own tokeniser reads them.
        Pictures: a folder, including the folders in it, or a list of .png, .jpg and .webp files. Their ids are their
        paths.
        Arrays: one entry per input along the first axis. Images of bytes, (n, h, w, c) or (n, c, h, w), are divided by
        255. Other whole numbers are token ids. A dict is passed to the model by name; pooling uses its
        "attention_mask", and its "ids" name the rows. Files: .npy, .npz, .safetensors, .pt, .ckpt. If batches are
        tuples, the first entry is the input.
    layers : names or patterns, optional
        Dotted names of modules. * matches within one part of a name, ** matches any number of parts ("layer*.*",
        "encoder.**"). "lstm:0" is a part of an output, "fc:input" the input of a module, "output" what the model
        returns. In an ONNX file: names of node outputs, with parts between slashes or points. Default: the blocks of
        the model (its children, with containers opened); "hidden_states.*" of a transformers model; the numbered blocks
        of an ONNX file, or else its nodes with weights.
    pool : {"mean", "cls", "last", "patches", "tokens", "words", "flatten"} or callable, default="mean"
        How the output of a layer becomes rows. Padding is never used. mean: mean over the positions of a map or over
        tokens. cls, last: the first or the last token. patches: mean of the tokens after the first. tokens: one row
        for each token, with the id input x 2^20 + position; the rows of one input are a block, and other questions
        hold out whole blocks. words: one row for each word of a text, the mean over its tokens, with the id text x
        2^20 + word, so models with different tokenisers have the same rows. flatten: all numbers. A callable takes
        (tensor, mask) and returns rows.
    out : path, optional
        Folder to write: a file for each layer, ids.npy, extraction.json, and for tokens and words blocks.npy (the input
        of each row). Default: rows are kept in memory.
    format : str, default="npy"
        Format of the files: "npy", "parquet", "safetensors", "zarr", or one that you registered.
    dtype : {"float32", "float16", "float64"}, default="float32"
        Type of the rows.
    batch_size : int or "auto", default=128
        Number of inputs that go through the model at once. "auto" starts with 8 and doubles as long as the batch fits
        into memory and is at least a tenth faster. A continued run keeps the size that it began with.
    device : str, optional
        "cpu", "cuda" or another torch device; "auto" uses a GPU if there is one. Default: the device of the module;
        "auto" for a model that nearid loads.
    mixed : {"float16", "bfloat16", "auto"}, optional
        Automatic mixed precision; on the CPU only bfloat16. "auto" uses bfloat16 if it is at least a tenth faster on
        the first inputs. An alert reports the speed and how far rows differ from full precision.
    mask : array or path of shape (n, t), optional
        Not 0 for tokens, 0 for padding. transformers models get the mask too; their padding may be on either side.
    ids : array or path of shape (n,), optional
        Strings or integers that name the inputs, or the name of their entry or column. Default: numbers from 0.
    key : str, optional
        The entry of a file or dict that is the input, if there are several.
    column : str, optional
        The column of a table that holds the texts. Default: the column "text", or the only one.
    tokenizer : str, path or transformers tokenizer, optional
        For texts: the folder or hub name of the tokeniser. Default: the model's own.
    max_length : int, optional
        For texts: cut texts after this many tokens. An alert counts these texts. Default: as many as the model takes.
    resize : int or (height, width), optional
        For pictures: length of the shorter side in pixels, or of both. Default: as in the model's image processor.
    crop : int or (height, width), optional
        For pictures: then keep a centre of this size. Default: as in the model's image processor.
    grey : bool, default=False
        For pictures: read one channel of grey instead of red, green and blue.
    labels : bool, default=False
        For pictures: also write labels.npy, which holds the folder of each picture.
    drop_unreadable : bool, default=False
        Leave out pictures that cannot be read. An alert lists them. Default: an error.
    scale : float, optional
        Divide the inputs by this number. Default: 255 for images of bytes.
    mean : float or sequence of float, optional
        Then subtract this number, or one per channel. Default for pictures: as in the model's image processor.
    std : float or sequence of float, optional
        Then divide by this number, or one per channel. Default for pictures: as in the model's image processor.
    channels : {"first", "last"}, optional
        Which axis of images holds the channels. Default: nearid infers it for whole numbers; floats are used as given.
    factory : str, optional
        package.module:function that makes the module for a file of weights.
    prefix : str, optional
        Use only the weights whose names begin with this text, such as "model.", and remove it from the names.
    revision : str, optional
        Version of a model on the hub.
    carry : mapping of str to str, optional
        For a recurrent ONNX file: inputs that receive an output of the step before, such as {"state": "stateN"}
        (--carry state=stateN). The data has the axes (inputs, steps, ...). States begin with zeros.
    keep_nonfinite : bool, default=False
        Write NaN and infinities. Default: an error.
    restart : bool, default=False
        Start again instead of continuing an interrupted run.
    overwrite : bool, default=False
        Replace a folder that extract wrote before.
    progress : bool or callable, default=False
        Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.

    Returns
    -------
    Extraction
        A mapping from the name of each layer to its rows.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    >>> layers = nearid.extract(model, np.random.default_rng(0).normal(size=(10, 3)), layers="0,2")
    >>> {name: rows.shape for name, rows in layers.items()}
    {'0': (10, 4), '2': (10, 2)}
    """
    arguments = dict(locals())
    writable(format)
    patterns = patterns_of(layers)
    target = None if out is None else check_out(out, overwrite=overwrite)
    if target is not None:
        refuse_inputs_in(target, model, data, mask, ids)
    given, graph = first_look(**arguments)
    try:
        from nearid.questions.extract.batches import Source, open_source
        from nearid.questions.extract.forward import Forward, Preprocess, mixed_precision
        from nearid.questions.extract.network import open_network, torch_device
        from nearid.questions.extract.onnx_network import OnnxNetwork
        from nearid.questions.extract.passes import Run
        from nearid.questions.extract.pixels import PictureSource
        from nearid.questions.extract.pooling import pool_name
        from nearid.questions.extract.tokens import TextSource, open_tokenizer
        from nearid.questions.extract.tuning import USUAL, fitting_batch, fitting_precision, noted
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise InputError("Models run with torch. Install it: pip install 'nearid[lab]'") from None
    prepare = Preprocess.of(**given.colours, channels=channels)
    if graph is None:
        if device is not None:
            torch_device(device)  # before a large model is loaded
        network = open_network(model, factory=factory, prefix=prefix, revision=revision)
    else:
        network = OnnxNetwork(graph, carry)
    place = network.place(device)
    if graph is None or mixed is None:
        cast, alerts = mixed_precision(mixed, place)
    else:
        cast, alerts = (
            None,
            (
                Alert(
                    "full_precision", "An ONNX file runs in the precision that it was saved in. nearid ignored mixed."
                ),
            ),
        )
    source: Source
    if given.pictures is not None:
        source = PictureSource(given.pictures, labelled=labels)
    elif given.texts is not None:
        own = open_tokenizer(tokenizer, model, network, revision)
        source = TextSource(given.texts, own, network, pool=pool_name(pool), max_length=max_length)
    else:
        source = open_source(data, mask=mask, ids=ids, key=key, size=USUAL if batch_size == "auto" else batch_size)
    options = {
        "pool": pool_name(pool),
        "dtype": dtype,
        "precision": str(network.dtype).removeprefix("torch."),
        "device": place.type,
        "batch_size": batch_size,
        "preprocess": {**prepare.to_dict(), **given.shaping},
        **({"processor": True} if given.of_model else {}),
        "keep_nonfinite": keep_nonfinite,
        **({"carry": dict(carry)} if carry else {}),
    }
    with (
        network.evaluating(place),
        network.taps(patterns, pool) as taps,
        reporting(progress) as tracked,
    ):
        forward = Forward(network, taps, prepare, place, None)
        before = noted(target, restart=restart)
        if cast is not None:
            forward, notes = fitting_precision(forward, source, cast, before.get("precision"), chosen=mixed != "auto")
            alerts += notes
            options["precision"] = str(forward.mixed or network.dtype).removeprefix("torch.")
        if batch_size == "auto":
            options["batch_size"] = before.get("batch_size") or fitting_batch(forward, source)
        run = Run(forward, source, options, tracked)
        extraction = run.into_memory() if target is None else run.into_folder(target, format, restart=restart)
    extraction.alerts = (*network.alerts, *alerts, *extraction.alerts)
    return extraction


def first_look(
    model: Any,
    data: Any,
    *,
    layers: Any,
    pool: Any,
    ids: Any,
    factory: Any,
    prefix: Any,
    revision: Any,
    carry: Any,
    **options: Any,
) -> tuple[Given, OnnxGraph | None]:
    """Refuse wrong arguments of `extract` before torch is imported; return the inputs and an ONNX graph, if any.

    Parameters
    ----------
    **options
        The other arguments of `extract`, all of them.
    """
    given = open_inputs(
        data,
        model,
        pool=pool,
        ids=ids,
        revision=revision,
        for_texts={name: options[name] for name in ("column", "tokenizer", "max_length")},
        for_pictures={name: options[name] or None for name in ("resize", "crop", "grey", "labels", "drop_unreadable")},
        for_images={name: options[name] for name in ("scale", "mean", "std")},
        for_arrays={name: options[name] for name in ("mask", "key", "channels")},
    )
    graph = None
    if isinstance(model, str | os.PathLike):
        named = given_model(model, factory=factory, prefix=prefix, revision=revision)
        patterns = patterns_of(layers)
        refuse_layers(named, patterns)
        if given.texts is not None:
            refuse_length(named, options["max_length"], own=options["tokenizer"] is None)
        if named.kind == "onnx":
            graph = open_graph(named.place)
            if given.texts is not None and TOKENS not in graph.inputs:
                takes = ", ".join(f"{name}: {each}" for name, each in graph.inputs.items())
                raise InputError(f"{named.place.name} does not take tokens of texts ({TOKENS}). It takes {takes}.")
            graph.layers(patterns)
            graph.carried(carry)
    if carry and graph is None:
        raise InputError("carry is for ONNX files (.onnx). A torch module keeps its own state.")
    return given, graph
