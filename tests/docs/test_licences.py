"""The page of licences lists every direct dependency, and none whose licence would bind users of nearid."""

import re
from importlib.metadata import PackageNotFoundError

import licences
import pytest

ROWS = {
    cells[0]: cells[1:]
    for line in licences.PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and (cells := [cell.strip() for cell in line.strip("|").split("|")])[0] != "package"
}


def test_every_direct_dependency_is_listed_with_all_that_need_it():
    needed = {}
    for part, names in licences.requirements().items():
        for name in names:
            needed.setdefault(name, []).append(part)
    assert {name: cells[2].split(", ") for name, cells in ROWS.items()} == needed
    assert {"numpy", "torch", "sphinx", "pytest"} <= set(ROWS)


def test_versions_are_those_that_are_pinned():
    pinned = dict(
        re.findall(r"^([\w.-]+)==([\w.]+)", (licences.ROOT / "constraints.txt").read_text().lower(), re.MULTILINE)
    )
    assert {name: cells[0] for name, cells in ROWS.items()} == {name: pinned[name] for name in ROWS}


def test_no_licence_is_a_gpl_or_unknown():
    assert [name for name, cells in ROWS.items() if re.search("GPL|unknown", cells[1])] == []


def test_the_page_is_what_the_installed_packages_state():
    try:
        assert licences.page() == licences.PAGE.read_text(encoding="utf-8")
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize(
    ("fields", "stated"),
    [
        ({"License-Expression": ["BSD-3-Clause"], "License": ["MIT"]}, "BSD-3-Clause"),
        ({"License": ["Apache-2.0"]}, "Apache-2.0"),
        ({"License": ["MIT"]}, "MIT"),
        ({"License": ["BSD 3-Clause License\n\nCopyright"]}, "BSD-3-Clause"),
        (
            {"License": ["Copyright (c) 2001"], "Classifier": ["License :: OSI Approved :: BSD License"]},
            "BSD (variant not stated)",
        ),
        ({"Classifier": ["License :: DFSG approved", "License :: OSI Approved :: MIT License"]}, "MIT"),
        ({"License": ["GPL-3.0-only"]}, "GPL-3.0-only"),
        ({"License": ["GNU General Public License v3 (GPLv3)"]}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_what_a_package_states(fields, stated):
    assert licences.licence({key: [] for key in licences.FIELDS} | fields) == stated
