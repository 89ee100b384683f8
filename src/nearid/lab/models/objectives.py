"""Objectives: losses for training an encoder, and the space of its representations."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.similarity import Dot, mean_log_partition, similarity

SPACES = ("unbounded", "sphere", "scaled sphere", "box")


class Sphere(nn.Module):
    """Project rows onto a sphere around 0, of radius 1 or of a learnt radius.

    Parameters
    ----------
    learnable : bool
        Whether the radius is a parameter; it starts at 1.
    """

    def __init__(self, learnable: bool = False) -> None:
        super().__init__()
        # The logarithm keeps the radius above 0.
        self.log_radius = nn.Parameter(torch.zeros(())) if learnable else None

    def forward(self, x: Tensor) -> Tensor:
        unit = functional.normalize(x, dim=1)
        return unit if self.log_radius is None else unit * self.log_radius.exp()


class Box(nn.Module):
    """Squash coordinate i into (0, b_i) with a sigmoid; the b_i are learnt and start at 1.

    Parameters
    ----------
    n : int
        Coordinates.
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.sides = nn.Parameter(torch.ones(n))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x) * self.sides


def full_precision(x: Tensor) -> Tensor:
    """Rows in at least float32: half precision is only for products inside an encoder, not for distances."""
    return x.float() if x.dtype.itemsize < 4 else x


def output(space: str, n: int) -> nn.Module:
    """Return the module that maps n coordinates into one of SPACES."""
    if space not in SPACES:
        raise InputError(f"There is no output space {space!r}; choose one of {', '.join(SPACES)}.")
    if space == "unbounded":
        return nn.Identity()
    return Box(n) if space == "box" else Sphere(learnable=space == "scaled sphere")


class Regression(nn.Module):
    """An encoder that is fitted to the latents by least squares.

    Parameters
    ----------
    encoder : nn.Module
        From inputs to n coordinates.
    n : int
        Latents.
    space : {"unbounded", "sphere", "scaled sphere", "box"}
    """

    def __init__(self, encoder: nn.Module, n: int, *, space: str = "unbounded") -> None:
        super().__init__()
        self.encoder, self.output = encoder, output(space, n)

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs, shape (rows, n)."""
        representations: Tensor = self.output(full_precision(self.encoder(x)))
        return representations

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        """Mean squared error of a batch, over rows and latents."""
        z = self.encode(x)
        if z.shape != latents.shape:
            raise InputError(
                f"Representations have shape {tuple(z.shape)} and latents {tuple(latents.shape)}; make the encoder "
                "with as many outputs as there are latents."
            )
        return (z - latents).square().mean()


class Predictive(nn.Module):
    """Two encoders with p(y | x, S) = exp(f(x) . g(y)) / sum over y' in S of exp(f(x) . g(y')).

    S are the y of a batch. Those that belong to other x are the distractors. Representations are not normalised.

    Parameters
    ----------
    f, g : nn.Module
        Networks from inputs and from candidates to the same number of coordinates.
    """

    def __init__(self, f: nn.Module, g: nn.Module) -> None:
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean of -log p(y_i | x_i, all y) over a batch; log(batch) where all scores are equal."""
        if len(x) != len(y):
            raise InputError(
                f"There are {len(x)} inputs and {len(y)} candidates, but one candidate per input is expected."
            )
        scores = full_precision(self.f(x)) @ full_precision(self.g(y)).T
        return functional.cross_entropy(scores, torch.arange(len(x), device=scores.device))


def infonce(anchors: Tensor, positives: Tensor, *, p: float | None = None, temperature: float = 1.0) -> Tensor:
    """Mean over i of d(a_i, b_i) / t + log(sum_j exp(-d(a_i, a_j) / t) + exp(-d(a_i, b_i) / t)).

    The negatives of every anchor are all anchors of the batch. Their order, such as that of a batch rolled by one, does
    not change the sum. Memory grows linearly with the batch.

    Parameters
    ----------
    anchors, positives : Tensor of shape (batch, n)
        Row i of one belongs to row i of the other.
    p : float or None
        d = sum_k |a_k - b_k|^p, or -<a, b> for None.
    temperature : float
        The t above.

    Returns
    -------
    Tensor
        A scalar; log(batch + 1) if all representations are equal.
    """
    if anchors.ndim != 2 or anchors.shape != positives.shape or not len(anchors):
        raise InputError(
            f"Anchors have shape {tuple(anchors.shape)} and positives {tuple(positives.shape)}, but both must be "
            "(batch, n): give one positive for each anchor."
        )
    how = similarity(p, temperature)
    matched = how.pairs(anchors, positives)
    return mean_log_partition(anchors, anchors, how, matched) - matched.mean()


