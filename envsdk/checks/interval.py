"""An interval for a share that was counted."""

from __future__ import annotations

from math import sqrt

_Z_95 = 1.959963984540054


def wilson(hits: int, n: int, *, z: float = _Z_95) -> tuple[float, float]:
    """Wilson's score interval for ``hits`` of ``n`` (E. B. Wilson, 1927); (0, 1) where nothing was counted."""
    if n == 0:
        return 0.0, 1.0
    share = hits / n
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    middle = share + z * z / (2 * n)
    scale = 1 + z * z / n
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
