"""The agent: plans over switching policies for any reward."""
