"""Objects and arrays on disk: written atomically, read within bounds, never executed."""
