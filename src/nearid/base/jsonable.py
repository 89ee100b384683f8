"""What JSON can say."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """Replace what JSON cannot say (NaN, infinities) by None, all the way down."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
