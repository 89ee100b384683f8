"""Contrastive training by nearid beside a plain implementation of the same loss, in one run on the same batches.

usage: python benchmarks/bench_training.py [--batch 1024 6144] [--kinds L1 sphere] [--encoders small] [--threads 2]
                                           [--seconds 3] [--n 10]

The plain loss is what one writes first in torch: all pairs by broadcasting to batch x batch x n, one operation after
the other; on the sphere, a matrix product. Prints the time of loss and gradient alone, that of a whole step (encoder
forward and backward, Adam) in steps a second with the papers' encoder and with that of the experiments' runs with ten
latents on a CPU, ratios, and the largest memory that loss and gradient take. Times are the least of calls in turn, for
some seconds each; core seconds tell what a busy machine adds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from measure import PeakMemory, row
from torch import Tensor
from torch.nn import functional

from nearid.lab.models.encoders import mlp
from nearid.lab.models.objectives import infonce, output

Loss = Callable[[Tensor, Tensor, float | None], Tensor]
KINDS = {"L1": (1.0, "box"), "L3^3": (3.0, "box"), "L2^2": (2.0, "unbounded"), "sphere": (None, "sphere")}
ENCODERS: dict[str, dict[str, Any]] = {
    "protocol": {},
    "small": {"widths": [128] * 4, "residual": True, "activation": "gelu"},
}


def ours(anchors: Tensor, positives: Tensor, p: float | None) -> Tensor:
    """The loss by nearid."""
    return infonce(anchors, positives, p=p)


def plain(anchors: Tensor, positives: Tensor, p: float | None) -> Tensor:
    """The loss as its formula stands."""
    if p is None:
        matched, others = -(anchors * positives).sum(-1), -anchors @ anchors.T
    else:
        matched = (anchors - positives).abs().pow(p).sum(-1)
        others = (anchors[:, None] - anchors[None]).abs().pow(p).sum(-1)
    return (matched + torch.logsumexp(-torch.cat([others, matched[:, None]], dim=1), dim=1)).mean()


def loss_and_gradient(loss: Loss, batch: int, n: int, kind: str) -> Callable[[], Tensor]:
    """A call that computes both, for representations in the space of the kind."""
    p, space = KINDS[kind]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        both = output(space, n)(torch.randn(2, batch, n, generator=generator).flatten(0, 1))
    pair = both.chunk(2)

    def run() -> Tensor:
        leaves = [t.clone().requires_grad_() for t in pair]
        return torch.cat(torch.autograd.grad(loss(leaves[0], leaves[1], p), leaves))

    return run


def step(loss: Loss, batch: int, n: int, kind: str, shape: str) -> Callable[[], None]:
    """A call that makes one step of training with an encoder of a shape."""
    p, space = KINDS[kind]
    torch.manual_seed(0)
    encoder, outputs = mlp(n, n, **ENCODERS[shape]), output(space, n)
    # Both sides have the same optimiser, so that the ratio is that of the loss.
    optimiser = torch.optim.Adam([*encoder.parameters(), *outputs.parameters()], lr=1e-4, fused=True)
    x = functional.normalize(torch.randn(2 * batch, n), dim=1)

    def run() -> None:
        anchors, positives = outputs(encoder(x)).chunk(2)
        optimiser.zero_grad()
        loss(anchors, positives, p).backward()
        optimiser.step()

    return run


def least(functions: list[Callable[[], object]], seconds: float) -> list[tuple[float, float]]:
    """Least wall and core seconds of each, called in turn for so long, so that all meet the same load."""
    found = [(float("inf"), float("inf"))] * len(functions)
    end, turns = time.perf_counter() + seconds * len(functions), 0
    while time.perf_counter() < end or turns < 2:
        for i, function in enumerate(functions):
            # The quicker ones are called more often, for as long as the slower take.
            until = time.perf_counter() + seconds / 5
            while True:
                wall, core = time.perf_counter(), time.process_time()
                function()
                took = time.perf_counter() - wall, time.process_time() - core
                found[i] = min(found[i][0], took[0]), min(found[i][1], took[1])
                if time.perf_counter() > until:
                    break
        turns += 1
    return found


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 6144])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--encoders", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(f"n = {given.n}, {given.threads} threads; wall times and ratios (core times in brackets)")
    for batch in given.batch:
        for kind in given.kinds:
            measure(batch, given.n, kind, given.encoders, given.seconds)


def measure(batch: int, n: int, kind: str, encoders: list[str], seconds: float) -> None:
    """Measure one loss at one size, and print."""
    losses = {"nearid": ours, "plain": plain}
    alone = [loss_and_gradient(loss, batch, n, kind) for loss in losses.values()]
    alone[0]()  # compiled now, if it was not
    gradients, megabytes = [], []
    for function in alone:
        with PeakMemory() as memory:
            gradients.append(function())
        megabytes.append(memory.megabytes)
    gap = float((gradients[0] - gradients[1]).abs().max() / gradients[1].abs().max())
    times = least(alone, seconds)
    for name, (wall, core), used in zip(losses, times, megabytes, strict=True):
        print(f"{batch:5d} {kind:7s}{name:7s} loss {wall * 1e3:8.1f} ms ({core * 1e3:8.1f})   {used:6.0f} MB")
    row(
        f"loss and gradient, {kind}, batch {batch:,}",
        ours=times[0][1],
        peer=times[1][1],
        by="plain torch",
        unit="core s",
    )
    wall, core = (b / a for a, b in zip(*times, strict=True))
    print(
        f"{batch:5d} {kind:7s}ratio   loss {wall:8.1f}    ({core:8.1f})   largest difference of gradients {gap:.0e}",
        flush=True,
    )
    for shape in encoders:
        steps = least([step(loss, batch, n, kind, shape) for loss in losses.values()], seconds)
        per_second = ", ".join(f"{name} {1 / whole:.2f} /s" for name, (whole, _) in zip(losses, steps, strict=True))
        wall, core = (b / a for a, b in zip(*steps, strict=True))
        found = f"{per_second}; ratio {wall:.2f} ({core:.2f})"
        print(f"{batch:5d} {kind:7s}step with the {shape} encoder: {found}", flush=True)


if __name__ == "__main__":
    main()
