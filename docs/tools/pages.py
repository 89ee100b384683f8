"""Run the pages and copy the pictures that they save to where each page shows them.

    python docs/tools/pages.py                          every page
    python docs/tools/pages.py README.md docs/guide/score.md --write

With `--write`, a shown output (```text) that differs from what its block prints is replaced. One that agrees, up to the
tolerances of `docs/tools/outputs.py`, stays as it is.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from blocks import ROOT, blocks_of, inside, pages, pictures_of, run
from outputs import difference


def refresh(page: Path, write: bool) -> list[str]:
    """Run a page, copy its pictures and give the differences that remain.

    Parameters
    ----------
    page : Path
    write : bool
        Whether shown outputs that differ are replaced.

    Returns
    -------
    list of str
        One sentence for each output or picture that is not as the page shows it.
    """
    text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
    wrong, replaced = [], []
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        for block, printed in run(blocks_of(text, name), page.stem):
            if block.expected is not None and (different := difference(block.expected, printed)):
                wrong.append(f"{block.place}: {different}")
                replaced.append((block.span, printed.strip("\n")))
        for link in pictures_of(text):
            target, made = page.parent / link, Path(folder) / Path(link).name
            if made.exists():
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(made, target)
            else:
                wrong.append(f"{name}: no block saves {made.name}")
    if not write:
        return wrong
    for (start, end), printed in reversed(replaced):
        lines = "\n".join(line.rstrip() for line in printed.splitlines())
        text = f"{text[:start]}{lines}\n{text[end:]}"
    if replaced:
        page.write_text(text, encoding="utf-8")
    return [sentence for sentence in wrong if "no block saves" in sentence]


def main() -> None:
    parser = argparse.ArgumentParser(description="Run pages and copy the pictures that they save.")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: all")
    parser.add_argument("--write", action="store_true", help="replace shown outputs that differ")
    given = parser.parse_args()
    wrong = []
    for page in [path.resolve() for path in given.pages] or pages():
        print(page.relative_to(ROOT), file=sys.stderr)
        wrong += refresh(page, given.write)
    for sentence in wrong:
        print(sentence)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
