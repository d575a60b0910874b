"""Discrete-event simulation of the scheduler's own decisions, for sizes that no machine here has."""
