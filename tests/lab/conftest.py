"""A toy experiment that tells which of its cells have run."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from canonical_files import write_corpora
from toy_experiments import TOY
from toy_results import Inline


@pytest.fixture
def toy(tmp_path):
    """A quick experiment of two rows; gives it and the cells that have run, as a function."""
    log = tmp_path / "log"
    defaults = replace(TOY.defaults, log=str(log))

    def ran():
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(lines)

    return replace(TOY, defaults=defaults), ran


@pytest.fixture
def inline(monkeypatch):
    """Cells run in this process: quicker, where the processes are not what is tested."""
    monkeypatch.setattr("nearid.lab.framework.run.open_engine", lambda engine: nullcontext(Inline()))


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """Small texts in the place of WikiText-2 and the treebank."""
    from nearid.lab.papers.common.wikitext import wikitext
    from nearid.lab.papers.roeder.gpt2_states import treebank

    write_corpora(tmp_path / "corpora")
    monkeypatch.setenv("NEARID_DATA", str(tmp_path / "corpora"))
    for cached in (treebank, wikitext):
        cached.cache_clear()
    yield
    for cached in (treebank, wikitext):
        cached.cache_clear()
