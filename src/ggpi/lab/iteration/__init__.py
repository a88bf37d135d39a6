"""Policy iteration with learned models."""
