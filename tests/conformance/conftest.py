"""The case files hold tests of their own, which belong to verifiers and not to this project."""

collect_ignore = ["cases"]
