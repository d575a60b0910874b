"""The engine's stream headers are stripped whatever the pieces they arrive in."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from envsdk.sandboxes.docker_engine import Multiplexed


class Listener:
    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


def packed(stream: int, payload: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50)), max_size=6),
    st.lists(st.integers(1, 60), max_size=30),
)
def test_stdout_reaches_the_channel_and_stderr_does_not(parts: list[tuple[int, bytes]], cuts: list[int]) -> None:
    listener = Listener()
    stream = Multiplexed(listener)  # type: ignore[arg-type]
    rest = b"".join(packed(*part) for part in parts)
    for size in [*cuts, len(rest) + 1]:
        stream.data_received(rest[:size])
        rest = rest[size:]
    assert listener.data == b"".join(payload for kind, payload in parts if kind == 1)
    assert bytes(stream.stderr) == b"".join(payload for kind, payload in parts if kind == 2)


def test_it_is_an_asyncio_protocol() -> None:
    assert issubclass(Multiplexed, asyncio.Protocol)
