"""OGBench's mazes, solved without training for any goal."""
