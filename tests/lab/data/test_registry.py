"""Every data set is described in full."""

import math
import re
from pathlib import Path

import pytest

from nearid.base.errors import InputError
from nearid.lab.data.base import Corpus, Weights
from nearid.lab.data.registry import HOMES, dataset, datasets
from nearid.measures.factors import KINDS

DOCS = Path(__file__).resolve().parents[3] / "docs" / "data.md"


@pytest.mark.parametrize("name", HOMES)
def test_descriptions(name):
    described = dataset(name)
    assert described.name == name
    assert described.licence and described.citation and described.homepage.startswith("http")
    if isinstance(described, Corpus):
        assert described.words > 0
        return
    if isinstance(described, Weights):
        assert sorted(described.networks.values()) == sorted(file.name for file in described.files)
        return
    assert described.factors
    for factor in described.factors:
        assert factor.kind in KINDS
        assert (factor.period is not None) == (factor.kind == "circular")
        assert len(factor.levels) in (0, factor.size)
        assert (factor.size is None) == (factor.kind == "continuous")


@pytest.mark.parametrize("file", [file for described in datasets() for file in described.files], ids=lambda f: f.name)
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
    assert file.confirmed or file.note


def test_only_addresses_that_their_source_names_are_confirmed():
    doubtful = {described.name for described in datasets() for file in described.files if not file.confirmed}
    assert doubtful == {
        "mpi3d-complex",
        "cars3d",
        "3dident",
        "mnist",
        "faces",
        "coil20",
        "wikitext2",
        "cifar10-resnets",
    }


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
    assert [name for name in HOMES if f"`{name}`" not in text] == []
