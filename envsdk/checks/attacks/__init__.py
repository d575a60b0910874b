"""Attacks that agents have been seen to use, one file a kind: scenes that must not earn the full reward."""
