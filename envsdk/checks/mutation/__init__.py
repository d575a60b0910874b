"""Variations of what the oracle leaves: wrong ones that must not pass, right ones that must."""
