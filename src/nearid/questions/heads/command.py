"""`nearid heads`: do the heads of two models predict the map between their features?"""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.heads.run:compare_heads",
    {"head1": "HEAD1", "head2": "HEAD2", "features1": "FEATURES1", "features2": "FEATURES2"},
    hidden=("names",),
    paths="head1",
    page="guide/heads",
    examples=(
        "nearid heads head1.npy head2.npy features1.npy features2.npy",
        "nearid heads a.pt:fc.weight b.pt:fc.weight fa.npy fb.npy --pairs",
    ),
)
