"""The check of the built site finds every kind of broken link, and nothing else."""

import links
import pytest

GOOD = """<!doctype html>
<html><head>
<link rel="stylesheet" href="_static/site.css?digest=1">
<link rel="canonical" href="https://example.org/index.html">
<script src="_static/site.js"></script>
<style>body { background: url(data:image/png;base64,AA) }</style>
</head><body id="top">
<a href="https://example.org/elsewhere">another host</a>
<a href="mailto:somebody@example.org">mail</a>
<a href="#top">up</a>
<a href="guide/page%20one.html#a-heading">a heading</a>
<a href="_downloads/results.txt">a file</a>
<img src="_images/a.svg" srcset="_images/a.svg 1x, _images/a.svg 2x">
</body></html>
"""


@pytest.fixture
def site(tmp_path):
    for name, text in {
        "index.html": GOOD,
        "guide/page one.html": '<h2 id="a-heading">Words</h2><a href="../index.html#top">back</a>',
        "_downloads/results.txt": "R2 .9",
        "_images/a.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
        "_static/site.css": '@import "other.css"; @font-face { src: url("fonts/a.woff2?v=1") }',
        "_static/other.css": "",
        "_static/fonts/a.woff2": "",
        "_static/site.js": 'location = "https://example.org"; fetch("searchindex.json")',
        "_static/template.html": '<a href="{{ pathto(page) }}">',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path.parent / "outside.html").touch()
    return tmp_path


def test_a_whole_site_passes(site, capsys):
    assert links.broken(site) == []
    assert links.main([str(site)]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("index.html", "page%20one.html", "page.html", "links to guide/page.html#a-heading, which is not there"),
        ("index.html", "#a-heading", "#another", "no such anchor"),
        ("index.html", '"#top"', '"#bottom"', "links to #bottom, but there is no such anchor"),
        ("index.html", "_downloads/results.txt", "_downloads/", "links to _downloads/, which is not there"),
        ("index.html", "_downloads/results.txt", "../outside.html", "links to ../outside.html, which is not there"),
        ("index.html", 'src="_images/a.svg"', 'src="_images/b.svg"', "loads _images/b.svg, which is not there"),
        ("index.html", "a.svg 2x", "c.svg 2x", "loads _images/c.svg, which is not there"),
        ("index.html", "_static/site.js", "https://example.org/site.js", "loads https://example.org/site.js from"),
        ("index.html", "_static/site.css?", "//example.org/site.css?", "from another host"),
        ("index.html", "data:image/png;base64,AA", "https://example.org/a.png", "from another host"),
        ("index.html", "</body>", "<script>import('https://example.org/m.js')</script>", "from another host"),
        ("guide/page one.html", "index.html#top", "index.html#end", "guide/page one.html links to"),
        ("_static/site.css", "other.css", "third.css", "_static/site.css loads third.css, which is not there"),
        ("_static/site.css", "fonts/", "https://example.org/", "from another host"),
        ("_static/site.js", "searchindex.json", "https://example.org/index.json", "from another host"),
    ],
)
def test_what_is_broken_is_named(site, capsys, file, before, after, told):
    text = (site / file).read_text(encoding="utf-8")
    assert before in text
    (site / file).write_text(text.replace(before, after), encoding="utf-8")
    (sentence,) = links.broken(site)
    assert told in sentence
    assert links.main([str(site)]) == 1
    assert sentence in capsys.readouterr().err


def test_a_folder_without_a_site_is_refused(tmp_path, capsys):
    assert links.main([str(tmp_path)]) == 2
    assert "Name the folder of a built site" in capsys.readouterr().err
