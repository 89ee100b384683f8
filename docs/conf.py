"""The site: `make docs` builds docs/ to docs/_build/html, which works offline."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "tools")]

from gallery import GALLERY, read, stored_note  # noqa: E402, from tools/

from nearid import __version__  # noqa: E402, from this folder's own source

project = "nearid"
author = "The nearid developers"
copyright = "the nearid developers, Apache-2.0"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "commands",
    "mathml",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "tools", "results", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline", "attrs_block"]
# Headings down to the third level can be linked to: page.md#a-heading.
myst_heading_anchors = 3

autosummary_generate = True
# Types stand in the Parameters of each docstring, in words.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "nearid"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "nearid"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "benchmarks": [], "reproduce": []}
# `name` in a docstring is code.
default_role = "code"


def _escape(app, what, name, obj, options, lines):
    """Docstrings are plain text, also in a terminal: `mean_` and |A| outside backticks are no references."""
    example = False
    for k, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example and not line.lstrip().startswith(".. "):
            parts = re.split(r"(`+[^`]*`+)", line)
            parts[::2] = [re.sub(r"(?<=\w)(?<!\\)_(?!\w)|\|", r"\\\g<0>", part) for part in parts[::2]]
            lines[k] = "".join(parts)


def _not_ours(app, what, name, obj, skip, options):
    """Methods that a class has from scikit-learn or torch are left to their documentation."""
    module = getattr(getattr(obj, "fget", obj), "__module__", None)
    return True if module and not module.startswith("nearid") else None


def _links(app, relative_path, parent_docname, content):
    """Links of the included CHANGELOG and CONTRIBUTING lead to pages of the site, or else to the repository."""
    for name, page in (("CONTRIBUTING.md", "contributing.md"), ("CHANGELOG.md", "changelog.md")):
        content[0] = content[0].replace(f"]({name})", f"]({page})")
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
        content[0] = content[0].replace(f"]({name})", f"](https://github.com/nearid/nearid/blob/main/{name})")


def _stored(app, docname, source):
    """The page of an example that cannot run here says that its output is stored."""
    script = GALLERY / f"{docname.removeprefix('gallery/')}.py"
    if docname.startswith("gallery/") and script.exists():
        app.env.note_reread()  # data may come and go between two builds
        if lacking := read(script).missing():
            source[0] = stored_note(source[0], lacking)


def setup(app):
    app.connect("source-read", _stored)
    app.connect("autodoc-process-docstring", _escape, priority=900)
    app.connect("autodoc-skip-member", _not_ours)
    app.connect("include-read", _links)
