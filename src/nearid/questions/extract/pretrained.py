"""Models of the transformers library: loading, what their forward pass needs, and padding on the left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nearid.arrays.names import listed
from nearid.base.errors import InputError

# A head on top of the hidden states, which checkpoints of other tasks lack.
SPARE = "pooler."
# Entries of a configuration that change when a model is saved and loaded.
ORIGIN = ("architectures", "transformers_version", "dtype", "torch_dtype", "name_or_path")
# Tokens as vectors instead of numbers.
EMBEDDED = "inputs_embeds"


def load_pretrained(name: str, place: Path, revision: str | None) -> tuple[nn.Module, tuple[str, ...]]:
    """A model of a folder or of the hub, never running code that comes with it; and notes for the user."""
    if place.is_dir() and not (place / "config.json").is_file():
        raise InputError(f"{place} is a folder without a config.json, so no transformers model.")
    if not place.exists() and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise InputError(f"There is no file or folder {name}.")
    try:
        from transformers import AutoModel
    except ImportError:
        raise InputError(
            f"{name} is taken for a transformers model, which needs that library: pip install 'nearid[hf]'. For a "
            "file of weights give its name, for a function package.module:function."
        ) from None
    local = place.is_dir()
    try:
        with _quiet():
            module, info = AutoModel.from_pretrained(
                str(place) if local else name,
                revision=revision or "main",
                local_files_only=local,
                trust_remote_code=False,
                weights_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # what is raised for a missing, damaged or malicious model is not documented
        raise InputError(
            f"The model {name} cannot be loaded: {_reason(error)}. Give a file of weights, a folder of a transformers "
            "model, or its name on the hub."
        ) from None
    missing = sorted(map(str, info.get("missing_keys") or ()))
    if any(not key.startswith(SPARE) for key in missing):
        raise InputError(
            f"The weights of {name} lack {listed(missing)}, which would be drawn at random: the checkpoint is of "
            "another architecture, or not whole."
        )
    if not missing:
        return module, ()
    # Drawn at random, it would differ each time.
    module.pooler = None
    return module, (f"{name} has no weights for its pooler, which is left out; the hidden states do not depend on it.",)


def _reason(error: Exception) -> str:
    """Why a model was not loaded; where the library would advise to run what comes with it, words of our own."""
    told = " ".join(str(error).split())
    if "trust_remote_code" in told:
        return "it brings code of its own, which nearid never runs"
    if "weights_only" in told:
        return "its weights are a pickle with more than tensors, which could run code; save them as .safetensors"
    return told[:300].rstrip(" .")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and reports of the library: what matters of them is told in a sentence."""
    from transformers import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def configuration(module: nn.Module) -> str:
    """What the weights do not tell, such as the number of heads; without where the model comes from."""
    config: Any = module.config
    told = {key: value for key, value in config.to_dict().items() if key not in ORIGIN and not key.startswith("_")}
    return json.dumps(told, sort_keys=True, default=str)


def positions(module: nn.Module) -> str:
    """How many tokens a model can take, where it tells, to go on a sentence."""
    most = getattr(module.config, "max_position_embeddings", None)
    return f", of at most {most} tokens" if isinstance(most, int) else ""


def options(module: nn.Module, inputs: dict[str, Tensor]) -> dict[str, Any]:
    """What the forward pass is asked for beside the inputs: hidden states, and every patch in its place."""
    config: Any = module.config
    asked: dict[str, Any] = {"output_hidden_states": True, "return_dict": True}
    if getattr(config, "use_cache", False):
        asked["use_cache"] = False
    if hasattr(config, "mask_ratio") and "pixel_values" in inputs and "noise" not in inputs:
        # Masked autoencoders keep the patches of least noise, in its order. All of them, in order.
        pixels = inputs["pixel_values"]
        count = (config.image_size // config.patch_size) ** 2
        asked["noise"] = torch.arange(count, device=pixels.device, dtype=torch.float32).expand(len(pixels), -1)
    return asked


@contextmanager
def seeing_all(module: nn.Module) -> Iterator[None]:
    """Let a masked autoencoder see whole images meanwhile: states of a random quarter of the patches say little."""
    config: Any = module.config
    ratio = getattr(config, "mask_ratio", None)
    if ratio is None:
        yield
        return
    config.mask_ratio = 0.0
    try:
        yield
    finally:
        config.mask_ratio = ratio


def unpadded_left(inputs: dict[str, Tensor], mask: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """Inputs with the tokens moved to the left and the padding to the right, where positions count from 0.

    Parameters
    ----------
    inputs : dict of Tensor
    mask : Tensor of bool, shape (n, t)
    """
    first = mask.int().argmax(1)
    if not bool(first.any()) or "position_ids" in inputs:
        return inputs, mask
    t = mask.shape[1]
    order = (torch.arange(t, device=mask.device) + first[:, None]) % t

    def move(name: str, value: Tensor) -> Tensor:
        if value.shape == mask.shape:
            return value.gather(1, order)
        # Tokens that come as vectors; other arrays of more axes, such as images, have no tokens.
        return value[torch.arange(len(value))[:, None], order] if name == EMBEDDED else value

    return {name: move(name, value) for name, value in inputs.items()}, mask.gather(1, order)
