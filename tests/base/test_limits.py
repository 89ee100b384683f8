import pytest

from nearid.base import limits as memory
from nearid.base.errors import InputError


def test_available_memory_is_plausible() -> None:
    available = memory.available_memory()
    assert available is None or 10**6 < available < 10**15


def test_check_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    memory.check_memory("x", 1000, "")
    with pytest.raises(InputError, match=r"x needs 2 kB of memory, but 1 kB are available\. Shrink it\."):
        memory.check_memory("x", 2000, "Shrink it.")
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_memory("x", 10**18, "")


def test_readable() -> None:
    assert [memory.readable(n) for n in (12, 1500, 2e6, 3e9, 4e15)] == [
        "12 bytes",
        "1.5 kB",
        "2 MB",
        "3 GB",
        "4e+03 TB",
    ]


def test_a_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 20, 1 << 20))
    assert memory.available_memory() == 0
