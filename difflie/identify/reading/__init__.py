"""Logs as columns of numbers: text, archives, data frames and bags; names, units, expressions."""
