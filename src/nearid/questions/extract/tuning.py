"""What is measured before a run: a batch that fits and is fast, and whether bfloat16 is faster and how exact."""

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
# A larger batch, or bfloat16, must be so many times as fast to be taken: less may be noise.
WORTH = 1.1
# Seconds of a pass beyond which no larger batch is tried.
PATIENCE = 5.0
# Inputs on which two precisions are compared.
COMPARED = 32
# A batch is tried if it is at most this share of the inputs: all that is tried takes less than half of a run.
SHARE = 8
# Batches among which one of a given size is looked for.
LOOKED_AT = 100


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
    best, rate = SIZES[0], 0.0
    for size in SIZES:
        if SHARE * size > (source.rows or 0):
            break
        # Of texts, the longest of which so many are of a like length.
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
        batches = _first(source, COMPARED)
        plain = forward.with_layout(batches[0])[0]
        slow, full = _seconds(plain, batches)
    except InputError:
        return lower if asked else forward, ()  # the first pass says what is wrong
    try:
        fast, half = _seconds(replace(plain, mixed=dtype), batches)
    except InputError as error:
        sentence = f"The model runs in full precision, because it does not run in {name} here ({error})"
        return forward, (Alert("full_precision", sentence),)
    speed = (
        f"{slow / fast:.2g} times as fast as full precision on {counted(sum(batch.n for batch in batches), 'input')}"
    )
    if not asked and slow < WORTH * fast:
        return forward, (Alert("full_precision", f"The model runs in full precision, because {name} is only {speed}."),)
    layer, off = max(((layer, _deviation(full[layer], half[layer])) for layer in full), key=lambda each: each[1])
    sentence = f"The model runs in {name}, {speed}. Rows differ by up to {off:.2%} of their spread (layer {layer})."
    return lower, (Alert("mixed_precision", sentence),)


def _first(source: Source, count: int) -> list[Batch]:
    """Batches of the first inputs, at least so many where there are."""
    batches: list[Batch] = []
    for batch in source.batches(count):
        batches.append(batch)
        if sum(each.n for each in batches) >= count:
            break
    return batches


def _seconds(forward: Forward, batches: list[Batch]) -> tuple[float, dict[str, Tensor]]:
    """Time of passes over batches, after one that is not counted; and what the layers give."""
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
    """Most bytes that this process has had in memory; 0 where the system does not tell."""
    # In kB on Linux; in bytes on macOS, where more is feared than there is.
    if resource is None:
        return 0
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
