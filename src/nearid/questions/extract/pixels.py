"""Pictures as batches of pixels, decoded in threads ahead of the model."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice

import numpy as np
import torch

from nearid.base.limits import check_memory
from nearid.questions.extract.batches import SINGLE, Batch, Source
from nearid.questions.extract.pictures import Decoded, Pictures, Unreadable

# Number of decoding threads; the model needs the processor too.
THREADS = min(4, os.cpu_count() or 1)
# Batches that are decoded ahead.
AHEAD = 2


class PictureSource(Source):
    """Pictures in batches of one size.

    Parameters
    ----------
    labelled : bool
        Whether each row gets the folder of its picture as a label.
    """

    def __init__(self, pictures: Pictures, *, labelled: bool = False) -> None:
        self.name, self.rows, self.id_type = pictures.name, len(pictures.paths), pictures.ids.dtype
        self.label_type = pictures.labels.dtype if labelled else None
        self._pictures, self.alerts = pictures, pictures.alerts

    def batches(self, size: int) -> Iterator[Batch]:
        start = 0
        # Those ahead, those of a batch one by one, and the batch.
        held = min((AHEAD + 2) * size, 2 * len(self._pictures.paths))
        height, width = self._pictures.shape
        check_memory(
            f"A batch of {size} pictures of {self.name}, with those read ahead,",
            held * height * width * self._pictures.shaping.channels,
            "Choose a smaller batch_size (--batch-size) or smaller pictures (--resize).",
        )
        with closing(self._decoded(AHEAD * size)) as decoded:
            while some := list(islice(decoded, size)):
                places = [at for at, _ in some]
                pixels = torch.from_numpy(np.stack([picture.pixels for _, picture in some]))
                labels = None if self.label_type is None else self._pictures.labels[places]
                given = [picture.given for _, picture in some]
                yield Batch(start, {SINGLE: pixels}, self._pictures.ids[places], given, labels=labels)
                start += len(some)

    def _decoded(self, ahead: int) -> Generator[tuple[int, Decoded], None, None]:
        """Pictures with their indices, in order; unreadable pictures are an error or left out."""
        waiting: deque[tuple[int, Future[Decoded]]] = deque()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="nearid-pictures") as threads:
            try:
                for at in range(len(self._pictures.paths)):
                    waiting.append((at, threads.submit(self._pictures.decode, at)))
                    if len(waiting) > ahead:
                        yield from self._taken(*waiting.popleft())
                while waiting:
                    yield from self._taken(*waiting.popleft())
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _taken(self, at: int, future: Future[Decoded]) -> Iterator[tuple[int, Decoded]]:
        try:
            yield at, future.result()
        except Unreadable as error:
            self._pictures.leave_out(at, str(error))
            self.alerts = self._pictures.alerts
