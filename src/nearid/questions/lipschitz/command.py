"""`nearid lipschitz`: does a decoder preserve distances?"""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.lipschitz.run:lipschitz",
    {"model": "MODEL", "latents": "[LATENTS]"},
    hidden=("name",),
    page="guide/lipschitz",
    examples=(
        "nearid lipschitz decoder.pt latents.npy --factory nets:decoder",
        "nearid lipschitz vae.pt --prefix decoder. --normal 500 --report l.html",
    ),
)
