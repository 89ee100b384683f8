"""`nearid extract`."""

from collections.abc import Iterable, Mapping
from typing import Any

from nearid.show.command import Question
from nearid.show.help import OUTPUT


def _left(options: Mapping[str, Any]) -> str:
    from nearid.questions.extract.store import resume_hint

    return resume_hint(options["out"])


def _formats() -> Iterable[str]:
    from nearid.arrays.formats.registry import writable_names

    return writable_names()


# Options that nearid layers hands on to extract.
TEXTS = {
    "pool": "How the output of a layer becomes rows. mean: mean over tokens, or over the positions of an image. cls, "
    "last: the first or the last token. patches: mean of the tokens after the first. tokens: one row for each token. "
    "words: one row for each word of a text, the mean over its tokens, so models with different tokenisers have the "
    "same rows. flatten: all numbers. Padding is never used.",
    "mask": "File with a mask of the shape (inputs, tokens): 0 for padding, another number for tokens.",
    "ids": "File, or entry or column of the data, with a name for each input. Default: numbers from 0.",
    "key": "Entry of the file that is the input, if it holds several.",
    "carry": "For a recurrent ONNX file: an input that receives an output of the step before, such as state=stateN. "
    "May be repeated. The data has the axes (inputs, steps, ...). States begin with zeros.",
    "resize": "For pictures: length of the shorter side in pixels, or height and width, such as 224,224. Default: as "
    "in the model's image processor.",
    "crop": "For pictures: then keep the centre of this size, or of this height and width. Default: as in the model's "
    "image processor.",
    "mean": "Then subtract this number, or one per channel, separated by commas. Default for pictures: as in the "
    "model's image processor.",
    "std": "Then divide by this number, or one per channel, separated by commas. Default for pictures: as in the "
    "model's image processor.",
}

QUESTION = Question(
    "nearid.questions.extract.run:extract",
    {"model": "MODEL", "data": "DATA"},
    summary="Run a model over data and write the outputs of its layers, one row for each input.",
    choices={"format": _formats},
    short={"out": "-o"},
    required=("out",),
    left=_left,
    groups={"labels": OUTPUT, "dtype": OUTPUT},
    page="guide/extract",
    examples=(
        "nearid extract gpt2 texts.txt -o layers --pool words",
        "nearid extract resnet.pt images.npy -o layers --factory nets:resnet",
        "nearid extract model.onnx images.npy -o layers --layers output",
    ),
    texts={
        "model": "A file of weights (.safetensors, .pt, .pth, .th, .ckpt) together with --factory; "
        "package.module:function that returns a module; the folder of a transformers model, or its name on the hub; or "
        "an ONNX file (.onnx). nearid never unpickles objects.",
        "data": "Texts: a file .txt (one text per line), .jsonl, .csv or .parquet (see --column), or a folder of the "
        "library datasets. Pictures: a folder with .png, .jpg and .webp files, also in folders below it. Arrays: .npy, "
        ".npz, .safetensors, .pt or .ckpt, one entry per input along the first axis. Images of bytes are divided by "
        "255. Other whole numbers are token ids.",
        "out": "Folder to write: a file for each layer, ids.npy, extraction.json, and for tokens and words blocks.npy "
        "(the input of each row).",
        "format": "Format of the files.",
        **TEXTS,
    },
    done=lambda options: f"Layers written to {options['out']}",
)
