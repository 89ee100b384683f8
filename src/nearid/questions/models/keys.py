"""Hash of the origin of an extraction: model, inputs and options by their contents, wherever the files are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from nearid import __version__
from nearid.arrays.formats.registry import format_of
from nearid.arrays.memory import as_numpy, is_a
from nearid.base.cache import Unkeyed, file_hash
from nearid.base.files import local_path
from nearid.questions.extract.pictures import are_pictures, common_folder
from nearid.questions.extract.texts import TOKENISER

# Libraries that rows depend on besides model, inputs and options.
CONFIGURATION = "config.json"
LIBRARIES = ("torch", "transformers", "tokenizers", "onnxruntime", "numpy", "pillow")
# Options of `extract` that may be paths.
TOKENIZER = "tokenizer"
PATHS = ("ids", "mask", TOKENIZER)
# Large files beside an ONNX file that are not part of a tokeniser.
WEIGHTS = (".onnx", ".onnx_data", ".data", ".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack")


def key_of(*parts: Any) -> str:
    """SHA-256 of the contents of all parts and of the versions of nearid and the libraries; else raise Unkeyed.

    A string counts as a string, even if a file has this name.
    """
    digest = hashlib.sha256(f"nearid {__version__}\n".encode())
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            digest.update(f"{name} {version(name)}\n".encode())
    for part in parts:
        for piece in _pieces(part):
            # Each piece follows its length, so different lists of pieces give different bytes.
            digest.update(f"{len(piece)} ".encode())
            digest.update(piece)
    return digest.hexdigest()


def model_key(model: Any, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """A model for `extract`, and what its rows depend on, for a key; raise Unkeyed if that is not known.

    The folder of a transformers model is identified by the bytes of its files, without loading it. Any other model is
    loaded; weights, code and attributes of its modules count.
    """
    if isinstance(model, str | os.PathLike) and (local_path(model) / CONFIGURATION).is_file():
        place = local_path(model)
        return model, [place.resolve().name, _files(place)]
    from nearid.questions.extract.identity import computed
    from nearid.questions.extract.network import Network

    network = opened_network(model, options)
    if not isinstance(network, Network):
        # Where its tokeniser comes from, unless another is named.
        beside = network.graph.path.parent
        own = TOKENIZER not in options and any((beside / name).is_file() for name in TOKENISER)
        return model, [network.about(), _files(beside, but=WEIGHTS) if own else None]
    # Where a tokeniser comes from.
    home = getattr(network.module, "name_or_path", None) if network.pretrained else None
    return network, [network.about(), home, _files(Path(home)) if home else None, *computed(network.module)]


def data_key(data: Any) -> list[Any]:
    """Inputs for a key: files by name and contents, wherever they are; other strings count as strings."""
    if isinstance(data, str | os.PathLike):
        return ["path", *_contents(local_path(data))]
    if are_pictures(data):
        folder, paths = common_folder([local_path(each) for each in data])
        # Ids and labels follow from the relative paths.
        each = [[path.relative_to(folder).as_posix(), _hashed(path)] for path in paths]
        return ["pictures", folder.name or str(folder.resolve()), each]
    return ["values", data]


def options_key(options: Mapping[str, Any]) -> list[Any]:
    """Options of `extract` for a key, and the contents of those that are paths."""
    found = {}
    for name in PATHS:
        value = options.get(name)
        if isinstance(value, str | os.PathLike):
            place = local_path(value)
            if name == TOKENIZER:
                found[name] = ["folder", _files(place)]
            elif place.is_file() or (place.exists() and format_of(place) is not None):
                found[name] = _contents(place)
    return [dict(options), found]


def opened_network(model: Any, options: Mapping[str, Any]) -> Any:
    """Load a model with the options of `extract` that apply to loading."""
    from nearid.questions.extract.network import open_network

    return open_network(model, **{name: options[name] for name in ("factory", "prefix", "revision") if name in options})


def _files(folder: Path, but: tuple[str, ...] = ()) -> dict[str, str]:
    """The hash of every file directly in the folder of a model: weights, configuration, tokeniser.

    Parameters
    ----------
    but : tuple of str
        Suffixes of files that are left out.
    """
    found = sorted(each for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []
    return {each.name: _hashed(each) for each in found if each.suffix.lower() not in but}


def _contents(place: Path) -> list[Any]:
    """Content of a path: file or folder, its name, and the hashes of all files in it."""
    name = place.name or str(place.resolve())
    if not place.is_dir():
        return ["file", name, _hashed(place)]
    found = {}
    for where, folders, files in os.walk(place, onerror=_unread):
        if any(os.path.islink(os.path.join(where, folder)) for folder in folders):
            raise Unkeyed(f"{place}, which contains links to folders")
        paths = (Path(where, file) for file in files)
        found.update({path.relative_to(place).as_posix(): _hashed(path) for path in paths})
    return ["folder", name, dict(sorted(found.items()))]


def _hashed(path: Path) -> str:
    try:
        return file_hash(path)
    except OSError as error:
        raise Unkeyed(f"{path}, which cannot be read") from error


def _unread(error: OSError) -> None:
    raise Unkeyed(str(error)) from error


def _pieces(value: Any) -> Iterator[bytes | memoryview]:
    """The contents of a value, kinds and values in turn."""
    yield type(value).__name__.encode()
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        yield repr(value).encode()
    elif isinstance(value, str | os.PathLike):
        yield os.fspath(value).encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, Mapping):
        yield str(len(value)).encode()
        for name, each in value.items():
            yield from _pieces(name)
            yield from _pieces(each)
    elif is_a(value, "pandas", "Series") or is_a(value, "pandas", "DataFrame"):
        yield from _pieces(list(value.index))
        yield from _pieces(value.to_dict("list") if value.ndim == 2 else value.to_list())
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for each in value:
            yield from _pieces(each)
    elif isinstance(value, np.ndarray) or is_a(value, "torch", "Tensor"):
        try:
            array = as_numpy(value)
        except (TypeError, RuntimeError, NotImplementedError) as error:  # sparse tensors, and types that numpy lacks
            raise Unkeyed(type(value).__name__) from error
        # numpy has no name for some types of torch.
        yield str(value.dtype).encode()
        if array.dtype.hasobject:
            yield from _pieces(array.tolist())
        else:
            yield f"{array.dtype.str} {array.shape}".encode()
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    else:
        raise Unkeyed(type(value).__name__)
