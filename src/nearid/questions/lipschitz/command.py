"""`nearid lipschitz`: does a decoder preserve distances?"""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.lipschitz.run:lipschitz",
    {"model": "MODEL", "latents": "[LATENTS]"},
    summary="Measure how much a decoder changes distances: its local bi-Lipschitz constants.",
    hidden=("name",),
    page="guide/lipschitz",
    examples=(
        "nearid lipschitz decoder.pt latents.npy --factory nets:decoder",
        "nearid lipschitz vae.pt --prefix decoder. --normal 500 --report l.html",
    ),
    texts={
        "model": "The decoder: a file of weights (.safetensors, .pt, .pth, .th, .ckpt) together with --factory, or "
        "package.module:function that returns the decoder. Each output row must depend only on its own input row.",
    },
)
