"""`nearid extract`: hidden states of a model, layer by layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from nearid.base.interrupt import leaving


def extract(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Weights (.safetensors .pt .pth .th .ckpt) with --factory; package.module:function; a transformers "
            "folder or name.",
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Inputs, one per entry of the first axis: .npy .npz .safetensors .pt .ckpt"
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the layers.")],
    layers: Annotated[
        str | None,
        typer.Option(help="Names or patterns, separated by commas: layer*.*, encoder.**, hidden_states.* (blocks)."),
    ] = None,
    pool: Annotated[
        Literal["mean", "cls", "last", "patches", "tokens", "flatten"],
        typer.Option(help="How a layer becomes rows."),
    ] = "mean",
    factory: Annotated[
        str | None,
        typer.Option(metavar="PACK.MOD:FUNC", help="Makes the module for the weights: package.module:function."),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="Part of the weights that is the module, as model.")] = None,
    revision: Annotated[str | None, typer.Option(help="Version of a model on the hub.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Inputs that go through the model at once.")] = 128,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, ...; auto for a GPU where there is one.")] = "auto",
    mixed: Annotated[
        Literal["float16", "bfloat16"] | None, typer.Option(help="Mixed precision, on other devices than the CPU.")
    ] = None,
    form: Annotated[Literal["npy", "zarr", "safetensors"], typer.Option("--format", help="Of the rows.")] = "npy",
    dtype: Annotated[Literal["float32", "float16", "float64"], typer.Option(help="Of the rows.")] = "float32",
    mask: Annotated[str | None, typer.Option(help="File with 1 for tokens and 0 for padding.")] = None,
    ids: Annotated[str | None, typer.Option(help="File (or entry of DATA) with an id for each input.")] = None,
    key: Annotated[str | None, typer.Option(help="Entry of DATA that is the input.")] = None,
    scale: Annotated[float | None, typer.Option(help="Divide inputs by this [255 for images of bytes].")] = None,
    mean: Annotated[str | None, typer.Option(help="Then subtract this: one number, or one per channel.")] = None,
    std: Annotated[str | None, typer.Option(help="Then divide by this: one number, or one per channel.")] = None,
    channels: Annotated[Literal["first", "last"] | None, typer.Option(help="Where images have their channels.")] = None,
    keep_nonfinite: Annotated[
        bool, typer.Option("--keep-nonfinite", help="Write NaN and infinities, which are an error otherwise.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew instead of going on.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace layers that are in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what made the layers as JSON on stdout.")] = False,
) -> None:
    """Run a model over inputs and write what its layers give, a row for each input: files that `compare` reads.

    After Ctrl-C the same command goes on where it was. Code that a file of weights may hold is never run.
    """
    from nearid.base.errors import InputError

    try:
        import torch  # noqa: F401
    except ImportError:
        raise InputError("Models run with torch. Install it: pip install 'nearid[lab]'") from None
    from nearid.questions.extract.run import extract as run
    from nearid.questions.extract.store import left_behind

    with leaving(lambda: left_behind(out)):
        found = run(
            model,
            data,
            layers=layers,
            pool=pool,
            out=out,
            format=form,
            dtype=dtype,
            batch_size=batch_size,
            device=device,
            mixed=mixed,
            mask=mask,
            ids=ids,
            key=key,
            scale=scale,
            mean=mean,
            std=std,
            channels=channels,
            factory=factory,
            prefix=prefix,
            revision=revision,
            keep_nonfinite=keep_nonfinite,
            restart=restart,
            overwrite=overwrite,
            progress=True,
        )
    with leaving(f"the layers are in {out}"):
        for note in found.notes:
            typer.echo(note, err=True)
        if as_json:
            typer.echo(json.dumps(found.provenance, indent=2, allow_nan=False))
        else:
            from nearid.questions.extract.table import render
            from nearid.show.deliver import show

            show(lambda width: render(found))
        typer.echo(f"Layers written to {out}", err=True)
