"""One forward pass over a batch: inputs to the device, layers pooled, and a sentence where the model refuses."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.questions.extract.batches import MASK, SINGLE, Batch
from nearid.questions.extract.network import Inputs, Network
from nearid.questions.extract.preprocess import Preprocess, looks_last
from nearid.questions.extract.pretrained import positions, unpadded_left
from nearid.questions.extract.taps import Taps


@dataclass(frozen=True)
class Forward:
    """How batches go through a model.

    Attributes
    ----------
    network : Network
    taps : Taps
    preprocess : Preprocess
    device : torch.device
    mixed : torch.dtype or None
        Precision of the products inside, where it is not that of the weights.
    contiguous : bool
        Whether the model needs inputs whose memory is in the order of their axes.
    """

    network: Network
    taps: Taps
    preprocess: Preprocess
    device: torch.device
    mixed: torch.dtype | None
    contiguous: bool = False

    def settled(self, batch: Batch) -> tuple[Forward, dict[str, Tensor]]:
        """The way in which a few inputs can go through the model, and what its layers give for them.

        Images with channels last in memory are quicker, but a model that views its maps as rows cannot take them.
        """
        try:
            return self, self(batch)[0]
        except InputError:
            plain = replace(self, contiguous=True)
            try:
                return plain, plain(batch)[0]
            except InputError:
                pass
            raise

    def __call__(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor | None]:
        """Pooled outputs by layer, and the mask of tokens, padding on the right."""
        inputs, mask = self._inputs(batch)
        try:
            with self._cast():
                found = self.taps.run(lambda: self.network.call(inputs), batch.n, mask)
        except InputError:
            raise
        except torch.OutOfMemoryError:
            raise InputError(
                f"A batch of {batch.n} inputs does not fit the memory of {self.device}; ask for a smaller "
                "batch_size (--batch-size)."
            ) from None
        except Exception as error:  # a model may raise anything at inputs that it does not take
            raise self._refusal(inputs, error) from error
        return found, mask

    def main_of(self, arrays: Mapping[str, Tensor]) -> str | None:
        """Name of the array that is preprocessed: the single one, the model's main argument, or the only input."""
        inputs = [name for name in arrays if name != MASK]
        main = next((name for name in (SINGLE, self.network.main_input()) if name in arrays), None)
        if main is None and len(inputs) == 1:
            main = inputs[0]
        if main is None and self.preprocess != Preprocess():
            raise InputError(
                f"Which of {', '.join(inputs)} scale, mean, std and channels are for cannot be told: normalise it "
                "before, or name it as the first argument of the model's forward."
            )
        return main

    def _cast(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.mixed is None else torch.autocast(self.device.type, self.mixed)

    def _inputs(self, batch: Batch) -> tuple[Inputs, Tensor | None]:
        arrays = dict(batch.arrays)
        mask = None
        if MASK in arrays:
            mask = arrays[MASK].to(self.device) != 0
            if mask.ndim != 2:
                raise InputError(f"The mask has shape {tuple(mask.shape)}, but (inputs, tokens) is expected.")
            empty = ~mask.any(1)
            if bool(empty.any()):
                row = batch.start + int(empty.int().argmax())
                raise InputError(f"The mask of input {row} leaves no token; leave that input out.")
        main = self.main_of(arrays)
        ready = {name: self._main(x) if name == main else self._plain(x) for name, x in arrays.items()}
        if SINGLE in ready:
            single = ready.pop(SINGLE)
            if not self.network.pretrained:
                return single, mask
            ready = {str(self.network.main_input()): single, **ready}
        if mask is not None and self.network.pretrained:
            ready, mask = unpadded_left(ready, mask)
        return ready, mask

    def _main(self, x: Tensor) -> Tensor:
        ready = self.preprocess(x.to(self.device), self.network.dtype)
        return ready.contiguous() if self.contiguous else ready

    def _plain(self, x: Tensor) -> Tensor:
        return x.to(self.device, self.network.dtype if x.dtype.is_floating_point else torch.int64)

    def _refusal(self, inputs: Inputs, error: Exception) -> InputError:
        """A sentence with the layer that could not go on and what it was given."""
        given = {k: tuple(x.shape) for k, x in inputs.items()} if isinstance(inputs, dict) else tuple(inputs.shape)
        layer, shapes = _where(self.network, inputs)
        at = f" at the layer {layer or type(self.network.module).__name__}, which got {shapes}" if shapes else ""
        stopped = self.network.module.get_submodule(layer) if shapes else None
        if isinstance(stopped, nn.Embedding):
            raised = f"it has entries 0 to {stopped.num_embeddings - 1} only. Look at the ids, or give fewer tokens"
            return InputError(f"The model cannot take inputs of shape {given}: it stopped{at}: {raised}.")
        told = " ".join(str(error).split())[:300].rstrip(" .")
        last = not isinstance(inputs, dict) and inputs.is_floating_point() and looks_last(tuple(inputs.shape))
        advice = " If their channels are last, say channels='last' (--channels last)." if last else ""
        if self.network.pretrained:
            advice += f" This model takes {self.network.main_input()}{positions(self.network.module)}."
        return InputError(f"The model cannot take inputs of shape {given}: it stopped{at}: {told}.{advice}")


def _where(network: Network, inputs: Inputs) -> tuple[str, str]:
    """The innermost module in which a forward pass fails, and the shapes it was given."""
    entered: list[tuple[str, str]] = []
    handles = []

    def enter(name: str) -> Any:
        def note(module: nn.Module, arguments: Any) -> None:
            shapes = ", ".join(_described(a) for a in arguments if isinstance(a, Tensor))
            entered.append((name, shapes or "named arguments"))

        return note

    for name, module in network.module.named_modules():
        handles.append(module.register_forward_pre_hook(enter(name)))
        handles.append(module.register_forward_hook(lambda *_: entered.pop() and None))
    try:
        network.call(inputs)
    except Exception:  # that it fails is known; where is what is asked
        return entered[-1] if entered else ("", "")
    finally:
        for handle in handles:
            handle.remove()
    return "", ""


def _described(x: Tensor) -> str:
    """Shape, and of whole numbers the range."""
    range_ = f" of {int(x.min())} to {int(x.max())}" if x.dtype == torch.int64 and x.numel() else ""
    return f"{tuple(x.shape)}{range_}"
