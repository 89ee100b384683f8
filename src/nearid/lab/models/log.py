"""The log of a training run, as JSON lines; read without torch."""

import json
import os
from pathlib import Path
from typing import Any

from nearid.base.files import replacing

# The checkpoint lies beside the log.
LOG, CHECKPOINT = "log.jsonl", "checkpoint.pt"

Record = dict[str, Any]


def restart_log(folder: Path, records: list[Record]) -> None:
    """Write the log anew: records that came after the checkpoint will come again."""
    with replacing(folder / LOG) as file:
        file.write("".join(json.dumps(record) + "\n" for record in records).encode())


def append_log(folder: Path, record: Record) -> None:
    """Add a record to the log."""
    with open(folder / LOG, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def reached(folder: Path) -> int | None:
    """The last step in the log of the run that was last at work in a folder; None where none can be gone on with."""
    logs = [place.with_name(LOG) for place in folder.rglob(CHECKPOINT)]
    try:
        lines = max(logs, key=os.path.getmtime).read_text(encoding="utf-8").splitlines()
        return int(json.loads(lines[-1])["step"])
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return None
