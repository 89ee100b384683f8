"""Write docs/development/licences.md from the metadata of what is installed: python docs/tools/licences.py."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "development" / "licences.md"
# What packages write in place of an SPDX identifier. "BSD" alone does not say which of the BSD licences it is.
SPDX = {
    "Apache": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "BSD": "BSD (variant not stated)",
    "BSD License": "BSD (variant not stated)",
    "BSD 3-Clause License": "BSD-3-Clause",
}
HEAD = """# Licences of dependencies

nearid is under the Apache License 2.0. It does not contain the packages below: pip installs them beside it. The table
lists the direct dependencies of the core and of each extra. The packages that they depend on are not listed.

The licence is the one that the installed package states in its metadata, as an SPDX identifier if it is known. The
versions are those of `constraints.txt`. `python docs/tools/licences.py` writes this page.
"""
FIELDS = ("License-Expression", "License", "Classifier")


def requirements() -> dict[str, list[str]]:
    """Names of the direct dependencies, by extra; those of the core come first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = {"core": project["dependencies"], **project["optional-dependencies"]}
    named = {part: [re.match(r"[\w.-]+", text)[0] for text in texts] for part, texts in parts.items()}
    return {part: [name for name in names if name != "nearid"] for part, names in named.items()}


def licence(fields: dict[str, list[str]]) -> str:
    """The licence that a package states: its SPDX expression, or else the name in its older fields."""
    if fields["License-Expression"]:
        return fields["License-Expression"][0]
    # Some put the whole text of the licence there. Then its first line may be the name.
    first = [text.strip().split("\n")[0].strip() for text in fields["License"]]
    classifiers = [text.split(" :: ")[-1] for text in fields["Classifier"] if text.startswith("License :: OSI")]
    for stated in (*first, *classifiers):
        if stated in SPDX:
            return SPDX[stated]
        if re.fullmatch(r"MIT|[A-Z][A-Za-z]*-[\w.-]+", stated):
            return stated
    return "unknown"


def table() -> dict[str, tuple[str, str, list[str]]]:
    """Version, licence and extras of every direct dependency."""
    found: dict[str, tuple[str, str, list[str]]] = {}
    for part, names in requirements().items():
        for name in names:
            if name not in found:
                told = metadata(name)
                fields = {key: told.get_all(key) or [] for key in FIELDS}
                found[name] = (told["Version"].split("+")[0], licence(fields), [])
            found[name][2].append(part)
    return found


def page() -> str:
    """The page, in Markdown."""
    rows = [
        f"| {name} | {version} | {stated} | {', '.join(parts)} |"
        for name, (version, stated, parts) in sorted(table().items())
    ]
    return "\n".join([HEAD, "| package | version | licence | needed by |", "|---|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except PackageNotFoundError as error:
        raise SystemExit(f"{error.name} is not installed. Install every extra first.") from None
