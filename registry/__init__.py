"""A database of tasks with measured difficulty: queries, calibration, saturation, versioned task sets.

`registry.client.open_registry` is the door; everything else is a room behind it.
"""
