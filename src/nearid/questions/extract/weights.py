"""Modules from saved weights, with a factory or a known architecture; weights are never unpickled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from torch import Tensor, nn

from nearid.arrays.formats.torch import flattened
from nearid.arrays.names import few, not_found
from nearid.arrays.paths import open_contents
from nearid.arrays.reading import reached
from nearid.base.errors import InputError, brief, type_of
from nearid.questions.extract.batches import as_tensor
from nearid.questions.extract.given import holds_weights, is_factory, refuse_factory, weights_suffixes
from nearid.questions.extract.users_code import same_surroundings

# Prefixes that a decoder has among the weights.
PREFIXES = ("", "decoder.", "module.", "module.decoder.")
# Prefixes that data-parallel and compiled modules add to the names of all weights.
WRAPPED = ("module.", "_orig_mod.")
# Characters of a name that a message shows.
_LONGEST = 80
# Sizes of Burgess' decoder; the first image, whose side every transposed convolution doubles, has the side FIRST.
HIDDEN, CHANNELS, KERNEL, FIRST = 256, 32, 4, 4

Weights = dict[str, Tensor]
# How names of buffers end: counts of batches, and statistics of those.
COUNTED, RUNNING = "num_batches_tracked", ("running_mean", "running_var")


def load_decoder(model: str, *, factory: str | None = None, prefix: str | None = None) -> Callable[[Tensor], Any]:
    """Load a decoder like `load_module`; a factory alone may return any function, known weights need no factory."""
    if is_factory(model):
        return _made(model, factory, prefix, Callable, "a decoder that can be called")  # type: ignore[no-any-return]
    if factory is not None:
        return load_module(model, factory=factory, prefix=prefix)
    weights, module = _known(model, load_weights(model, prefix))
    return fill(model, module, weights)


def load_module(model: str, *, factory: str | None = None, prefix: str | None = None) -> nn.Module:
    """A torch module from a file of weights and the factory that makes it, or from a factory alone.

    Parameters
    ----------
    model : str
        A file of weights (.safetensors, .pt, .ckpt), or package.module:function, a factory that returns a module with
        its weights.
    factory : str, optional
        package.module:function that makes the module for the weights.
    prefix : str, optional
        Part of the weights to use, such as "model."; the prefix is removed from their names. In a file with several
        state dicts it begins with the entry of one, such as "ema.model.". Prefixes of training wrappers ("module.",
        "_orig_mod.") are always removed.
    """
    if is_factory(model):
        return _module(model, factory, prefix)
    weights = load_weights(model, prefix)
    if factory is None:
        raise InputError(
            f"{model} contains only weights. Name the function that makes the module: factory (--factory) "
            f"package.module:function."
        )
    return fill(model, _module(factory), weights, prefix)


def _module(factory: str, other: str | None = None, prefix: str | None = None) -> nn.Module:
    return _made(factory, other, prefix, nn.Module, "a torch module")  # type: ignore[no-any-return]


def fill(model: str, module: nn.Module, weights: Weights, prefix: str | None = None) -> nn.Module:
    """Load weights into a module; all must fit. Prefixes of training wrappers are removed from the names.

    `prefix` was already removed; it is only for messages.
    """
    given, own = weights, module.state_dict()
    for wrapper in WRAPPED:
        if all(name.startswith(wrapper) for name in weights) and not under(own, wrapper):
            weights = under(weights, wrapper)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        fitting = weights if weights.keys() & own.keys() else given
        misfits = _misfits(weights, own) or f"{brief(error)}."
        advice = "" if own.keys() <= weights.keys() else _prefix_advice(fitting, own, prefix or "")
        raise InputError(f"The weights of {model} do not fit the module: {misfits}{advice}") from None
    return module


def _misfits(weights: Weights, own: Weights) -> str:
    extra, missing = ([k for k in one if k not in other] for one, other in ((weights, own), (own, weights)))
    # Weights first. Counters of layers are missing in some files, and no output depends on them.
    extra, missing = (
        sorted((k for k in names if not k.endswith(COUNTED)), key=lambda k: k.endswith(RUNNING))
        for names in (extra, missing)
    )
    sizes = [
        f"{k} {tuple(w.shape)}, not {tuple(own[k].shape)}"
        for k, w in weights.items()
        if k in own and w.shape != own[k].shape
    ]
    kinds = {"not in the module": extra, "missing": missing, "of another size": sizes}
    parts = [f"{len(names)} {kind}, such as {', '.join(names[:3])}" for kind, names in kinds.items() if names]
    return f"{'; '.join(parts)}." if parts else ""


def _prefix_advice(weights: Weights, own: Weights, prefix: str) -> str:
    """Advice about the prefix under which a file has all the weights of a module, if there is one."""
    first = next(iter(own))
    prefixes = [name.removesuffix(first) for name in weights if name.endswith(f".{first}")]
    fitting = next((p for p in prefixes if all(p + name in weights for name in own)), None)
    if fitting is None:
        return "" if weights.keys() & own.keys() else " A prefix may be missing."
    return f" Give prefix={prefix + fitting!r} (on the command line --prefix {prefix + fitting})."


def load_weights(path: str | os.PathLike[str], prefix: str | None = None) -> Weights:
    """Load the named tensors of a file without running code from it.

    A state dict is any mapping of names to tensors, wherever it is in the file.

    Parameters
    ----------
    prefix : str, optional
        Part of the weights to use; the prefix is removed from their names. With several state dicts it begins with the
        name of one.
    """
    place = Path(path)
    if not place.is_file():
        raise InputError(f"There is no file {place}; give weights ({weights_suffixes()}) or package.module:function.")
    if not holds_weights(place):
        raise InputError(f"{place.name} is no file of weights: {weights_suffixes()} are expected.")
    with reached(place):
        return part_of(place.name, state_dicts(open_contents(place).saved, place.name), prefix or "")


def latent_width(decoder: object) -> int | None:
    """Number of latents of a decoder, from its first linear layer; None if there is none."""
    modules = decoder.modules() if isinstance(decoder, nn.Module) else ()
    return next((m.in_features for m in modules if isinstance(m, nn.Linear)), None)


def _known(model: str, weights: Weights) -> tuple[Weights, nn.Module]:
    """The known architecture of the weights, or of a part of them under a usual prefix."""
    for prefix in PREFIXES:
        part = under(weights, prefix)
        module = BurgessDecoder.of(part)
        if module is not None:
            return part, module
    raise InputError(
        f"The weights of {model} ({few(list(weights)[:5])}, ...) do not belong to a known decoder. Name the function "
        f"that makes the module: --factory package.module:function (and --prefix decoder. if the decoder is only a "
        f"part of the weights)."
    )


def _made(factory: str, other: str | None, prefix: str | None, kind: Any, expected: str) -> Any:
    """Return the result of a factory; raise an error if another factory or a prefix is also given."""
    if other is not None or prefix is not None:
        raise InputError(f"{factory} is already a factory. The options factory and prefix are for a file of weights.")
    refuse_factory(factory)
    with same_surroundings():
        return _called(factory, kind, expected)


def _called(factory: str, kind: Any, expected: str) -> Any:
    try:
        function = resolve_name(factory)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is imported, or end the process
        raise InputError(f"The factory {factory} cannot be imported: {_described(error)}.") from error
    if not callable(function):
        raise InputError(f"{factory} is {type_of(function)}, but a function that makes a module is expected.")
    try:
        made = function()
    except (Exception, SystemExit) as error:  # a factory may raise anything too
        raise InputError(
            f"The factory {factory} failed: {_described(error)}. It is called without arguments."
        ) from error
    if not isinstance(made, kind):
        raise InputError(f"{factory} returned {type_of(made)}, but {expected} is expected.")
    return made


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {brief(error)}"


def state_dicts(saved: Any, name: str) -> dict[str, Weights]:
    """State dicts in a saved object, by the dotted name of their entry; at least one.

    A state dict is any mapping of names to tensors, wherever it is.
    """
    held = dict(_nested(saved, ""))
    if not held:
        raise InputError(
            f"{name} contains no state dict (a mapping of names to tensors). {_contents(saved)} "
            "Save one with torch.save(module.state_dict(), path)."
        )
    # Values of callbacks and single layers do not count if there is a whole module.
    held = {entry: weights for entry, weights in held.items() if any(w.ndim for w in weights.values())} or held
    return {entry: weights for entry, weights in held.items() if any("." in name for name in weights)} or held


def part_of(name: str, held: dict[str, Weights], prefix: str) -> Weights:
    """Weights under a prefix, without the prefix; with several state dicts it begins with the name of one."""
    entries = [entry for entry in held if prefix.startswith(f"{entry}.")]
    if len(held) > 1 and not entries:
        known = few(f"{_short(entry)!r} ({_sample(weights)})" for entry, weights in held.items())
        first = f"{next(iter(held))}."
        raise InputError(
            f"{name} contains {len(held)} state dicts: {known}. Choose one with prefix={_short(first)!r} (on the "
            f"command "
            f"line --prefix {_short(first)})."
        )
    entry = max(entries, key=len) if entries else next(iter(held))
    weights = held[entry]
    part = (len(held) == 1 and under(weights, prefix)) or under(weights, prefix.removeprefix(f"{entry}."))
    if not part:
        raise not_found(name, "prefix", prefix, weights)
    return part


def under(weights: Weights, prefix: str) -> Weights:
    """Weights whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}


