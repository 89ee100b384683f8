"""The experiments there are, each in a file of its own that is loaded when it is asked for."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

from nearid.base.errors import InputError, unknown
from nearid.lab.framework.experiment import Experiment

HOMES = {
    "radial": "nearid.lab.papers.roeder.radial:RADIAL",
    "cpc": "nearid.lab.papers.roeder.cpc:CPC",
    "diet": "nearid.lab.papers.reizinger.diet:DIET",
    "supervised": "nearid.lab.papers.reizinger.supervised:SUPERVISED",
    "contrastive-sphere": "nearid.lab.papers.zimmermann.contrastive_sphere:CONTRASTIVE_SPHERE",
    "contrastive-box": "nearid.lab.papers.zimmermann.contrastive_box:CONTRASTIVE_BOX",
    "mnist-autoencoders": "nearid.lab.papers.nelson.mnist_autoencoders:MNIST_AUTOENCODERS",
    "square-manifolds": "nearid.lab.papers.nelson.square_manifolds:SQUARE_MANIFOLDS",
    "bilipschitz-recovery": "nearid.lab.papers.nelson.bilipschitz_recovery:BILIPSCHITZ_RECOVERY",
    "disentanglement": "nearid.lab.papers.nelson.disentanglement:DISENTANGLEMENT",
    "faces": "nearid.lab.papers.nelson.faces:FACES",
    "dislib": "nearid.lab.papers.reizinger.dislib:DISLIB",
    "deconfounding": "nearid.lab.papers.nelson.deconfounding:DECONFOUNDING",
    "masks-contrastive": "nearid.lab.papers.zimmermann.masks_contrastive:MASKS_CONTRASTIVE",
    "pretrained-pairs": "nearid.lab.papers.nelson.pretrained_pairs:PRETRAINED_PAIRS",
    "words": "nearid.lab.papers.roeder.words:WORDS",
    "gpt2-svcca": "nearid.lab.papers.roeder.gpt2_svcca:GPT2_SVCCA",
    "3dident": "nearid.lab.papers.zimmermann.ident3d:IDENT3D",
    "imagenet-x": "nearid.lab.papers.reizinger.imagenet_x:IMAGENET_X",
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
