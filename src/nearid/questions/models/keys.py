"""What an extraction is of, as a hash: the model, the inputs and the options by their contents, wherever they lie."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from nearid import __version__
from nearid.arrays.memory import as_numpy, is_a
from nearid.base.cache import file_hash
from nearid.base.errors import type_of
from nearid.base.files import local_path

# What rows depend on beside model, inputs and options.
CONFIGURATION = "config.json"
LIBRARIES = ("torch", "transformers", "tokenizers", "onnxruntime", "numpy", "pillow")
# Attributes of modules that are told in a key.
PLAIN = (int, float, str, NoneType)


class Unkeyed(Exception):
    """Something whose contents nobody can tell without using it up, such as a generator or a function."""


def key_of(*parts: Any) -> str:
    """SHA-256 of the contents of all parts, of nearid and of the libraries that make rows; Unkeyed where one has none.

    A path stands for the bytes of the file, or of all files below a folder.
    """
    digest = hashlib.sha256(f"nearid {__version__}\n".encode())
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            digest.update(f"{name} {version(name)}\n".encode())
    for part in parts:
        for piece in _pieces(part):
            # The length before each piece: no two lists of pieces read alike.
            digest.update(f"{len(piece)} ".encode())
            digest.update(piece)
    return digest.hexdigest()


def model_key(model: Any, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """A model for `extract`, and what its rows depend on, for a key; Unkeyed where that cannot be told.

    The folder of a transformers model is told by the bytes of its files, so that nothing is loaded. Any other model is
    loaded: weights, code and plain numbers of its modules count.
    """
    if isinstance(model, str | os.PathLike) and (local_path(model) / CONFIGURATION).is_file():
        place = local_path(model)
        return model, [place.resolve().name, _files(place)]
    from nearid.questions.extract.network import Network

    network = opened_network(model, options)
    if not isinstance(network, Network):
        return model, network.about()
    # Where a tokeniser comes from.
    home = getattr(network.module, "name_or_path", None)
    return network, [network.about(), home, _files(Path(home)) if home else None, *_code(network.module)]


def opened_network(model: Any, options: Mapping[str, Any]) -> Any:
    """A model, loaded with those options of `extract` that say how."""
    from nearid.questions.extract.network import open_network

    return open_network(model, **{name: options[name] for name in ("factory", "prefix", "revision") if name in options})


def _files(folder: Path) -> dict[str, str]:
    """The hash of every file directly in the folder of a model: weights, configuration, tokeniser."""
    found = sorted(each for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []
    return {each.name: file_hash(each) for each in found}


def _code(model: Any) -> Iterator[Any]:
    """What the weights of a module do not tell: the files that its classes stand in, and numbers beside the weights."""
    files = set()
    for name, module in model.named_modules():
        kind = type(module)
        own = kind.__module__.partition(".")[0] not in ("torch", "transformers")
        if own:
            file = inspect.getsourcefile(kind) if kind.__module__ != "__main__" else None
            if file is None or not os.path.isfile(file):
                raise Unkeyed(f"{kind.__qualname__}, whose code is in no file")
            files.add(Path(file))
        if module._forward_hooks or module._forward_pre_hooks:
            raise Unkeyed("a module with hooks")
        for attribute, value in vars(module).items():
            if attribute == "training":
                continue
            if isinstance(value, PLAIN):
                yield [name, attribute, value]
            elif own and not attribute.startswith("_") and not is_a(value, "torch", "Tensor"):
                raise Unkeyed(f"{attribute}, {type_of(value)}")
    yield sorted(file_hash(file) for file in files)


def _pieces(value: Any) -> Iterator[bytes | memoryview]:
    """The contents of a value, kinds and values in turn."""
    yield type(value).__name__.encode()
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        yield repr(value).encode()
    elif isinstance(value, str | os.PathLike):
        yield from _text_or_path(value)
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
        array = as_numpy(value)
        if array.dtype.hasobject:
            yield from _pieces(array.tolist())
        else:
            yield f"{array.dtype.str} {array.shape}".encode()
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    else:
        raise Unkeyed(type(value).__name__)


def _text_or_path(value: str | os.PathLike[str]) -> Iterator[bytes]:
    """The name and the contents of what is there; or a text."""
    path = os.path.expanduser(value)
    # Of a text that is longer than any path the answer is no, too.
    if not os.path.exists(path):
        yield os.fspath(value).encode("utf-8", "surrogatepass")
    elif os.path.isfile(path):
        yield os.fsencode(os.path.basename(path))
        yield file_hash(Path(path)).encode()
    else:
        place = Path(path)
        for each in sorted(each for each in place.rglob("*") if each.is_file()):
            yield os.fsencode(each.relative_to(place))
            yield file_hash(each).encode()
