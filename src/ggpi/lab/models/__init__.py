"""Learned models compared with the truth."""
