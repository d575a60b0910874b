"""What a check works with: a provider, an image, and sandboxes that are closed after it."""

from __future__ import annotations

import asyncio
from typing import Any

from envsdk.sandboxes.base import ExecResult, Sandbox, SandboxProvider, SandboxSpec


class SkipCheckError(Exception):
    """The back end does not claim what the check asks for; the text says what."""


class Bench:
    """Sandboxes for one check. ``claims`` are names of optional abilities that the provider declares."""

    def __init__(self, provider: SandboxProvider, image: str) -> None:
        self.provider = provider
        self.image = image
        self._boxes: list[Sandbox] = []

    async def box(self, **spec: Any) -> Sandbox:
        """A new sandbox; keywords are fields of `SandboxSpec`."""
        box = await self.provider.acquire(SandboxSpec(image=self.image, **spec))
        return self.adopt(box)

    def adopt(self, box: Sandbox) -> Sandbox:
        """Close this one, too, at the end."""
        self._boxes.append(box)
        return box

    async def close(self) -> None:
        """Close all sandboxes of the check."""
        await asyncio.gather(*(box.close() for box in self._boxes))


def expect(condition: object, what: str, seen: object = "") -> None:
    """An assertion that says what was seen."""
    if not condition:
        raise AssertionError(f"{what}; seen: {seen!r:.500}")


def expect_output(result: ExecResult, stdout: bytes, what: str) -> None:
    """The command ended well and wrote exactly this."""
    expect(result.ok and result.stdout == stdout, what, result)
