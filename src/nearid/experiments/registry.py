"""The experiments there are, each in a file of its own that is loaded when it is asked for."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

from nearid.errors import InputError, unknown
from nearid.experiments.base import Experiment

HOMES = {
    "radial": "nearid.experiments.radial:RADIAL",
    "cpc": "nearid.experiments.cpc:CPC",
    "diet": "nearid.experiments.diet:DIET",
    "supervised": "nearid.experiments.supervised:SUPERVISED",
    "contrastive-sphere": "nearid.experiments.contrastive_sphere:CONTRASTIVE_SPHERE",
    "contrastive-box": "nearid.experiments.contrastive_box:CONTRASTIVE_BOX",
    "mnist-autoencoders": "nearid.experiments.mnist_autoencoders:MNIST_AUTOENCODERS",
    "square-manifolds": "nearid.experiments.square_manifolds:SQUARE_MANIFOLDS",
    "bilipschitz-recovery": "nearid.experiments.bilipschitz_recovery:BILIPSCHITZ_RECOVERY",
    "disentanglement": "nearid.experiments.disentanglement:DISENTANGLEMENT",
    "faces": "nearid.experiments.faces:FACES",
    "dislib": "nearid.experiments.dislib:DISLIB",
    "deconfounding": "nearid.experiments.deconfounding:DECONFOUNDING",
    "masks-contrastive": "nearid.experiments.masks_contrastive:MASKS_CONTRASTIVE",
    "pretrained-pairs": "nearid.experiments.pretrained_pairs:PRETRAINED_PAIRS",
    "words": "nearid.experiments.words:WORDS",
    "gpt2-svcca": "nearid.experiments.gpt2_svcca:GPT2_SVCCA",
    "3dident": "nearid.experiments.ident3d:IDENT3D",
    "imagenet-x": "nearid.experiments.imagenet_x:IMAGENET_X",
}


def experiment(name: str) -> Experiment[Any]:
    """An experiment by name."""
    if name not in HOMES:
        raise InputError(unknown("experiment", name, HOMES))
    found: Experiment[Any] = resolve_name(HOMES[name])
    return found


def experiments() -> list[Experiment[Any]]:
    """All experiments."""
    return [experiment(name) for name in HOMES]
