"""`nearid lipschitz`: does a decoder preserve distances?"""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.lipschitz.run:lipschitz", {"model": "MODEL", "latents": "[LATENTS]"}, hidden=("name",)
)
