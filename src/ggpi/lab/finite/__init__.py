"""The figures and examples of finite MDPs."""
