"""Similarities of all pairs of points, and the mean log partition function over them, a block of rows at a time.

Contrastive and cross-entropy losses are the mean over rows of log sum_j exp(s_ij) minus the logit of the right answer.
The sum needs all pairs. These losses are slow because autograd stores several matrices of all pairs. Here a block of
rows that fits in the cache is computed, summed, turned into gradients and discarded.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from nearid.base.errors import InputError
from nearid.lab.models.lp_kernels import COMPILED_P, power_distances, power_gradients


class Similarity(Protocol):
    """Interface of all similarities."""

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        """Similarity of x_i and y_i for all i, shape (rows,); differentiable."""

    def logits(self, x: Tensor, y: Tensor) -> Tensor:
        """Similarity of x_i and y_j for all i and j, in new memory of shape (rows, columns)."""

    def pull(self, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of sum_ij weights_ij logits_ij with respect to x and y."""


@dataclass(frozen=True)
class Dot:
    """The dot product, times a scale: <x, y> scale."""

    scale: float = 1.0

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return (x * y).sum(dim=1) * self.scale

    def logits(self, x: Tensor, y: Tensor) -> Tensor:
        return (x * self.scale) @ y.T

    def pull(self, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return (weights @ y).mul_(self.scale), weights.T @ (x * self.scale)


@dataclass(frozen=True)
class SquaredEuclidean:
    """Minus the squared Euclidean distance, times a scale, through a matrix product: -|x - y|^2 scale."""

    scale: float = 1.0

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return (x - y).square().sum(dim=1) * -self.scale

    def logits(self, x: Tensor, y: Tensor) -> Tensor:
        # |x|^2 - 2 <x, y> + |y|^2 loses digits if x and y have a large common offset.
        centre = y.mean(dim=0)
        x, y = x - centre, y - centre
        logits = torch.addmm(y.square().sum(dim=1), x, y.T, beta=-self.scale, alpha=2 * self.scale)
        return logits.sub_(x.square().sum(dim=1, keepdim=True), alpha=self.scale).clamp_(max=0)

    def pull(self, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        twice = 2 * self.scale
        grad_x = (weights @ y).sub_(x * weights.sum(dim=1, keepdim=True)).mul_(twice)
        grad_y = (weights.T @ x).sub_(y * weights.sum(dim=0)[:, None]).mul_(twice)
        return grad_x, grad_y


@dataclass(frozen=True)
class LpPower:
    """Minus the p-th power of the L_p distance, times a scale: -sum_k |x_k - y_k|^p scale.

    On the CPU, p = 1 and p = 3 use compiled code. Other p and other devices loop over coordinates. No tensor of shape
    (rows, columns, coordinates) is made.
    """

    p: float
    scale: float = 1.0

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        return (x - y).abs().pow(self.p).sum(dim=1) * -self.scale

    def logits(self, x: Tensor, y: Tensor) -> Tensor:
        logits = x.new_empty(len(x), len(y))
        if self._compiled(x):
            columns = y.T.contiguous()
            power_distances(x.numpy(), columns.numpy(), self.p == 3, logits.numpy(), torch.get_num_threads())
            return logits.mul_(-self.scale)
        logits.zero_()
        for a, b in zip(x.T, y.T.contiguous(), strict=True):
            logits.sub_(_power((a[:, None] - b).abs_(), self.p), alpha=self.scale)
        return logits

    def pull(self, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        rows, columns = x.T.contiguous(), y.T.contiguous()
        grad_x, grad_y = torch.zeros_like(rows), torch.zeros_like(columns)
        if self._compiled(x):
            power_gradients(
                rows.numpy(),
                columns.numpy(),
                weights.numpy(),
                self.p == 3,
                grad_x.numpy(),
                grad_y.numpy(),
                torch.get_num_threads(),
            )
        else:
            for k, (a, b) in enumerate(zip(rows, columns, strict=True)):
                gap = a[:, None] - b
                slope = gap.sign().mul_(weights)
                if self.p != 1:
                    slope.mul_(_power(gap.abs_(), self.p - 1))
                torch.sum(slope, dim=1, out=grad_x[k])
                torch.sum(slope, dim=0, out=grad_y[k]).neg_()
        factor = -self.p * self.scale
        return grad_x.T * factor, grad_y.T * factor

    def _compiled(self, x: Tensor) -> bool:
        return self.p in COMPILED_P and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def _power(base: Tensor, p: float) -> Tensor:
    """Base to the power p, in place. For a whole p it uses products, which are much faster than logarithms."""
    if p == 1:
        return base
    if p == 2:
        return base.square_()
    if p == 3:
        return base.mul_(base.square())
    return base.pow_(p)


def similarity(p: float | None, temperature: float = 1.0) -> Similarity:
    """The similarity of a contrastive objective.

    Parameters
    ----------
    p : float or None
        None for the dot product; p >= 1 for -sum_k |x_k - y_k|^p.
    temperature : float
        Number that divides the similarity.
    """
    if not 0 < temperature < float("inf"):
        raise InputError(f"The temperature is {temperature}, but a number above 0 is expected; 1 is usual.")
    if p is None:
        return Dot(1 / temperature)
    if not 1 <= p < float("inf"):
        raise InputError(f"p is {p}, but a number of at least 1 is expected; use None for the dot product.")
    return SquaredEuclidean(1 / temperature) if p == 2 else LpPower(float(p), 1 / temperature)


# Logits of a block: two megabytes of float32, which fit in the cache. GPUs are faster with larger blocks.
BLOCK_CPU, BLOCK_GPU = 1 << 19, 1 << 25


def mean_log_partition(rows: Tensor, columns: Tensor, similarity: Similarity, extra: Tensor | None = None) -> Tensor:
    """Mean over i of log(sum_j exp(s(rows_i, columns_j)) + exp(extra_i)).

    Parameters
    ----------
    rows, columns : Tensor of shape (r, n) and (c, n)
    similarity : Similarity
    extra : Tensor of shape (r,), optional
        One more logit for each row.

    Returns
    -------
    Tensor
        A scalar that can be differentiated once.
    """
    mean: Tensor = _MeanLogPartition.apply(rows, columns, extra, similarity)  # type: ignore[no-untyped-call]
    return mean


class _MeanLogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, extra: Tensor | None, similarity: Similarity) -> Tensor:
        # In half precision a sum over all pairs would lose most of its digits.
        dtype = torch.float64 if rows.dtype == torch.float64 else torch.float32
        with torch.autocast(rows.device.type, enabled=False):
            logits = None if extra is None else extra.to(dtype)
            value, *grads = _evaluate(
                rows.to(dtype), columns.to(dtype), logits, similarity, with_gradients=any(ctx.needs_input_grad)
            )
        ctx.save_for_backward(*grads)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients = (None if saved is None else saved * grad for saved in ctx.saved_tensors)
        return (*gradients, None)


def _evaluate(
    rows: Tensor, columns: Tensor, extra: Tensor | None, similarity: Similarity, *, with_gradients: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The value and its gradients with respect to rows, columns and extra; zeros for gradients that are not needed."""
    grad_rows, grad_columns = torch.zeros_like(rows), torch.zeros_like(columns)
    grad_extra = None if extra is None else torch.zeros_like(extra)
    total = torch.zeros((), dtype=torch.float64, device=rows.device)
    block = max(1, (BLOCK_CPU if rows.device.type == "cpu" else BLOCK_GPU) // len(columns))
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        logits = similarity.logits(rows[part], columns)
        top = logits.amax(dim=1)
        if extra is not None:
            top = torch.maximum(top, extra[part])
        # Terms below exp(-60) do not change the sum, and numbers that underflow are much slower.
        weights = logits.sub_(top[:, None]).clamp_(min=-60).exp_()
        sums = weights.sum(dim=1)
        if extra is not None:
            more = (extra[part] - top).exp_()
            sums += more
        total += (sums.log() + top).sum(dtype=torch.float64)
        if with_gradients:
            share = 1 / (sums * len(rows))
            pulled = similarity.pull(rows[part], columns, weights.mul_(share[:, None]))
            grad_rows[part] = pulled[0]
            grad_columns += pulled[1]
            if grad_extra is not None:
                grad_extra[part] = more * share
    return (total / len(rows)).to(rows.dtype), grad_rows, grad_columns, grad_extra
