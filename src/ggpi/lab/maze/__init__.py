"""PointMaze: targets behind corners."""
