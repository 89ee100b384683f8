"""WikiText-2 as numbers."""

import pytest

from nearid.base.errors import InputError
from nearid.lab.papers.common.wikitext import wikitext


def test_splits_share_a_vocabulary_and_what_is_learnt_is_not_held_out(corpora):
    text = wikitext("valid", 50)
    assert len(text.vocabulary) == 50
    for stream in (text.learnt, text.unseen):
        assert stream.min() >= 0 and stream.max() == 49 and (stream == 1).sum() == 400
    assert len(text.learnt) != len(text.unseen)


def test_without_the_text_it_is_said_how_to_get_it(home):
    wikitext.cache_clear()
    with pytest.raises(InputError, match="nearid data fetch wikitext2"):
        wikitext("train", 50)
