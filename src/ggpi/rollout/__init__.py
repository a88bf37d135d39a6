"""Following policies in an environment: data, switching policies, true futures."""
