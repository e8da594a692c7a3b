"""Training of the built-in encoder, pure: settings, training, saving, and the measure on held-out phrases."""
