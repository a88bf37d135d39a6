"""The exception of unreadable files."""

import ggpi


def test_a_file_error_names_file_field_and_problem():
    error = ggpi.FileError("models/about.json", "expected a number, got 'x'", field="alpha")
    assert str(error) == "models/about.json: alpha: expected a number, got 'x'"
    assert isinstance(error, ValueError)
    assert str(ggpi.FileError("a.npz", "is empty")) == "a.npz: is empty"
