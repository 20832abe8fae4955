"""Figures of motions."""
