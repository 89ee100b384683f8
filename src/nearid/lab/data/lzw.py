"""The .Z format of Unix compress (LZW), for which Python has no reader."""

from __future__ import annotations

from nearid.base.errors import InputError
from nearid.lab.data.base import AGAIN

MAGIC = b"\x1f\x9d"
CLEAR = 256


def decompress(data: bytes, name: str, most: int) -> bytes:
    """Return the content of a .Z file, which may have at most `most` bytes.

    Codes have 9 bits at first and become wider as the table grows. They come in groups of eight: whenever the width
    changes, the rest of the group is filler.
    """
    if data[:2] != MAGIC or len(data) < 3:
        raise InputError(f"{name} is not a .Z file of Unix compress. {AGAIN}")
    widest, block_mode = data[2] & 0x1F, bool(data[2] & 0x80)
    if not 9 <= widest <= 16:
        raise InputError(f"{name} declares codes of {widest} bits, but 9 to 16 are possible. {AGAIN}")
    roots = [bytes([value]) for value in range(256)] + [b""] * block_mode
    table, width, before = list(roots), 9, b""
    out, size, at = [], 0, 3
    while at < len(data):
        # One group: as many bytes as the width has bits.
        group, at = int.from_bytes(data[at : at + width], "little"), at + width
        held = min(8, (8 * (len(data) - at + width)) // width)
        mask, now = (1 << width) - 1, width
        for _ in range(held):
            code, group = group & mask, group >> now
            if code == CLEAR and block_mode:
                table, width, before = list(roots), 9, b""
                break
            if code < len(table):
                entry = table[code]
            elif code == len(table) and before:
                entry = before + before[:1]
            else:
                raise InputError(f"{name} is damaged: it refers to a string that it has not defined. {AGAIN}")
            size += len(entry)
            if size > most:
                raise InputError(f"{name} contains more than {most} bytes, more than this file can have.")
            out.append(entry)
            if before and len(table) < 1 << widest:
                table.append(before + entry[:1])
            before = entry
            if len(table) >= 1 << width and width < widest:
                width += 1
                break
    return b"".join(out)
