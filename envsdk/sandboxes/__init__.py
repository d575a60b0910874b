"""Sandboxes: one protocol (`envsdk.sandboxes.base`), back ends found by name, and the suite that judges them.

async with contextlib.aclosing(open_provider()) ...   # docker where an engine answers, else bubblewrap
"""

from envsdk.sandboxes.choose import open_provider

__all__ = ["open_provider"]
