"""Metadata that stands in several files is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import nearid
from nearid.show.help import DOCS

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "pyproject.toml"
RECIPE = ROOT / "conda.recipe" / "meta.yaml"
CITATION = ROOT / "CITATION.cff"
pytestmark = pytest.mark.skipif(not RECIPE.exists(), reason="an installed copy or an sdist has no recipe")


def test_the_recipe_has_the_requirements_of_the_project():
    project = tomllib.loads(PROJECT.read_text())["project"]
    wanted = {re.sub(r"^([\w-]+)", r"\1 ", text) for text in project["dependencies"]}
    run = RECIPE.read_text().split("  run:\n")[1].split("\n\n")[0]
    assert {line.strip().removeprefix("- ") for line in run.splitlines()} == wanted | {
        f"python {project['requires-python']}"
    }


def test_help_names_the_address_of_the_documentation():
    assert tomllib.loads(PROJECT.read_text())["project"]["urls"]["Documentation"] == DOCS
    assert yaml.safe_load(CITATION.read_text())["url"] == DOCS


def test_every_file_has_the_version():
    assert yaml.safe_load(CITATION.read_text())["version"] == nearid.__version__
    assert f'set version = "{nearid.__version__}"' in RECIPE.read_text()


def test_the_release_has_one_date():
    version, date = re.search(r"^## \[([\d.]+)\] - ([\d-]+)$", (ROOT / "CHANGELOG.md").read_text(), re.M).groups()
    assert (version, date) == (nearid.__version__, yaml.safe_load(CITATION.read_text())["date-released"])


def test_the_citation_has_the_four_papers():
    told = yaml.safe_load(CITATION.read_text())
    assert told["cff-version"] == "1.2.0" and len(told["references"]) == 4
    for paper in told["references"]:
        assert paper["title"] and paper["url"].startswith("https://arxiv.org/abs/") and paper["year"] >= 2021
        assert all(author["family-names"] and author["given-names"] for author in paper["authors"])
