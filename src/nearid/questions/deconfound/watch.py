"""How long each stage takes, by the clock and of the processor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Watch:
    """Seconds of each stage; those of all cores do not depend on what else a machine does."""

    seconds: dict[str, float] = field(default_factory=dict)
    core_seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what the block takes to a stage."""
        clock, core = time.perf_counter(), time.process_time()
        yield
        for kept, now, began in (
            (self.seconds, time.perf_counter(), clock),
            (self.core_seconds, time.process_time(), core),
        ):
            kept[name] = kept.get(name, 0.0) + now - began
