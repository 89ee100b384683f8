"""Checks of the available memory, made before arrays that a file declares are allocated."""

import os

from nearid.base.errors import InputError


def available_memory() -> int | None:
    """Return the number of bytes that can be allocated now, or None if the system does not report it."""
    limits = [limit for limit in (_system_memory(), _container_limit(), _process_limit()) if limit is not None]
    return min(limits, default=None)


def check_memory(name: str, size: int, advice: str) -> None:
    """Raise an error if `size` bytes are not available."""
    available = available_memory()
    if available is not None and size > available:
        raise InputError(f"{name} needs {readable(size)} of memory, but {readable(available)} are available. {advice}")


def readable(size: float) -> str:
    """Return a size in bytes as text with a unit, such as "1.5 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def _system_memory() -> int | None:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _process_limit() -> int | None:
    """Return the bytes that this process may still allocate under `ulimit -v`."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        with open("/proc/self/statm") as file:
            return max(limit - int(file.read().split()[0]) * resource.getpagesize(), 0)
    except (ImportError, OSError, ValueError):
        return None


def _container_limit() -> int | None:
    # /proc/meminfo shows the memory of the host, even if the container may use only a part of it.
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
