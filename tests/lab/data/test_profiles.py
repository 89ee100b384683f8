"""Profiles of wells: joined with what their wells were given, and a sentence where they are not here."""

import gzip

import numpy as np
import pytest

from nearid import InputError
from nearid.lab.data.load import load_profiles


@pytest.fixture
def bbbc021(tmp_path, monkeypatch):
    folder = tmp_path / "bbbc021"
    folder.mkdir()
    monkeypatch.setenv("NEARID_DATA", str(tmp_path))

    def write(name, *lines):
        with gzip.open(folder / name, "wt") if name.endswith(".gz") else open(folder / name, "w") as file:
            file.write("\n".join(lines) + "\n")

    write(
        "ljosa_jbiomolscreen_2013_per_well_mean.csv.gz",
        "Image_Metadata_Plate,Image_Metadata_Well,a,b",
        "Week1_1,A1,1,2.5",
        "Week1_1,A2,3,4",
        "Week2_7,A1,5,6",
    )
    write(
        "BBBC021_v1_image.csv.gz",
        "Image_Metadata_Plate_DAPI,Image_Metadata_Well_DAPI,Image_Metadata_Compound,Image_Metadata_Concentration",
        "Week1_1,A1,DMSO,0",
        "Week1_1,A2,taxol,3",
        "Week2_7,A1,unknown,1",
        "Week2_7,A1,unknown,1",
    )
    write("BBBC021_v1_moa.csv", "compound,concentration,moa", "taxol,3,stabilizers", "emetine,0.3,synthesis")


def test_wells_are_joined_with_their_mechanisms(bbbc021):
    found = load_profiles("bbbc021")
    assert found.values.tolist() == [[1, 2.5], [3, 4]] and found.labels.tolist() == ["DMSO", "stabilizers"]
    assert found.batches["week"].tolist() == ["Week1", "Week1"] and found.control == "DMSO"


def test_the_real_wells(real_data):
    found = load_profiles("bbbc021")
    assert found.values.shape == (632, 516) and np.sum(found.labels == "DMSO") == 330
    assert len(set(found.batches["plate"])) == 55 and len(set(found.batches["week"])) == 10
    assert len(set(found.labels)) == 13


def test_a_well_that_is_listed_twice_counts_once(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARID_DATA", str(tmp_path))
    (tmp_path / "lincs_wells").mkdir()
    with gzip.open(tmp_path / "lincs_wells" / "cell_painting_pca.tsv.gz", "wt") as file:
        head = ["Metadata_Plate", "Metadata_Well", "pert_iname", *(f"pca_{k}" for k in range(1, 6))]
        wells = ["p1 A1 drug 1 2 3 4 5", "p1 A2 drug 1 2 3 4 5", "p1 A1 drug 1 2 3 4 5", "p1 A1 drug 1 2 3 4 6"]
        file.write("\n".join("\t".join(line) for line in [head, *(w.split() for w in wells)]) + "\n")
    found = load_profiles("lincs")
    assert found.values[:, 4].tolist() == [5, 5, 6] and len(found.labels) == len(found.batches["plate"]) == 3


def test_what_is_not_here_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARID_DATA", str(tmp_path))
    with pytest.raises(InputError, match="broadinstitute/cell-health"):
        load_profiles("cell-health")
    with pytest.raises(InputError, match="Did you mean lincs"):
        load_profiles("linc")
