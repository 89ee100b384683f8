"""A zarr directory at an address, read through `nearid.arrays.remote`."""

from __future__ import annotations

from functools import cache
from typing import Any

from nearid.arrays import remote
from nearid.base.addresses import public
from nearid.base.errors import InputError

# Names of the objects that hold metadata. Without one of them, zarr looks for another.
_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


def remote_store(address: str) -> Any:
    """Return a store that zarr can open. It is sent to other processes as the address only."""
    return _class()(address.rstrip("/"))


def _again(address: str, expected: dict[str, remote.State]) -> Any:
    store = remote_store(address)
    store.expected = expected
    return store


@cache
def _class() -> Any:
    # The class is made when it is first used, because importing zarr takes long.
    import asyncio

    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

    class RemoteStore(Store):
        """Objects below an address. A missing chunk raises an error, where zarr would read zeros."""

        supports_writes = supports_deletes = supports_partial_writes = False

        def __init__(self, root: str) -> None:
            super().__init__(read_only=True)
            self.root = root
            self.expected: dict[str, remote.State] = {}

        @property
        def supports_listing(self) -> bool:
            return remote.can_list(self.root)

        def __reduce__(self) -> Any:
            return _again, (self.root, self.expected)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, RemoteStore) and other.root == self.root

        def __str__(self) -> str:
            return public(self.root)

        __repr__ = __str__

        def expect(self, prefix: str, count: int) -> dict[str, remote.State]:
            """List the objects below a prefix. From now on they must not change."""
            held = remote.states_below(self._address(prefix), count)
            self.expected |= {prefix + name: state for name, state in held.items()}
            return self.expected

        def _address(self, key: str) -> str:
            return f"{self.root}/{key}".rstrip("/")

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            got = await asyncio.to_thread(self._get, key, byte_range)
            return None if got is None else prototype.buffer.from_bytes(got)

        def _get(self, key: str, part: Any) -> bytes | None:
            address, state = self._address(key), self.expected.get(key)
            try:
                got = self._bytes(address, state, part)
                if state is not None and remote.state_of(address) != state:
                    raise InputError(
                        f"{public(address)} changed while it was read. Run again when no program writes to it."
                    )
                return got
            except remote.NoSuchObject:
                if key.rpartition("/")[2] in _METADATA:
                    return None
                raise InputError(
                    f"{public(self.root)} lacks the chunk {key}, which zarr would read as zeros: it was not written or "
                    "copied completely. If the chunk really holds only this value, write the array again with "
                    "write_empty_chunks=True."
                ) from None

        @staticmethod
        def _bytes(address: str, state: remote.State | None, part: Any) -> bytes:
            if part is None:
                return remote.read_whole(address, 0 if state is None else state.size)
            if isinstance(part, RangeByteRequest):
                return remote.read(address, part.start, part.end)
            size = (state or remote.state_of(address)).size
            assert isinstance(part, OffsetByteRequest | SuffixByteRequest)
            start = part.offset if isinstance(part, OffsetByteRequest) else max(size - part.suffix, 0)
            return remote.read(address, start, size)

        async def get_partial_values(self, prototype: Any, key_ranges: Any) -> list[Any]:
            return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

        async def exists(self, key: str) -> bool:
            try:
                await asyncio.to_thread(remote.state_of, self._address(key))
            except remote.NoSuchObject:
                return False
            return True

        async def list_dir(self, prefix: str) -> Any:
            if not self.supports_listing:
                raise InputError(
                    f"{public(self.root)} is a group of arrays on a web server, which cannot list them. Give the "
                    "address of one array, such as group.zarr/name.zarr, or consolidate the metadata of the group."
                )
            for name in await asyncio.to_thread(remote.names_below, self._address(prefix)):
                yield name

        async def list(self) -> Any:
            async for name in self.list_prefix(""):
                yield name

        async def list_prefix(self, prefix: str) -> Any:
            for name in await asyncio.to_thread(remote.states_below, self._address(prefix), 0):
                yield f"{prefix}{name}"

        async def set(self, key: str, value: Any) -> None:
            raise NotImplementedError

        async def delete(self, key: str) -> None:
            raise NotImplementedError

    return RemoteStore
