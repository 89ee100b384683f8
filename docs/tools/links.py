"""Check the links of a built site: `python docs/tools/links.py docs/_build/html`.

Every link to a file and every anchor must lead somewhere inside the folder. Nothing that a browser loads by itself
(scripts, styles, fonts, pictures, frames) may come from another host, so that the site works offline. A plain link to
another host is allowed and is not tried.
"""

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address a browser loads without a click. Of <link> only some kinds are loaded.
LOADED = {"src", "srcset", "poster", "data", "background"}
LINKED = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest", "apple-touch-icon"}
CSS = re.compile(r"@import\s+[\"']([^\"']+)[\"']|url\(\s*[\"']?([^\"')]+?)[\"']?\s*\)")
SCRIPT = re.compile(r"(?:fetch|importScripts|import)\(\s*[\"'`]((?:https?:)?//[^\"'`]+)")


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        given = {key: value or "" for key, value in attributes}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        for key, value in given.items():
            if key == "srcset":
                self.loaded += [part.split()[0] for part in value.split(",") if part.strip()]
            elif key in LOADED or (key in ("href", "xlink:href") and tag in ("use", "image")):
                self.loaded.append(value)
            elif key == "style":
                self.loaded += addresses(CSS, value)
            elif key == "href" and tag == "link" and LINKED & set(given.get("rel", "").split()):
                self.loaded.append(value)
            elif key == "href":
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.loaded += addresses(CSS, data)
        elif self._inside == "script":
            self.loaded += addresses(SCRIPT, data)


def addresses(pattern: re.Pattern[str], text: str) -> list[str]:
    """The addresses that a pattern finds in a style or a script."""
    return [next(filter(None, found.groups())) for found in pattern.finditer(text)]


def broken(site: Path) -> list[str]:
    """One sentence for each link, anchor or loaded file of a built site that is not there."""
    site = site.resolve()
    page = cache(lambda path: Page(path.read_text(encoding="utf-8")))
    sentences = []
    for file in sorted(site.rglob("*")):
        links: list[str] = []
        if file.suffix == ".html" and "_static" not in file.relative_to(site).parts:  # a template of the theme is there
            links, loaded = page(file).links, page(file).loaded
        elif file.suffix in (".css", ".svg"):
            loaded = addresses(CSS, file.read_text(encoding="utf-8"))
        elif file.suffix in (".js", ".mjs"):
            # A script names files from the page that runs it. Only other hosts can be told here.
            loaded = addresses(SCRIPT, file.read_text(encoding="utf-8"))
        else:
            continue
        name = file.relative_to(site)
        for address in dict.fromkeys(loaded):
            told = urlsplit(address)
            if told.netloc:
                sentences.append(f"{name} loads {address} from another host.")
            elif told.path and told.scheme != "data" and not inside(site, file, told.path):
                sentences.append(f"{name} loads {address}, which is not there.")
        for address in dict.fromkeys(links):
            told = urlsplit(address)
            if told.scheme or told.netloc:
                continue
            target = inside(site, file, told.path)
            if target is None:
                sentences.append(f"{name} links to {address}, which is not there.")
            elif told.fragment and target.suffix == ".html" and unquote(told.fragment) not in page(target).anchors:
                sentences.append(f"{name} links to {address}, but there is no such anchor.")
    return sentences


def inside(site: Path, file: Path, path: str) -> Path | None:
    """The file of the site that a path leads to from another file; None where there is none. A folder has no page."""
    target = (file.parent / unquote(path)).resolve() if path else file
    return target if target.is_file() and target.is_relative_to(site) else None


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0], "index.html").is_file():
        print("Name the folder of a built site: python docs/tools/links.py docs/_build/html", file=sys.stderr)
        return 2
    sentences = broken(Path(arguments[0]))
    print(*sentences, sep="\n", end="\n" if sentences else "", file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