def _nested(value: Any, entry: str) -> Iterator[tuple[str, Weights]]:
    if isinstance(value, dict):
        # Optimisers use numbers as keys, modules do not.
        if not all(isinstance(name, str) for name in value):
            return
        if value and all(hasattr(w, "shape") for w in value.values()):
            yield entry, {name: as_tensor(name, w) for name, w in value.items()}
            return
        parts = list(value.items())
    elif isinstance(value, list | tuple):
        parts = [(str(index), part) for index, part in enumerate(value)]
    else:
        return
    for name, part in parts:
        yield from _nested(part, f"{entry}.{name}" if entry else name)


def _sample(weights: Weights) -> str:
    shown = [f"{_short(name)} {tuple(w.shape)}" for name, w in list(weights.items())[:2]]
    return f"{len(weights)} tensors: {', '.join(shown)}{', ...' if len(weights) > 2 else ''}"


def _contents(saved: Any) -> str:
    if isinstance(saved, Tensor):
        return f"It is one tensor of shape {tuple(saved.shape)}."
    if not isinstance(saved, dict | list | tuple):
        return f"It is of type {type(saved).__name__}."
    held = [
        f"{_short(entry)!r} {tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__}"
        for entry, value in flattened(saved, "")
    ]
    return f"It holds {few(held)}." if held else "It is empty."


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


