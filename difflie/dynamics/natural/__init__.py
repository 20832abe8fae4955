"""A system in natural coordinates: the origin and the three directors of every moving body."""
