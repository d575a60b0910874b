"""pytest plugin of envsdk, registered under the entry-point group ``pytest11``.

Loaded by every pytest run in an environment where envsdk is installed, so importing it costs nothing and changes nothing.
"""

from __future__ import annotations
