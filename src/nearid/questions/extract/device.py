"""The device that a network runs on."""

from __future__ import annotations

import torch

from nearid.base.errors import InputError


def torch_device(name: str) -> torch.device:
    """A device that is there, by its name, or "auto" for a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"The device {name!r} is not to be had here; choose cpu, or auto. ({error})") from error
    return device
