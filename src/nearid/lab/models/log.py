"""The log of a training run, as JSON lines; read without torch."""

import json
import os
from pathlib import Path
from typing import Any

from nearid.base.files import replacing

# The checkpoint is in the same folder as the log.
LOG, CHECKPOINT = "log.jsonl", "checkpoint.pt"

Record = dict[str, Any]


def restart_log(folder: Path, records: list[Record]) -> None:
    """Write the log again from `records`: records after the checkpoint will be repeated."""
    with replacing(folder / LOG) as file:
        file.write("".join(json.dumps(record) + "\n" for record in records).encode())


def append_log(folder: Path, record: Record) -> None:
    """Add a record to the log."""
    with open(folder / LOG, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def reached(folder: Path) -> int | None:
    """Return the last step in the log of a folder, or None if there is no run to continue."""
    logs = [place.with_name(LOG) for place in folder.rglob(CHECKPOINT)]
    try:
        lines = max(logs, key=os.path.getmtime).read_text(encoding="utf-8").splitlines()
        return int(json.loads(lines[-1])["step"])
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return None
