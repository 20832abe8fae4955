"""Collision: shapes of bodies, and the distances between them."""
