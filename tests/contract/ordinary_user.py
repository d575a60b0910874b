"""Run the conformance suite on bubblewrap as whoever calls this, and services; print what was found as JSON."""

import asyncio
import json
import os
import sys
from dataclasses import asdict
from typing import Any

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.conformance import run


async def main(names: list[str]) -> None:
    provider = open_provider("bubblewrap")
    try:
        image = await provider.ensure_image(None, BASE_IMAGE)
        findings = await run(provider, image, names)
        served = await services(provider, image)
    finally:
        await provider.close()
    print(json.dumps({"uid": os.geteuid(), "findings": [asdict(finding) for finding in findings], "served": served}))


async def services(provider: Any, image: str) -> list[str]:
    """What two services that use one port say to a sandbox on their network."""
    network = await provider.open_network(["a", "b"])
    spec = SandboxSpec(image=image, network="internal", join=network)
    serve = "cd /tmp; echo $N > index.html; exec python3 -m http.server 80"
    boxes = [await provider.acquire_named(spec, name, timeout_s=30.0) for name in "ab"]
    running = [asyncio.ensure_future(box.exec(serve, env={"N": name})) for box, name in zip(boxes, "ab", strict=True)]
    box = await provider.acquire(spec)
    ask = "import urllib.request as u; print(u.urlopen('http://{}', timeout=5).read().decode(), end='')"
    said = []
    for name in "ab":
        waiting = f'until python3 -c "{ask.format(name)}" 2>/dev/null; do sleep 0.1; done'
        said.append((await box.exec(waiting, timeout_s=20)).stdout.decode().strip())
    await asyncio.gather(*(each.close() for each in [*boxes, box]))
    await asyncio.gather(*running)
    await provider.close_network(network)
    return said


asyncio.run(main(sys.argv[1:]))
