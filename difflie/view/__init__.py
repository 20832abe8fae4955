"""Figures and reports of results: arrays, names and plain tables in, figures and files out."""
