"""Corrections: what is done to the loss because of lag and mismatch. One file a rule family; `rule` picks by name."""
