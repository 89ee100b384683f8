"""Addresses such as s3://bucket/rows.npy: recognising them, and writing them without passwords and signatures."""

from __future__ import annotations

import os
import re

# Of these also s3:/bucket is an address, which pathlib writes for s3://bucket. run:/layer names an entry of a file.
_COMMON = ("s3", "gs", "gcs", "http", "https", "memory")
# A single letter is a drive of Windows.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")
_IN_TEXT = re.compile(
    r"""(?P<protocol>[A-Za-z][A-Za-z0-9+.-]+://)  # s3://
    (?:[^/?\#\s'"]*@)?                            # user:password@
    (?P<place>[^?\#\s'"]*)                        # bucket/rows.npy
    (?:[?\#][^\s'"]*)?                            # ?X-Amz-Signature=...""",
    re.VERBOSE,
)


def address_of(source: object) -> str | None:
    """Return the address that a text or a path is, such as "s3://bucket/rows.npy"; None for a path on this machine."""
    if not isinstance(source, str | os.PathLike):
        return None
    text = os.fspath(source)
    found = _ADDRESS.match(text) if isinstance(text, str) else None
    if found is None:
        return None
    if not text.startswith("://", found.end(1)) and (found[1].lower() not in _COMMON or os.path.exists(text)):
        return None
    return f"{found[1].lower()}://{text[found.end() :]}"


def public(text: str) -> str:
    """Return a text in which every address is without user name, password, query and fragment.

    The query of a signed address gives access to the file, so it must not appear in messages and reports.
    """
    return _IN_TEXT.sub(r"\g<protocol>\g<place>", text)
