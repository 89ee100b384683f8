"""Where prints of users' code go: stdout holds the result alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send to stderr what is printed meanwhile, by this process or by programs that it starts."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        # What was printed past the redirection must not wait for the old stdout.
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
