"""Measurements before a run: a batch size that fits and is fast, and whether bfloat16 is faster and how exact."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice
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
# A larger batch, or bfloat16, must be faster by this factor: less may be noise.
WORTH = 1.1
# If a pass takes longer than this many seconds, no larger batch is tried.
PATIENCE = 5.0
# Inputs on which two precisions are compared.
COMPARED = 32
# A batch is tried if it has at most this share of the inputs, so all trials take less than half of a run.
SHARE = 8
# Batches among which one of a given size is looked for.
LOOKED_AT = 100


def noted(out: Path | None, *, restart: bool) -> dict[str, Any]:
    """Batch size and precision of an interrupted extraction, which a continued run must keep."""
    if out is None or restart:
        return {}
    try:
        match load_note(partial_folder(out) / NOTE):
            case {"identity": {"batch_size": int(size), "precision": str(precision)}, "state": {"inputs": int(done)}}:
                return {"batch_size": size, "precision": precision} if done and size > 0 else {}
    except (OSError, ValueError, RecursionError):
        pass  # opening the partial folder reports the error
    return {}


def fitting_batch(forward: Forward, source: Source) -> int:
    """The number of inputs in a batch: doubled as long as it fits and makes the passes faster."""
    if isinstance(source, BatchSource):
        return USUAL
    best, rate = SIZES[0], 0.0
    for size in SIZES:
        if SHARE * size > (source.rows or 0):
            break
        # For texts: the longest batch with this many texts of similar length.
        try:
            batch = next((batch for batch in islice(source.batches(size), LOOKED_AT) if batch.n == size), None)
            if batch is None:
                break
            peak = _peak()
            seconds = _seconds(forward.with_layout(batch)[0], [batch])[0]
        except InputError:
            break  # it does not fit; or the first pass says what is wrong
        if size / seconds > WORTH * rate:
            best, rate = size, size / seconds
        grown, free = _peak() - peak, available_memory()
        if seconds > PATIENCE or best < size // 2 or (free is not None and 3 * grown > free):
            break
    return best


def fitting_precision(
    forward: Forward, source: Source, dtype: torch.dtype, before: str | None = None, *, chosen: bool
) -> tuple[Forward, tuple[Alert, ...]]:
    """The forward pass in lower precision, and how far rows differ; in full precision if lower is slower or fails.

    Parameters
    ----------
    before : str, optional
        The precision of an interrupted extraction, which is kept.
    chosen : bool
        Whether the user chose this precision; it is then used even if it is not faster.
    """
    name, lower = str(dtype).removeprefix("torch."), replace(forward, mixed=dtype)
    if not chosen and before is not None:
        if before != name:
            return forward, ()
        chosen = True
    if isinstance(source, BatchSource):
        # Its first batch can be read only once, so nothing can be measured.
        return lower if chosen else forward, ()
    try:
        batches = _first(source, COMPARED)
        plain = forward.with_layout(batches[0])[0]
        slow, full = _seconds(plain, batches)
    except InputError:
        return lower if chosen else forward, ()  # the first pass says what is wrong
    try:
        fast, half = _seconds(replace(plain, mixed=dtype), batches)
    except InputError as error:
        sentence = f"The model runs in full precision, because it does not run in {name} here ({error})"
        return forward, (Alert("full_precision", sentence),)
    speed = (
        f"{slow / fast:.2g} times as fast as full precision on {counted(sum(batch.n for batch in batches), 'input')}"
    )
    if not chosen and slow < WORTH * fast:
        return forward, (Alert("full_precision", f"The model runs in full precision, because {name} is only {speed}."),)
    layer, off = max(((layer, _deviation(full[layer], half[layer])) for layer in full), key=lambda each: each[1])
    sentence = f"The model runs in {name}, {speed}. Rows differ by up to {off:.2%} of their spread (layer {layer})."
    return lower, (Alert("mixed_precision", sentence),)


def _first(source: Source, count: int) -> list[Batch]:
    """Batches of the first inputs, at least `count` inputs if there are so many."""
    batches: list[Batch] = []
    for batch in source.batches(count):
        batches.append(batch)
        if sum(each.n for each in batches) >= count:
            break
    return batches


def _seconds(forward: Forward, batches: list[Batch]) -> tuple[float, dict[str, Tensor]]:
    """Time of passes over batches, after a warm-up; and the outputs of the layers."""
    forward(batches[0])
    began = time.perf_counter()
    parts = [forward(batch)[0] for batch in batches]
    if forward.device.type == "cuda":
        torch.cuda.synchronize(forward.device)
    seconds = time.perf_counter() - began
    return seconds, {layer: torch.cat([part[layer] for part in parts]) for layer in parts[0]}


def _deviation(full: Tensor, half: Tensor) -> float:
    """Root-mean-square difference of rows over their spread."""
    full, half = full.double(), half.double()
    spread = float((full - full.mean(0)).norm())
    return float((half - full).norm()) / spread if spread else 0.0


def _peak() -> int:
    """Peak memory of this process in bytes; 0 if the system does not report it."""
    # In kB on Linux; in bytes on macOS, where this overestimates.
    if resource is None:
        return 0
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
