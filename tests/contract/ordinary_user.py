"""Run the conformance suite on bubblewrap as whoever calls this, and print its findings as JSON."""

import asyncio
import json
import os
import sys
from dataclasses import asdict

from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.conformance import run


async def main(names: list[str]) -> None:
    provider = open_provider("bubblewrap")
    try:
        image = await provider.ensure_image(None, BASE_IMAGE)
        findings = await run(provider, image, names)
    finally:
        await provider.close()
    print(json.dumps({"uid": os.geteuid(), "findings": [asdict(finding) for finding in findings]}))


asyncio.run(main(sys.argv[1:]))
