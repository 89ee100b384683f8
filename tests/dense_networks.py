"""Networks for tests of autoencoders whose inputs are rows."""

from dataclasses import dataclass

from nearid.lab.models.encoders import mlp


@dataclass(frozen=True)
class Dense:
    """Multilayer perceptrons; the decoder mirrors the encoder."""

    features: int
    widths: tuple[int, ...] = (256, 256)

    def encoder(self, outputs):
        return mlp(self.features, outputs, self.widths)

    def decoder(self, inputs):
        return mlp(inputs, self.features, self.widths[::-1])
