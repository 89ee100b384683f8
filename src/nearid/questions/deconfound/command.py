"""`nearid deconfound`."""

from nearid.show.command import Question

QUESTION = Question("nearid.questions.deconfound.run:deconfound", {"X": "X"}, required=("labels", "batches"))
