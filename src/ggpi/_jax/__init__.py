"""What JAX lacks for this library: compiled functions, random numbers, alias tables, networks, checks of shapes."""
