"""Penultimate features of the real CIFAR-10 ResNets, one .npy per model.

usage: python benchmarks/resnet_features.py OUT [--images 10000] [--models akamaster_resnet20 DanSun18_resnet20 ...]

Reads the weights and the CIFAR-10 test images below NEARID_DATA (folders cifar10_resnets and cifar10). Needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Block(nn.Module):
    """Basic block with the parameter-free shortcut (option A of He et al. 2016)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.stride, self.pad = stride, (outside - inside) // 2

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        short = x[:, :, :: self.stride, :: self.stride] if self.stride > 1 else x
        return F.relu(out + F.pad(short, (0, 0, 0, 0, self.pad, self.pad)))


class ResNet(nn.Module):
    """CIFAR ResNet of depth 6n + 2 with 16, 32 and 64 channels."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        width = 16
        for k, outside in enumerate((16, 32, 64), start=1):
            layer = []
            for i in range(blocks):
                layer.append(Block(width, outside, 2 if i == 0 and k > 1 else 1))
                width = outside
            setattr(self, f"layer{k}", nn.Sequential(*layer))
        self.linear = nn.Linear(64, 10)

    def features(self, x: Tensor) -> Tensor:
        """The 64 pooled features that the classifier reads."""
        x = F.relu(self.bn1(self.conv1(x)))
        return self.layer3(self.layer2(self.layer1(x))).mean(dim=(2, 3))


def load(path: Path) -> ResNet:
    """A model from a state dict, whatever it is wrapped in."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    state = {k.removeprefix("module."): v for k, v in state.get("state_dict", state).items()}
    blocks = len({k.split(".")[1] for k in state if k.startswith("layer1.")})
    model = ResNet(blocks)
    model.load_state_dict(state)
    return model.eval()


def images(folder: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """CIFAR-10 test images (count, 32, 32, 3) in uint8 and their labels."""
    with Image.open(folder / "test_batch.png") as file:
        pixels = np.asarray(file)[:count]
    labels = json.loads((folder / "test_lables.json").read_text())
    return pixels.reshape(-1, 32, 32, 3), np.array(labels[:count])


@torch.inference_mode()
def extract(model: ResNet, pixels: np.ndarray, batch: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 64) in float32 and predicted classes."""
    found, guesses = [], []
    for start in range(0, len(pixels), batch):
        x = torch.tensor(pixels[start : start + batch]).permute(0, 3, 1, 2).float() / 255
        x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
        z = model.features(x)
        found.append(z.numpy())
        guesses.append(model.linear(z).argmax(1).numpy())
    return np.concatenate(found), np.concatenate(guesses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--models", nargs="*", help="beginnings of file names; all by default")
    asked = parser.parse_args()
    data = os.environ.get("NEARID_DATA")
    if not data:
        raise SystemExit("Set NEARID_DATA to the folder that holds cifar10 and cifar10_resnets.")
    asked.out.mkdir(parents=True, exist_ok=True)
    pixels, labels = images(Path(data) / "cifar10", asked.images)
    for path in sorted((Path(data) / "cifar10_resnets").glob("*.th")):
        if asked.models and not any(path.name.startswith(m) for m in asked.models):
            continue
        z, guesses = extract(load(path), pixels)
        np.save(asked.out / f"{path.stem}.npy", z)
        print(f"{path.stem}: {z.shape}, accuracy {np.mean(guesses == labels):.4f}")


if __name__ == "__main__":
    main()
