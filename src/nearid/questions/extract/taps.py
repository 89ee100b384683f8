"""Layers by name, and forward hooks that pool their outputs immediately and discard the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nearid.arrays.names import chosen, few, split_part
from nearid.base.errors import InputError, type_of
from nearid.questions.extract.given import HIDDEN
from nearid.questions.extract.pooling import CHANNELS_FIRST, TOKENS_FIRST, Pooler, pooled
from nearid.questions.extract.words import WordTokens

# The model itself, whose output can be taken like that of a layer.
WHOLE = "output"
# Containers; the modules inside them are the layers.
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
# The part that is the input of a module, not an output: fc:input is the input of a head.
GIVEN = "input"
# The name of the hidden state among named outputs.
USUAL = "last_hidden_state"


@dataclass(frozen=True)
class Tap:
    """A module whose output is extracted.

    Attributes
    ----------
    name : str
        Name of the layer.
    part : str or None
        Part of the output to extract; "input" is the input of the module.
    wanted : bool
        Whether it was given by its exact name, so that it must be called.
    """

    name: str
    module: nn.Module
    part: str | None
    wanted: bool


class Taps:
    """Hooks on the chosen layers of a model, in place inside a `with`.

    Parameters
    ----------
    patterns : list of str or None
        Layers by name or pattern. Default: the hidden states of a transformers model, the blocks of other models.
    hidden : bool
        Whether the model returns hidden states on request.
    also : sequence of str
        Additional layers, if they are called.
    """

    def __init__(
        self,
        model: nn.Module,
        patterns: list[str] | None,
        pool: str | Pooler,
        *,
        hidden: bool,
        also: Sequence[str] = (),
    ) -> None:
        self._pool = pool
        self._model = model
        usual = [f"{HIDDEN}.*"] if hidden else [*blocks(model)] or [WHOLE]
        self._taps, self._states = _taps(model, patterns or usual, hidden, wanted=patterns is not None)
        # A layer with two hooks would seem to be called twice.
        known = {tap.name for tap in self._taps}
        self._taps += [tap for tap in _taps(model, list(also), hidden, wanted=False)[0] if tap.name not in known]
        self._stack = ExitStack()
        self._pooled: dict[str, Tensor] = {}
        self._calls: Counter[str] = Counter()
        self._n = 0
        # The output of the last known module, if it was a map (n, channels, positions).
        self._channels: int | None = None
        self._mask: Tensor | None = None
        self._words: WordTokens | None = None

    def __enter__(self) -> Taps:
        with ExitStack() as stack:
            modules = list(self._model.modules())
            if any(isinstance(module, CHANNELS_FIRST) for module in modules):
                # Registered before the taps, which use their records.
                for module in modules:
                    if isinstance(module, CHANNELS_FIRST + TOKENS_FIRST):
                        stack.callback(module.register_forward_hook(self._note_kind).remove)
            for tap in self._taps:
                if tap.part == GIVEN:
                    # Before the module runs, because it may change its input in place.
                    stack.callback(tap.module.register_forward_pre_hook(self._hook(tap)).remove)
                else:
                    stack.callback(tap.module.register_forward_hook(self._hook(tap)).remove)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _hook(self, tap: Tap) -> Callable[..., None]:
        def take(module: nn.Module, inputs: Any, output: Any = None) -> None:
            self._calls[tap.name] += 1
            calls = self._calls[tap.name]
            # A module that is called several times (shared weights, one ReLU for all) is a separate layer each time.
            label = tap.name if calls == 1 else f"{tap.name}#{calls}"
            x = tensor_of(tap.name, inputs) if tap.part == GIVEN else tensor_of(tap.name, output, tap.part)
            self._keep(label, x, self._is_map(x))

        return take

    def _note_kind(self, module: nn.Module, inputs: Any, output: Any) -> None:
        x = output[0] if isinstance(output, tuple) else output
        if isinstance(x, Tensor) and x.ndim == 3:
            self._channels = x.shape[1] if isinstance(module, CHANNELS_FIRST) else None

    def _is_map(self, x: Tensor) -> bool:
        """Whether three axes are (n, channels, positions), according to the last known module."""
        # If the last axis has the size of the channels, the tensor was transposed.
        turned = x.ndim == 3 and x.shape[2] == self._channels != x.shape[1]
        return self._channels is not None and not turned

    def _keep(self, label: str, x: Tensor, maps: bool) -> None:
        rows = pooled(label, x, self._n, self._pool, self._mask, maps=maps, words=self._words)
        # The next layer may change it in place.
        if rows.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            rows = rows.clone()
        self._pooled[label] = rows

    def run(
        self, call: Callable[[], Any], n: int, mask: Tensor | None, words: WordTokens | None = None
    ) -> dict[str, Tensor]:
        """Pooled outputs by layer of one forward pass of n inputs, in the order in which the layers ran."""
        self._n, self._mask, self._words = n, mask, words
        self._pooled, self._calls, self._channels = {}, Counter(), None
        output = call()
        if self._states:
            self._hidden_states(output)
        pooled, self._pooled = self._pooled, {}
        return pooled

    def _hidden_states(self, output: Any) -> None:
        states = getattr(output, HIDDEN, None)
        if not states:
            raise InputError(
                f"{type(self._model).__name__} returned no {HIDDEN}; name layers by their modules instead, such as "
                f"{', '.join(list(blocks(self._model))[:3])}."
            )
        names = [f"{HIDDEN}.{at}" for at in range(len(states))]
        for pattern in self._states:
            for name in chosen("The model", pattern, names):
                if name not in self._pooled:
                    self._keep(name, states[int(name.rpartition(".")[2])], False)

    def refuse_silent(self, pooled: dict[str, Tensor]) -> None:
        """Refuse named layers that the forward pass does not call, and the case of no layer at all."""
        for tap in self._taps:
            if tap.wanted and tap.name not in pooled:
                raise InputError(
                    f"The layer {tap.name} is a part of the model, but its forward pass does not call it. "
                    "Name the layers inside it, or one that is called."
                )
        if not pooled:
            raise InputError("The model's forward pass calls none of the chosen layers. Choose others.")


def _taps(model: nn.Module, patterns: list[str], hidden: bool, *, wanted: bool) -> tuple[list[Tap], list[str]]:
    """Modules to hook, and patterns of hidden states to take from the output."""
    modules = {name or WHOLE: module for name, module in model.named_modules(remove_duplicate=False)}
    taps: dict[str, Tap] = {}
    states = []
    for pattern in patterns:
        layer, part = split_part(pattern, modules)
        if hidden and layer.partition(".")[0] == HIDDEN:
            states.append(layer)
            continue
        # The whole model is a layer only if it is named.
        names = [name for name in modules if name != WHOLE or layer == WHOLE]
        for name in chosen("The model", layer, names):
            label = f"{name}:{part}" if part else name
            shared = any(t.module is modules[name] and t.part == part for t in taps.values())
            if not shared or name == layer:
                taps.setdefault(label, Tap(label, modules[name], part, wanted and name == layer))
    return list(taps.values()), states


def blocks(model: nn.Module) -> Iterator[str]:
    """Names of the blocks of a model: its children, with containers replaced by their modules."""
    if isinstance(model, CONTAINERS) and not any(model.children()):
        return
    for name, child in model.named_children():
        if isinstance(child, CONTAINERS):
            yield from (f"{name}.{inner}" for inner in blocks(child))
        else:
            yield name


def tensor_of(layer: str, output: Any, part: str | None = None) -> Tensor:
    """The tensor in an output: itself, the named part, the last hidden state, or else the first of floats.

    Parameters
    ----------
    layer : str
        For the messages.
    part : str, optional
        Keys and indices of the tensor, separated by dots.
    """
    value = output
    for step in part.split(".") if part else ():
        value = _step(layer, value, step, str(part))
    tensor = _first(value)
    if tensor is None:
        raise InputError(
            f"The layer {layer} gave {type_of(value)} without a tensor of numbers. Leave the layer out, or name a "
            f"part of its output: {layer}:part."
        )
    if tensor.is_nested:
        raise InputError(
            f"The layer {layer} gave a nested tensor, whose inputs have different lengths. Leave the layer out."
        )
    return tensor


def _step(layer: str, value: Any, step: str, part: str) -> Any:
    entries = _entries(value)
    if step not in entries:
        held = f"It holds {few(entries)}." if entries else f"It gave {type_of(value)}."
        raise InputError(f"The output of the layer {layer} has no part {part!r}. {held}")
    return entries[step]


def _first(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value if value.dtype.is_floating_point or value.dtype in (torch.int32, torch.int64) else None
    entries = _entries(value)
    if isinstance(entries.get(USUAL), Tensor):
        return _first(entries[USUAL])
    for held in entries.values():
        tensor = _first(held)
        if tensor is not None and tensor.dtype.is_floating_point:
            return tensor
    return None


def _entries(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(key): held for key, held in value.items()}
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        places = {str(at): held for at, held in enumerate(value)}
        return {**places, **dict(zip(names, value, strict=True))} if names else places
    if isinstance(value, Tensor):
        return {}
    return {name: held for name, held in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
