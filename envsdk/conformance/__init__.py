"""Conformance: case files with right answers, and the judges of them."""
