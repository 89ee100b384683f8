"""The residual networks for CIFAR-10 (He et al. 2016), and weights that others trained."""

import os
import re

from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.questions.extract.weights import fill, load_weights

# Channels of the three stages, and classes.
WIDTHS, CLASSES = (16, 32, 64), 10
# Mean and deviation of each colour that the public weights were trained with (those of ImageNet).
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# The layer whose mean over positions gives the features, the input of the classifier.
FEATURES = "layer3"


class Block(nn.Module):
    """Two convolutions beside a shortcut without weights: every other pixel, and zeros for new channels (option A)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.pad = stride, (after - before) // 2

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        short = x[:, :, :: self.stride, :: self.stride]
        return functional.relu(out + functional.pad(short, (0, 0, 0, 0, self.pad, self.pad)))


class CifarResNet(nn.Module):
    """A classifier of images of 32 x 32 with depth 6n + 2; names of layers are those of the public weights.

    Parameters
    ----------
    depth : int
        20, 32, 44, 56, ...
    """

    def __init__(self, depth: int) -> None:
        super().__init__()
        blocks, odd = divmod(depth - 2, 6)
        if odd or blocks < 1:
            raise InputError(f"A CIFAR ResNet has depth 6n + 2, such as 20, 32, 44 or 56, not {depth}.")
        self.depth = depth
        self.conv1, self.bn1 = nn.Conv2d(3, WIDTHS[0], 3, 1, 1, bias=False), nn.BatchNorm2d(WIDTHS[0])
        first, second, third = WIDTHS
        self.layer1 = _stage(first, first, blocks, 1)
        self.layer2 = _stage(first, second, blocks, 2)
        self.layer3 = _stage(second, third, blocks, 2)
        self.linear = nn.Linear(third, CLASSES)

    def features(self, x: Tensor) -> Tensor:
        """Input of the classifier, shape (rows, 64)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        maps: Tensor = self.layer3(self.layer2(self.layer1(x)))
        return maps.mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes."""
        scores: Tensor = self.linear(self.features(x))
        return scores


def _stage(before: int, after: int, blocks: int, stride: int) -> nn.Sequential:
    return nn.Sequential(Block(before, after, stride), *(Block(after, after, 1) for _ in range(blocks - 1)))


def load_cifar_resnet(path: str | os.PathLike[str]) -> CifarResNet:
    """Load a network from a file of weights, in evaluation mode. The names of the weights give its depth."""
    weights = load_weights(path)
    blocks = {match[1] for name in weights if (match := re.search(r"(?:^|\.)layer1\.(\d+)\.", name))}
    if not blocks:
        raise InputError(
            f"{os.fspath(path)} contains no weights of a CIFAR ResNet: no name belongs to a block of layer1."
        )
    module = CifarResNet(6 * len(blocks) + 2)
    fill(os.fspath(path), module, weights)
    return module.eval()
