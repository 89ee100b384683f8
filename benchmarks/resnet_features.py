"""Penultimate features of the real CIFAR-10 ResNets, one .npy per model.

usage: python benchmarks/resnet_features.py OUT [--images 10000] [--models akamaster-20 DanSun18-20 ...]

Reads the weights and the CIFAR-10 test images below NEARID_DATA (folders cifar10_resnets and cifar10). Needs torch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from nearid import extract
from nearid.lab.data.cifar10_resnets import CIFAR10_RESNETS, weights_file
from nearid.lab.data.load import load
from nearid.lab.models.cifar_resnet import FEATURES, MEAN, STD, load_cifar_resnet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--models", nargs="*", default=list(CIFAR10_RESNETS.networks), help="all by default")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    held = load("cifar10", split="test")
    pixels, labels = held.images.read(0, asked.images), held.codes[: asked.images, 0]
    for name in asked.models:
        model = load_cifar_resnet(weights_file(name))
        found = extract(model, pixels, layers=[FEATURES, "output"], mean=MEAN, std=STD, batch_size=500)
        features, scores = (found[layer].read(0, len(pixels)) for layer in (FEATURES, "output"))
        np.save(asked.out / f"{name}.npy", features)
        print(f"{name}: {features.shape}, accuracy {np.mean(scores.argmax(axis=1) == labels):.4f}")


if __name__ == "__main__":
    main()
