"""Learning geometric horizon models from transitions."""
