"""Metadata that stands in several files is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from jinja2 import Template

import nearid
from nearid.show.help import DOCS

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "pyproject.toml"
RECIPE = ROOT / "conda.recipe" / "meta.yaml"
CITATION = ROOT / "CITATION.cff"
pytestmark = pytest.mark.skipif(not RECIPE.exists(), reason="an installed copy has no recipe")


def conda(requirement):
    return re.sub(r"^([\w-]+)", r"\1 ", requirement)


def test_the_recipe_renders_and_says_what_the_project_says():
    told = tomllib.loads(PROJECT.read_text())
    project, recipe = told["project"], yaml.safe_load(Template(RECIPE.read_text()).render(PYTHON="python"))
    python = f"python {project['requires-python']}"
    assert recipe["package"] == {"name": project["name"], "version": nearid.__version__}
    assert set(recipe["requirements"]["run"]) == {python, *map(conda, project["dependencies"])}
    assert set(recipe["requirements"]["host"]) == {python, "pip", *map(conda, told["build-system"]["requires"])}
    assert recipe["build"]["entry_points"] == [f"{name} = {place}" for name, place in project["scripts"].items()]
    about, urls = recipe["about"], project["urls"]
    assert (about["home"], about["doc_url"]) == (urls["Homepage"], urls["Documentation"])
    assert (about["license"], [about["license_file"]]) == (project["license"], project["license-files"])


def test_help_names_the_address_of_the_documentation():
    assert tomllib.loads(PROJECT.read_text())["project"]["urls"]["Documentation"] == DOCS
    assert yaml.safe_load(CITATION.read_text())["url"] == DOCS


def test_the_citation_has_the_version():
    assert yaml.safe_load(CITATION.read_text())["version"] == nearid.__version__


def test_the_release_has_one_date():
    version, date = re.search(r"^## \[([\d.]+)\] - ([\d-]+)$", (ROOT / "CHANGELOG.md").read_text(), re.M).groups()
    assert (version, date) == (nearid.__version__, yaml.safe_load(CITATION.read_text())["date-released"])


def test_the_citation_has_the_four_papers():
    told = yaml.safe_load(CITATION.read_text())
    assert told["cff-version"] == "1.2.0" and len(told["references"]) == 4
    for paper in told["references"]:
        assert paper["title"] and paper["url"].startswith("https://arxiv.org/abs/") and paper["year"] >= 2021
        assert all(author["family-names"] and author["given-names"] for author in paper["authors"])
