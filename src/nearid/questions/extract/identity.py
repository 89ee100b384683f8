"""Identity of a torch module besides its weights, for a key: attributes, files of code, versions of libraries."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import nn

from nearid.arrays.memory import is_a
from nearid.base.cache import Unkeyed, file_hash
from nearid.base.errors import type_of
from nearid.questions.extract.network import ORIGIN

PLAIN = (int, float, complex, str, bytes, NoneType)
# Types of torch that their repr identifies.
PRINTED = (torch.device, torch.dtype, torch.layout, torch.memory_format)
# Packages whose versions are part of every key.
BOTH = ("torch", "transformers")
KNOWN = (*BOTH, "numpy", "nearid")
# Attributes of every module: weights and modules, which are handled elsewhere, and hooks.
REGISTRIES = frozenset(vars(nn.Module()))
FORWARD_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
# Another attribute of torch that refers to the weights.
DERIVED = ("_flat_weights", "_flat_weight_refs")
INSTALLED = ("site-packages", "dist-packages")
# With these, code can come from anywhere.
ANYWHERE = ("__import__", "exec", "eval")


def computed(model: nn.Module) -> Iterator[Any]:
    """Everything that the rows of a module depend on besides its weights; raise Unkeyed if that is not certain."""
    homes = set()
    for name, module in model.named_modules():
        kind = type(module)
        if isinstance(module, torch.jit.ScriptModule):
            raise Unkeyed(f"{kind.__qualname__}, whose code is compiled")
        if any(getattr(module, hooks) for hooks in FORWARD_HOOKS):
            raise Unkeyed("a module with hooks")
        if "forward" in vars(module):
            raise Unkeyed(f"{kind.__qualname__} with a forward of its own")
        homes |= {each.__module__ for each in kind.__mro__ if _package(each.__module__) not in ("builtins", *BOTH)}
        yield [name, kind.__module__, kind.__qualname__]
        # Others are in the state dict.
        for buffer in sorted(module._non_persistent_buffers_set):
            yield [name, buffer, _told(buffer, module._buffers.get(buffer), module)]
        for attribute, value in vars(module).items():
            if attribute not in REGISTRIES and not (attribute in DERIVED and isinstance(module, nn.RNNBase)):
                yield [name, attribute, _told(attribute, value, module)]
    yield _code(homes)


def _told(name: str, value: Any, module: nn.Module) -> Any:
    """The contents of an attribute."""
    if isinstance(value, (*PLAIN, np.ndarray, np.generic, torch.Tensor)):
        return value
    if isinstance(value, PRINTED):
        return str(value)
    if isinstance(value, list | tuple):
        return [type(value).__name__, *(_told(name, each, module) for each in value)]
    if isinstance(value, set | frozenset) and all(isinstance(each, PLAIN) for each in value):
        return sorted(map(repr, value))
    if type(value) is dict:
        return {key: _told(name, each, module) for key, each in value.items()}
    if isinstance(value, partial):
        return ["partial", *(_told(name, each, module) for each in (value.func, value.args, value.keywords))]
    if any(is_a(value, "transformers", kind) for kind in ("PreTrainedConfig", "PretrainedConfig", "GenerationConfig")):
        entries = {n: each for n, each in value.to_dict().items() if n not in ORIGIN and not n.startswith("_")}
        return [_told(name, entries, module), getattr(value, "_attn_implementation", None)]
    known = _public(value)
    if known is None and inspect.ismethod(value) and value.__self__ is module:
        # A method under another name; its code is that of the class.
        known = value.__name__ if getattr(type(module), value.__name__, None) is value.__func__ else None
    if known is None:
        raise Unkeyed(f"{name}, {type_of(value)}")
    return ["function", known]


def _public(value: Any) -> str | None:
    """The name of a function or class of torch or transformers, under which it can be found there."""
    name, home = (str(getattr(value, each, None)) for each in ("__name__", "__module__"))
    for place in (torch, nn.functional, sys.modules.get(home)):
        if place is not None and _package(place.__name__) in BOTH and getattr(place, name, None) is value:
            return f"{place.__name__}.{name}"
    return None


def _code(names: set[str]) -> list[Any]:
    """Hashes of the user's files of these Python modules and of all their imports; versions of other packages.

    Plain values of the Python modules count too, because they may have been changed at run time.
    """
    waiting, found, versions = sorted(names), dict[str, Any](), dict[str, list[str]]()
    while waiting:
        name = waiting.pop()
        package = _package(name)
        if name in found or package in versions or package in (*sys.stdlib_module_names, *KNOWN):
            continue
        if package == "__main__":
            raise Unkeyed("code that is in no file")
        if _is_installed(package):
            versions[package] = _version(package)
            continue
        module = sys.modules.get(name)
        if module is None:
            if package not in sys.modules and find_spec(package) is None:
                continue  # it does not exist, so its code cannot run
            raise Unkeyed(f"{name}, which is not imported yet")
        if "." in name:
            waiting.append(name.rpartition(".")[0])
        file = getattr(module, "__file__", None)
        if file is None and hasattr(module, "__path__"):
            found[name] = None  # a folder without code
            continue
        if file is None or not file.endswith(".py") or not os.path.isfile(file):
            raise Unkeyed(f"{name}, whose code is in no file")
        values = {n: v for n, v in vars(module).items() if isinstance(v, PLAIN) and not n.startswith("__")}
        found[name] = [file_hash(Path(file)), values]
        waiting += _imports(name, Path(file))
    return [dict(sorted(found.items())), dict(sorted(versions.items()))]


def _imports(name: str, file: Path) -> Iterator[str]:
    """Names of the Python modules that a file imports anywhere."""
    module = sys.modules[name]
    home = name if hasattr(module, "__path__") else name.rpartition(".")[0]
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        raise Unkeyed(f"{file.name}, which is no Python") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = home.split(".")[: len(home.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            held = sys.modules.get(base)
            # A name that is not in the package may be a file that was not imported yet.
            inner = [f"{base}.{alias.name}" for alias in node.names if alias.name != "*"]
            names = [
                base,
                *(each for each in inner if each in sys.modules or not hasattr(held, each.rpartition(".")[2])),
            ]
        else:
            if isinstance(node, ast.Name) and node.id in ANYWHERE:
                raise Unkeyed(f"{file.name}, which calls {node.id}")
            continue
        if any(_package(each) in ("importlib", "runpy") for each in names):
            raise Unkeyed(f"{file.name}, which imports by names that it makes")
        yield from names


def _is_installed(package: str) -> bool:
    try:
        spec = find_spec(package)
    except ValueError:  # made by hand
        return False
    places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
    return any(part in INSTALLED for place in places for part in Path(place).parts)


def _version(package: str) -> list[str]:
    names = sorted(set(_distributions().get(package, ())))
    if not names:
        raise Unkeyed(f"{package}, whose version is not known")
    return [f"{name} {version(name)}" for name in names]


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def _package(name: str) -> str:
    return name.partition(".")[0]
