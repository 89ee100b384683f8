"""The mean log partition function: what contrastive and cross-entropy losses have in common, a block at a time.

Both are the mean over rows of log sum_j exp(s_ij) less the logit of the right answer. The sum needs all pairs, and a
matrix of all pairs that autograd keeps, several times over, is what makes these losses slow. Here a block of rows that
fits in the cache is made, summed, turned into gradients and forgotten: the memory is that of a block.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nearid.lab.models.similarity import Similarity

# Logits of a block: two megabytes of float32, which caches hold. GPUs want more at a time.
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
    found: Tensor = _MeanLogPartition.apply(rows, columns, extra, similarity)  # type: ignore[no-untyped-call]
    return found


class _MeanLogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, extra: Tensor | None, similarity: Similarity) -> Tensor:
        # A sum over all pairs in half precision would lose most of its digits.
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
        found = (None if saved is None else saved * grad for saved in ctx.saved_tensors)
        return (*found, None)


def _evaluate(
    rows: Tensor, columns: Tensor, extra: Tensor | None, similarity: Similarity, *, with_gradients: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The value and its gradients with respect to rows, columns and extra: zeros where they are not asked for."""
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
        # Below exp(-60) nothing reaches the sum, and numbers that underflow are many times slower.
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
