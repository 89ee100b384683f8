"""The gallery: its runner, its stored pages, and the examples whose data are here, run and compared."""

import sys
from pathlib import Path

import pytest

from nearid.base.errors import InputError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "tools"))

gallery = pytest.importorskip("gallery")

EXAMPLES = gallery.examples()
TINY = """\
#: group = Two runs
#: needs = digits
# %% [markdown]
# # A title
#
# A question?

# %%
value = 2 + 2
print("two and two are", value)
value

# %% A square
class Square:
    def _repr_svg_(self):
        return "<svg/>"


Square()

# %% [markdown]
# The end.
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.py"
    path.write_text(TINY, encoding="utf-8")
    return path


def test_a_script_becomes_a_page_with_output_and_picture(tiny, tmp_path):
    page = gallery.run(gallery.read(tiny), tmp_path / "pictures")
    assert page.startswith("# A title\n\nA question?\n\n```{code-block} python\nvalue = 2 + 2\n")
    assert "```text\ntwo and two are 4\n4\n```" in page
    assert "![A square](pictures/tiny-1.svg)" in page
    assert (tmp_path / "pictures" / "tiny-1.svg").read_text() == "<svg/>\n"
    assert "The end.\n\n## Run it yourself\n\n{download}`Download this script <tiny.py>`" in page
    assert page.rstrip().splitlines()[-1].startswith("Run time: ")


def test_an_example_without_its_data_keeps_its_page_and_says_so(tiny, monkeypatch):
    tiny.write_text(TINY.replace("digits", "ensembles/ani_C.npz, torch"), encoding="utf-8")
    monkeypatch.setenv("NEARID_DATA", str(tiny.parent))
    monkeypatch.setattr(gallery, "find_spec", lambda name: None)
    lacking = gallery.read(tiny).missing()
    assert lacking == ["ensembles/ani_C.npz", "torch"]
    page = gallery.stored_note("# A title\n\nText.\n", lacking)
    assert page.startswith("# A title\n\n```{note}\nThis page shows stored output.")
    assert "`ensembles/ani_C.npz`, `torch`" in page
    assert page.endswith("\nText.\n")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("# # A title", "# A title", "must begin with a text cell"),
        ("Two runs", "Three", "needs a line '#: group"),
    ],
)
def test_a_script_in_another_form_is_refused(tiny, before, after, message):
    tiny.write_text(TINY.replace(before, after), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        gallery.read(tiny)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [("%% A square", "%%", "what the picture shows"), ("\nSquare()", "\nNone", "shows no picture")],
)
def test_a_picture_and_its_description_are_required(tiny, tmp_path, before, after, message):
    tiny.write_text(TINY.replace(before, after), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        gallery.run(gallery.read(tiny), tmp_path / "pictures")


def test_the_run_time_is_not_compared_and_the_output_is():
    page = "```text\nR2 0.50\n```\n\nRun time: 1.0 s.\n"
    assert gallery.compared(page, page.replace("1.0 s", "9.0 s")) is None
    assert gallery.compared(page, page.replace("0.50", "0.58")) == "the page has\n  R2 0.50\nprinted is\n  R2 0.58"


def test_a_picture_that_is_drawn_otherwise_than_the_stored_one_is_found(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "GALLERY", tmp_path / "stored")
    example, drawn = gallery.read(tiny), tmp_path / "pictures"
    page = gallery.run(example, tmp_path / "stored" / "pictures")
    (tmp_path / "stored" / "tiny.md").write_text(page, encoding="utf-8")
    assert gallery.run(example, drawn) and gallery.changed(example, page, drawn) is None
    (drawn / "tiny-1.svg").write_text("<svg><text>new</text></svg>", encoding="utf-8")
    assert gallery.changed(example, page, drawn) == "tiny-1.svg: printed, but not in the page: new"
    (drawn / "tiny-1.svg").rename(drawn / "tiny-2.svg")
    assert gallery.changed(example, page, drawn) == "tiny-2.svg is not stored"


def test_there_are_at_least_twelve_examples_with_pages_pictures_and_cards():
    assert len(EXAMPLES) >= 12
    index = (gallery.GALLERY / "index.md").read_text(encoding="utf-8")
    assert index == gallery.index(EXAMPLES)
    for example in EXAMPLES:
        page = (gallery.GALLERY / f"{example.name}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {example.title}\n")
        for cell in example.cells[1:]:
            assert cell.source in page, f"{example.name}: run python docs/tools/gallery.py {example.name}"
        assert all(part in page for part in ("**Data.**", "**Answer.**", "**Try next.**"))
        assert float(page.rpartition("Run time: ")[2].split()[0]) < 60
        assert example.question.endswith("?")
        assert f"pictures/{example.name}-1.svg" in page
        for file in {word.split(")")[0] for word in page.split("](pictures/")[1:]}:
            assert (gallery.GALLERY / "pictures" / file).read_text(encoding="utf-8").lstrip().startswith("<svg")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as the runner does
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_prints_what_is_stored(example):
    if lacking := example.missing():
        pytest.skip(f"missing: {', '.join(lacking)}")
    with gallery.surroundings():
        page = gallery.run(example, Path("pictures"))
        different = gallery.changed(example, page, Path("pictures"))
    assert different is None, f"Run python docs/tools/gallery.py {example.name}. {different}"
