"""Sandboxes: the protocol, its back ends, and the suite that proves them."""
