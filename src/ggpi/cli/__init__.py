"""The commands of `ggpi`."""
