"""Images of known factors: flat sprites, solids in a room, a moving and growing square, masks that move in time."""
