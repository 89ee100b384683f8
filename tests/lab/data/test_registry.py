"""Every data set is described in full."""

import math
import re
from pathlib import Path

import pytest

from nearid.base.errors import InputError
from nearid.lab.data.base import Dataset, Weights
from nearid.lab.data.registry import DOUBTFUL, address_of, dataset, datasets
from nearid.measures.factors import KINDS

DOCS = Path(__file__).resolve().parents[3] / "docs" / "lab" / "data.md"


@pytest.mark.parametrize("name", datasets())
def test_descriptions(name):
    described = dataset(name)
    assert described.name == name
    assert described.licence and described.citation and described.homepage.startswith("http")
    assert described.amount and described.kind and described.loader
    if isinstance(described, Weights):
        assert sorted(described.networks.values()) == sorted(file.name for file in described.files)
    if not isinstance(described, Dataset):
        return
    assert described.factors
    for factor in described.factors:
        assert factor.kind in KINDS
        assert (factor.period is not None) == (factor.kind == "circular")
        assert len(factor.levels) in (0, factor.size)
        assert (factor.size is None) == (factor.kind == "continuous")


@pytest.mark.parametrize(
    "file", [file for described in datasets().values() for file in described.files], ids=lambda f: f.name
)
def test_files(file):
    assert file.url.startswith("http") and "/" not in file.name
    assert bool(file.members) == bool(file.holds)
    lengths = {"sha256": 64, "md5": 32}
    if file.checksum is None:
        assert not file.checked_by
    else:
        kind, _, digits = file.checksum.partition(":")
        assert re.fullmatch(f"[0-9a-f]{{{lengths[kind]}}}", digits)
        assert file.checked_by


def test_where_addresses_come_from():
    assert DOUBTFUL.keys() <= datasets().keys()
    names = ("dsprites", "mnist", "falcor3d", "bbbc021", "digits")
    assert [address_of(dataset(name)) for name in names] == ["own page", "mirror", "by hand", "by hand", ""]


@pytest.mark.parametrize(
    "name",
    ["dsprites", "shapes3d", "mpi3d-toy", "mpi3d-complex", "falcor3d", "isaac3d", "cars3d", "smallnorb", "coil20"],
)
def test_sets_of_all_combinations_have_that_many_images(name):
    described = dataset(name)
    assert described.images == math.prod(factor.size for factor in described.factors)


def test_an_unknown_name_is_told():
    with pytest.raises(InputError, match="Did you mean dsprites"):
        dataset("dsprite")


def test_every_data_set_is_in_the_docs():
    if not DOCS.is_file():
        pytest.skip("docs are not in this copy")
    text = DOCS.read_text()
    assert [name for name in datasets() if f"`{name}`" not in text] == []


def test_the_docs_say_where_each_address_comes_from():
    if not DOCS.is_file():
        pytest.skip("docs are not in this copy")
    rows = [line.strip("| ").split(" | ") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    columns = {name: row[-1].strip("| ") for row in rows for name in re.findall(r"`([\w-]+)`", row[0])}
    assert {name: columns[name] for name in datasets() if name != "digits"} == {
        name: address_of(described) for name, described in datasets().items() if name != "digits"
    }