class Contrastive(nn.Module):
    """An encoder, the space of its outputs and the contrastive objective.

    Parameters
    ----------
    encoder : nn.Module
        From inputs to n coordinates.
    n : int
        Coordinates of a representation.
    space : {"unbounded", "sphere", "scaled sphere", "box"}
    p : float or None
        Exponent of the distance sum_k |a_k - b_k|^p; None for the dot product, which needs a sphere.
    """

    def __init__(
        self, encoder: nn.Module, n: int, *, space: str = "sphere", p: float | None = None, temperature: float = 1.0
    ) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output(space, n)
        if p is None and "sphere" not in space:
            raise InputError(
                f"The dot product needs representations on a sphere, but the space is {space!r}: lengths would grow "
                "without bound. Choose a sphere, or a p >= 1."
            )
        similarity(p, temperature)
        self.p, self.temperature = p, temperature

    def extra_repr(self) -> str:
        """Settings in which two objectives may differ."""
        return f"p={self.p}, temperature={self.temperature}"

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs, shape (rows, n)."""
        representations: Tensor = self.output(full_precision(self.encoder(x)))
        return representations

    def forward(self, x: Tensor, positive: Tensor) -> Tensor:
        """The loss of a batch of pairs."""
        anchors, positives = self.encode(torch.cat([x, positive])).chunk(2)
        return infonce(anchors, positives, p=self.p, temperature=self.temperature)


class CrossEntropy(nn.Module):
    """An encoder and one weight vector for each label: p(i | x) proportional to exp(beta <w_i, f(x)>).

    Labels are instances in parametric instance discrimination (DIET), and classes in supervised classification. The
    matrix of logits is never stored: with 100,000 instances it would take most of the time and memory.

    Parameters
    ----------
    encoder : nn.Module
        From inputs to n coordinates.
    n : int
        Coordinates of a representation.
    labels : int
        Number of instances or classes.
    beta : float
        Inverse temperature.
    learn_beta : bool
        Whether beta is where the inverse temperature starts, which is then learnt.
    normalise_features : bool
        Project representations onto the unit sphere.
    normalise_weights : bool
        Rescale every weight vector to length 1 before each forward pass.
    label_smoothing : float
        Share of the target that is spread evenly over all labels.
    """

    def __init__(
        self,
        encoder: nn.Module,
        n: int,
        labels: int,
        *,
        beta: float = 1.0,
        learn_beta: bool = False,
        normalise_features: bool = False,
        normalise_weights: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if labels < 2:
            raise InputError(f"At least 2 labels are needed, but {labels} was given.")
        if not 0 < beta < float("inf"):
            raise InputError(f"beta is {beta}, but a number above 0 is expected; 1 is usual.")
        if not 0 <= label_smoothing < 1:
            raise InputError(f"label_smoothing is {label_smoothing}, but a share from 0 to below 1 is expected.")
        self.encoder = encoder
        self.weights = nn.Parameter(torch.empty(labels, n))
        # As in a linear layer.
        nn.init.uniform_(self.weights, -(n**-0.5), n**-0.5)
        self.beta, self.label_smoothing = beta, label_smoothing
        # The logarithm of the factor by which the inverse temperature has moved from beta.
        self.log_factor = nn.Parameter(torch.zeros(())) if learn_beta else None
        self.normalise_features, self.normalise_weights = normalise_features, normalise_weights
        self._rescale()

    @property
    def inverse_temperature(self) -> float:
        """Beta, as far as it has been learnt."""
        return self.beta if self.log_factor is None else self.beta * float(self.log_factor.detach().exp())

    @torch.no_grad()
    def _rescale(self) -> None:
        if self.normalise_weights:
            functional.normalize(self.weights, dim=1, out=self.weights)

    def extra_repr(self) -> str:
        """Settings in which two objectives may differ."""
        normalised = f"features={self.normalise_features}, weights={self.normalise_weights}"
        return f"beta={self.inverse_temperature:g}, label_smoothing={self.label_smoothing}, normalised {normalised}"

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs, shape (rows, n)."""
        features = full_precision(self.encoder(x))
        return functional.normalize(features, dim=1) if self.normalise_features else features

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch with one label per row, counted from 0."""
        if labels.shape != x.shape[:1] or labels.is_floating_point():
            raise InputError(
                f"Labels have shape {tuple(labels.shape)} and dtype {labels.dtype}, but {len(x)} whole numbers are "
                "expected, one for each row."
            )
        least, most = (int(end) for end in labels.aminmax())
        if least < 0 or most >= len(self.weights):
            raise InputError(
                f"Labels run from {least} to {most}, but the model has {len(self.weights)} labels, from 0 to "
                f"{len(self.weights) - 1}. Make the model with the right number of labels."
            )
        self._rescale()
        features, how, smooth = self.encode(x), Dot(self.beta), self.label_smoothing
        if self.log_factor is not None:
            features = features * self.log_factor.exp()
        loss = mean_log_partition(features, self.weights, how)
        loss = loss - (1 - smooth) * how.pairs(features, self.weights[labels]).mean()
        if smooth:
            # The mean of all logits of a row is the logit of the mean weight.
            loss = loss - smooth * how.pairs(features, self.weights.mean(dim=0, keepdim=True)).mean()
        return loss