class BurgessDecoder(nn.Module):
    """The decoder of Burgess et al. (2018): latents to images in (0, 1).

    Parameters
    ----------
    latents : int
        Number of latents.
    channels : int, default=1
        Channels of the images.
    size : {32, 64}, default=32
        Side of the images.

    Examples
    --------
    >>> import torch
    >>> from nearid.questions.extract.weights import BurgessDecoder
    >>> BurgessDecoder(10)(torch.zeros(2, 10)).shape
    torch.Size([2, 1, 32, 32])
    """

    def __init__(self, latents: int, channels: int = 1, size: int = 32) -> None:
        super().__init__()
        self.lin1 = nn.Linear(latents, HIDDEN)
        self.lin2 = nn.Linear(HIDDEN, HIDDEN)
        self.lin3 = nn.Linear(HIDDEN, CHANNELS * FIRST * FIRST)
        self.convT_64 = _doubling(CHANNELS) if size == 64 else None
        self.convT1, self.convT2, self.convT3 = _doubling(CHANNELS), _doubling(CHANNELS), _doubling(channels)

    def forward(self, z: Tensor) -> Tensor:
        for linear in (self.lin1, self.lin2, self.lin3):
            z = torch.relu(linear(z))
        x = z.unflatten(1, (CHANNELS, FIRST, FIRST))
        for layer in (self.convT_64, self.convT1, self.convT2):
            if layer is not None:
                x = torch.relu(layer(x))
        return torch.sigmoid(self.convT3(x))

    @classmethod
    def of(cls, weights: Mapping[str, Tensor]) -> BurgessDecoder | None:
        """The decoder of these weights, by their names and shapes; None if they are of something else."""
        first, last = (weights[name].shape if name in weights else () for name in ("lin1.weight", "convT3.weight"))
        if len(first) != 2 or len(last) != 4:
            return None
        decoder = cls(first[1], last[1], 64 if "convT_64.weight" in weights else 32)
        expected = {name: own.shape for name, own in decoder.state_dict().items()}
        return decoder if expected == {n: w.shape for n, w in weights.items()} else None


def _doubling(channels: int) -> nn.ConvTranspose2d:
    return nn.ConvTranspose2d(CHANNELS, channels, KERNEL, stride=2, padding=1)
