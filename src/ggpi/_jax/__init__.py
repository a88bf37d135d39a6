"""Helpers for JAX: jit, random numbers, alias tables, networks, batches and checks of shapes."""
