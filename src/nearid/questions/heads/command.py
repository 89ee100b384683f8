"""`nearid heads`: do two models' heads tell the map between their features?"""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.heads.run:compare_heads",
    {"head1": "HEAD1", "head2": "HEAD2", "features1": "FEATURES1", "features2": "FEATURES2"},
    hidden=("names",),
    paths="head1",
)
