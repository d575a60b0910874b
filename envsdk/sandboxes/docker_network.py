"""Internal networks of the Docker engine: one per episode with services, from a range of our own.

The engine's own address pool holds about thirty bridge networks; ours are /28 blocks of 10.213.0.0/16, four thousand of
them, chosen at random and retried where another process took the same one.
"""

from __future__ import annotations

import ipaddress
import secrets

import docker.types

from envsdk.errors import SandboxError
from envsdk.sandboxes.docker_engine import Engine, new_labels

_RANGE = ipaddress.ip_network("10.213.0.0/16")
_PREFIX_BITS = 28
_TRIES = 20


async def open_network(engine: Engine) -> str:
    """Id of a new bridge network without a way out. Raises `SandboxError`."""
    blocks = 1 << (_PREFIX_BITS - _RANGE.prefixlen)
    for attempt in range(_TRIES):
        base = int(_RANGE.network_address) + secrets.randbelow(blocks) * (1 << (32 - _PREFIX_BITS))
        block = ipaddress.ip_network((base, _PREFIX_BITS))
        ipam = docker.types.IPAMConfig(pool_configs=[docker.types.IPAMPool(subnet=str(block))])
        try:
            made = await engine.call(
                engine.api.create_network,
                f"envsdk-{secrets.token_hex(6)}",
                driver="bridge",
                internal=True,
                ipam=ipam,
                labels=new_labels(kind="network"),
            )
        except SandboxError as error:
            if error.code != "engine_refused" or "overlap" not in error.message or attempt == _TRIES - 1:
                raise
            continue
        return str(made["Id"])
    raise AssertionError("unreachable")


async def close_network(engine: Engine, network: str) -> None:
    """Remove a network whose containers are gone; one that is gone already is fine."""
    try:
        await engine.call(engine.api.remove_network, network)
    except SandboxError as error:
        if error.code != "no_such_object":
            raise
