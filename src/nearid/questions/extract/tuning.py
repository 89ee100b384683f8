"""What is measured before a run: a batch that fits and is fast, and whether bfloat16 is faster and how exact."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import available_memory
from nearid.base.resume import NAME as NOTE, load_note
from nearid.questions.extract.batches import Batch, BatchSource, Source
from nearid.questions.extract.forward import Forward
from nearid.questions.extract.store import partial_folder
from nearid.show.view import counted

try:
    import resource
except ImportError:  # Windows does not tell the peak of memory
    resource = None  # type: ignore[assignment]

USUAL = 128
SIZES = (8, 16, 32, 64, 128, 256, 512)
# A larger batch, or bfloat16, must be so many times as fast to be taken: less may be noise.
WORTH = 1.1
# Seconds of a pass beyond which no larger batch is tried.
PATIENCE = 5.0
# Inputs on which two precisions are compared.
COMPARED = 32


def noted(out: Path | None, *, restart: bool) -> dict[str, Any]:
    """What an interrupted extraction into a folder runs with: it goes on with the same, as rows depend on it."""
    if out is None or restart:
        return {}
    try:
        match load_note(partial_folder(out) / NOTE):
            case {"identity": {"batch_size": int(size), "precision": str(precision)}, "state": {"inputs": int(done)}}:
                return {"batch_size": size, "precision": precision} if done and size > 0 else {}
    except (OSError, ValueError, RecursionError):
        pass  # whoever opens the part says what is wrong with it
    return {}


def fitting_batch(forward: Forward, source: Source) -> int:
    """The number of inputs in a batch: doubled as long as it fits and makes the passes faster."""
    if isinstance(source, BatchSource):
        return USUAL
    best, rate, before = SIZES[0], 0.0, 0
    for size in SIZES:
        batch = next(source.batches(size))
        if batch.n <= before:
            break  # there are no more inputs, or none of a like length
        peak = _peak()
        try:
            seconds = _seconds(forward.with_layout(batch)[0], batch)[0]
        except InputError:
            break  # it does not fit; or the first pass says what is wrong
        if batch.n / seconds > WORTH * rate:
            best, rate = size, batch.n / seconds
        grown, free, before = _peak() - peak, available_memory(), batch.n
        if seconds > PATIENCE or best < size // 2 or (free is not None and 3 * grown > free):
            break
    return best


def fitting_precision(
    forward: Forward, source: Source, dtype: torch.dtype, before: str | None = None, *, asked: bool
) -> tuple[Forward, tuple[Alert, ...]]:
    """The passes in lower precision, and how far rows differ; in full precision where lower is slower, or fails.

    Parameters
    ----------
    before : str, optional
        The precision that an interrupted extraction runs in, which decides.
    asked : bool
        Whether somebody chose this precision, which then need not be faster.
    """
    name, lower = str(dtype).removeprefix("torch."), replace(forward, mixed=dtype)
    if not asked and before is not None:
        if before != name:
            return forward, ()
        asked = True
    if isinstance(source, BatchSource):
        # Its first batch may be had once only, so that nothing can be measured.
        return lower if asked else forward, ()
    try:
        batch = next(source.batches(COMPARED))
        plain = forward.with_layout(batch)[0]
        slow, full = _seconds(plain, batch)
    except InputError:
        return lower if asked else forward, ()  # the first pass says what is wrong
    try:
        fast, half = _seconds(replace(plain, mixed=dtype), batch)
    except InputError as error:
        sentence = f"Products run in full precision: the model does not run in {name} here ({error})"
        return forward, (Alert("full_precision", sentence),)
    speed = f"{slow / fast:.2g} times as fast as full precision on the first {counted(batch.n, 'input')}"
    if not asked and slow < WORTH * fast:
        return forward, (Alert("full_precision", f"Products run in full precision: {name} is {speed}."),)
    layer, off = max(((layer, _deviation(full[layer], half[layer])) for layer in full), key=lambda each: each[1])
    sentence = f"Products run in {name}, {speed}. Rows differ by up to {off:.2%} of their spread (layer {layer})."
    return lower, (Alert("mixed_precision", sentence),)


def _seconds(forward: Forward, batch: Batch) -> tuple[float, dict[str, Tensor]]:
    """Time of a pass, after one that is not counted; and what the layers give."""
    forward(batch)
    began = time.perf_counter()
    rows = forward(batch)[0]
    if forward.device.type == "cuda":
        torch.cuda.synchronize(forward.device)
    return time.perf_counter() - began, rows


def _deviation(full: Tensor, half: Tensor) -> float:
    """Root-mean-square difference of rows over their spread."""
    full, half = full.double(), half.double()
    spread = float((full - full.mean(0)).norm())
    return float((half - full).norm()) / spread if spread else 0.0


def _peak() -> int:
    """Most bytes that this process has had in memory; 0 where the system does not tell."""
    # In kB on Linux; in bytes on macOS, where more is feared than there is.
    return 0 if resource is None else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
