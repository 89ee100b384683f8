"""`nearid heads`: do the heads of two models predict the map between their features?"""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.heads.run:compare_heads",
    {"head1": "HEAD1", "head2": "HEAD2", "features1": "FEATURES1", "features2": "FEATURES2"},
    summary="Compare the heads of two models: how well do they predict the linear map between the features?",
    hidden=("names",),
    paths="head1",
    page="guide/heads",
    examples=(
        "nearid heads head1.npy head2.npy features1.npy features2.npy",
        "nearid heads a.pt:fc.weight b.pt:fc.weight fa.npy fb.npy --pairs",
    ),
    texts={
        "head1": "Vectors of the classes, tokens or samples y: the weights of a classifier, or the output embeddings "
        "of a language model.",
        "features1": "Features that the first head reads, one row per input.",
        "features2": "Features that the second head reads, for the same inputs. If both files have ids, rows are "
        "paired by id, otherwise by position.",
        "biases": "Biases of the logits: own (the entry x.bias beside x.weight of a checkpoint), none, or two files "
        "separated by a comma.",
    },
)
