"""The test suite; CONTRIBUTING.md says what goes where."""
