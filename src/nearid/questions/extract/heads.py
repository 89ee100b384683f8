"""The head of a network: the last linear layer, its weights, and the layer with its input."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

from nearid.questions.extract.given import HIDDEN
from nearid.questions.extract.network import Network, quiet
from nearid.questions.extract.pooling import Pooler
from nearid.questions.extract.result import Head
from nearid.questions.extract.taps import GIVEN, blocks

# Suffixes of transformers classes whose head uses the last hidden state of every token.
LANGUAGE = ("LMHeadModel", "ForCausalLM")
# Pools that do not change vectors.
WHOLE = ("mean", "cls", "last", "patches", "flatten")


def head_of(network: Network, pool: str | Pooler, *, usual: bool) -> Head | None:
    """The head of a network; None if no head is known.

    The head of a transformers model is its output embedding. That of another module is its last block, if that is a
    linear layer.

    Parameters
    ----------
    pool : str or callable
        How layers become rows. The pool must keep the input of the head unchanged, or take its mean.
    usual : bool
        Whether all blocks are extracted, so that the last one certainly runs.
    """
    module = network.module
    if network.pretrained:
        head = module.get_output_embeddings()  # type: ignore[operator]
        name = next((name for name, each in module.named_modules() if each is head), None)
    else:
        name = next(reversed([*blocks(module)]), None) if usual and pool in WHOLE else None
        head = None if name is None else module.get_submodule(name)
    if name is None or not isinstance(head, nn.Linear) or not isinstance(pool, str):
        return None
    return _head(f"{name}:{GIVEN}", head)


def folder_head(folder: Path) -> Head | None:
    """The head of a language model in a folder of which only the body is run; None if there is none.

    The head is used only if its input is the last hidden state, which a pass over a few tokens checks.
    """
    import transformers

    try:
        names = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
        kind = getattr(transformers, names[0], None) if names[0].endswith(LANGUAGE) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        kind = None
    if kind is None:
        return None
    given: list[torch.Tensor] = []
    try:
        with quiet(), torch.no_grad():
            module, info = kind.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False, weights_only=True, output_loading_info=True
            )
            head = module.eval().get_output_embeddings()
            if info.get("missing_keys") or not isinstance(head, nn.Linear):
                return None
            with head.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0])):
                states = module(torch.arange(4)[None], output_hidden_states=True).hidden_states
    except Exception:  # the body runs without the head
        return None
    reads = given and given[0].shape == states[-1].shape and torch.allclose(given[0], states[-1])
    return _head(f"{HIDDEN}.{len(states) - 1}", head) if reads else None


def _head(layer: str, module: nn.Linear) -> Head:
    # torch annotates the bias as never None.
    without = module.bias is None
    bias = None if without else module.bias.detach().float().numpy(force=True)
    return Head(layer, module.weight.detach().float().numpy(force=True), bias)
