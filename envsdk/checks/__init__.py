"""Checks: questions asked of a verifier before it may teach."""
