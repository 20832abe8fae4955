"""Roots and small linear systems inside a time step, with implicit derivatives."""
