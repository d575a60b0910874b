"""A process that opens sandboxes, networks and snapshots, says so, and waits to be killed."""

import asyncio
import json
import sys

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.owner import this_owner


async def main(name: str) -> None:
    provider = open_provider(name)
    image = await provider.ensure_image(None, BASE_IMAGE)
    spec = SandboxSpec(image=image)
    boxes = [await provider.acquire(spec) for _ in range(2)]
    await boxes[0].exec("echo x > /app/x")
    boxes += await boxes[0].fork(1)
    network = await provider.open_network(["web"])  # type: ignore[attr-defined]
    boxes.append(await provider.acquire(spec.model_copy(update={"network": "internal", "join": network})))
    await provider.prewarm(spec.model_copy(update={"user": "root"}), 1)
    running = [asyncio.ensure_future(box.exec("setsid sleep 98765 & sleep 98765")) for box in boxes]
    await asyncio.sleep(0.3)
    print(json.dumps({"owner": str(this_owner()), "ids": [box.id for box in boxes]}), flush=True)
    await asyncio.gather(*running)


asyncio.run(main(sys.argv[1]))
