"""The kept command channel: one long-lived link to the helper inside a sandbox, many commands at once.

The owner holds the other end of the helper's stdin and stdout: the engine's attach stream, or a socket pair. No engine
call is made per command. Exit codes, signals, timeouts and byte counts are the helper's, which runs as the sandbox's
first process and which no command can write to, read from or kill. When the link breaks, every command in flight ends
with ``channel_lost``; the helper in turn kills all it started when its owner goes away.

Not promised: commands survive a broken link (they do not).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import cast

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import ExecResult
from envsdk.sandboxes.frames import (
    CHUNK_BYTES,
    NONCE_BYTES,
    OPEN_INPUT,
    End,
    FrameError,
    Op,
    Parser,
    frame,
    parse_end,
    parse_peek,
    start_payload,
    text,
)

OutputSink = Callable[[int, bytes], None]
_GRACE_S = 15.0
_NO_USER, _NO_START = 1, 3
_NO_WORKDIR = 2


class _Pending:
    """A request in flight: what it wrote so far (a listener keeps it, if there is one), and what its caller awaits."""

    __slots__ = ("done", "err", "out", "received", "room", "sink", "started")

    def __init__(self, loop: asyncio.AbstractEventLoop, sink: OutputSink | None = None) -> None:
        self.done: asyncio.Future[End | bytes | None] = loop.create_future()
        self.out: list[bytes] = []
        self.err: list[bytes] = []
        self.received = 0
        self.room = asyncio.Event()  # for a piece of input
        self.room.set()
        self.sink = sink
        self.started = loop.time()

    def finish(self, value: End | bytes | None) -> None:
        self.room.set()
        if not self.done.done():
            self.done.set_result(value)


class Channel(asyncio.Protocol):
    """The owner's end. Use from one event loop; any number of `run` may be in flight."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._parser = Parser(self._nonce)
        self._pending: dict[int, _Pending] = {}
        self._transport: asyncio.WriteTransport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._next = 1
        self.lost: str | None = None

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the link to the sandbox broke: {exc or 'closed at the other end'}")

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        try:
            for kind, number, payload in self._parser.feed(data):
                self._dispatch(kind, number, payload)
        except FrameError as error:
            self._fail(str(error))
            self.close()

    def _dispatch(self, kind: int, number: int, payload: bytes) -> None:
        pending = self._pending.get(number)
        if pending is None:
            return
        if kind == ord("O") or kind == ord("E"):
            pending.received += len(payload)
            if pending.sink is not None:
                pending.sink(1 if kind == ord("O") else 2, payload)
            else:
                (pending.out if kind == ord("O") else pending.err).append(payload)
        elif kind == ord("F"):
            pending.room.set()
        else:
            pending.finish(parse_end(payload) if kind == ord("X") else payload)

    def _fail(self, why: str) -> None:
        self.lost = self.lost or why
        self._may_write.set()
        for pending in self._pending.values():
            pending.finish(None)

    def _write(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        if self._transport is not None and self.lost is None:
            self._transport.write(frame(self._nonce, kind, number, payload))

    # the sandbox's side

    def close(self) -> None:
        """Let go of the link; the helper ends, and everything it started with it."""
        self.lost = self.lost or "the channel was closed"
        if self._transport is not None:
            self._transport.close()

    async def retire(self, *, timeout_s: float = 2.0) -> bool:
        """End every process inside, then let go of the link; whether the helper said that all are gone.

        Commands in flight end with ``channel_lost``: they did not end by themselves.
        """
        for pending in self._pending.values():
            pending.finish(None)
        is_quiet = await self._ask(b"A", b"", timeout_s) is not None
        self.close()
        return is_quiet

    async def hello(self, workdir: str, user: str, *, timeout_s: float) -> bool:
        """Meet the helper and make the working folder; returns whether the image has a shell.

        Raises `SandboxError` with code ``channel_lost``, ``start_timeout``, ``unknown_user`` or ``bad_workdir``.
        """
        answer = await self._ask(b"H", text(workdir) + text(user), timeout_s)
        if answer is None:
            code = "channel_lost" if self.lost else "start_timeout"
            raise SandboxError(
                f"the sandbox did not answer: {self.lost or f'silent for {timeout_s:.0f} s'}",
                code=code,
                hint="raise acquire_s in the budget, or lower the concurrency: starts share the machine",
            )
        if not answer[0]:
            raise SandboxError(
                f"the image has no user {user!r}",
                code="unknown_user",
                hint="name one that the image defines, or add it in the Dockerfile",
            )
        if answer[0] == _NO_WORKDIR:
            raise SandboxError(
                f"the work folder {workdir} is not there and cannot be made",
                code="bad_workdir",
                hint="name one that is a folder, or that can be made in the image",
            )
        return bool(answer[1])

    async def peek(self, paths: Sequence[str], *, timeout_s: float = 5.0) -> list[bytes | None]:
        """Contents of kernel files inside, read by the helper without starting a process; `None` where unreadable."""
        answer = await self._ask(b"P", b"".join(text(path) for path in paths), timeout_s)
        return parse_peek(answer) if answer is not None else [None] * len(paths)

    async def ping(self, *, timeout_s: float = 10.0) -> bool:
        """Whether the helper answers; it starts nothing for that."""
        return self.lost is None and await self._ask(b"P", b"", timeout_s) is not None

    async def kill_all(self, *, timeout_s: float = 10.0) -> int:
        """Kill every process but the helper; returns how many ran. Raises `SandboxError` where the link is broken."""
        answer = await self._ask(b"A", b"", timeout_s)
        if answer is None:
            raise SandboxError(
                f"could not kill the sandbox's processes: {self.lost or 'no answer'}",
                code="channel_lost",
                hint="what it holds is not to be trusted: take another, which the provider does by itself",
            )
        return int.from_bytes(answer, "little")

    async def _ask(self, kind: bytes, payload: bytes, timeout_s: float) -> bytes | None:
        number, pending = self._open(None)
        try:
            self._write(kind, number, payload)
            if self.lost is not None:
                return None
            async with asyncio.timeout(timeout_s):
                return cast("bytes | None", await pending.done)
        except TimeoutError:
            return None
        finally:
            self._pending.pop(number, None)

    def _open(self, sink: OutputSink | None) -> tuple[int, _Pending]:
        number = self._next
        self._next += 1
        pending = self._pending[number] = _Pending(self._loop, sink)
        return number, pending

    async def run(
        self,
        op: Op,
        argv: Sequence[str],
        *,
        user: str,
        cwd: str = "",
        env: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        stdin: bytes = b"",
        feed: AsyncIterable[bytes] | None = None,
        timeout_s: float = 60.0,
        output_cap_bytes: int = 1 << 20,
        on_output: OutputSink | None = None,
    ) -> ExecResult:
        """Run one child to its end. Cancelling the caller kills the child's process tree.

        ``feed`` is input that goes on while the child runs, in place of ``stdin``; more is asked for as it is read.
        What ``on_output`` hears is not in the result.

        Raises `SandboxError` (``unknown_user``, ``cannot_start``) where it never ran.
        """
        number, pending = self._open(on_output)
        items = env.items() if isinstance(env, Mapping) else env
        end: End | None = None
        guard = self._loop.call_later(timeout_s + _GRACE_S, pending.finish, None)
        feeding: asyncio.Future[None] | None = None
        try:
            payload = start_payload(
                op,
                argv,
                user=user,
                cwd=cwd,
                env=items,
                timeout_s=timeout_s,
                output_cap_bytes=output_cap_bytes,
                stdin_bytes=OPEN_INPUT if feed is not None or len(stdin) > CHUNK_BYTES else len(stdin),
            )
            self._write(b"S", number, payload)
            if feed is not None or len(stdin) > CHUNK_BYTES:
                feeding = asyncio.ensure_future(self._feed(number, pending, feed or _one(stdin)))
            elif stdin:
                await self._may_write.wait()
                self._write(b"D", number, stdin)
            if self.lost is None:
                end = cast("End | None", await pending.done)
        except asyncio.CancelledError:
            self._write(b"K", number)
            raise
        finally:
            guard.cancel()
            self._pending.pop(number, None)
            if feeding is not None:
                feeding.cancel()
        if end is None:
            self._write(b"K", number)
        if feeding is not None and feeding.done() and not feeding.cancelled() and (broke := feeding.exception()):
            raise broke  # what the child made of half its input says less
        return _result(pending, end, self._loop.time() - pending.started, user)

    async def _feed(self, number: int, pending: _Pending, feed: AsyncIterable[bytes]) -> None:
        try:
            async for data in feed:
                for at in range(0, len(data), CHUNK_BYTES):
                    await pending.room.wait()
                    await self._may_write.wait()
                    if pending.done.done():
                        return
                    pending.room.clear()
                    self._write(b"D", number, data[at : at + CHUNK_BYTES])
        finally:
            self._write(b"D", number)


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _result(pending: _Pending, end: End | None, elapsed_s: float, user: str) -> ExecResult:
    out, err = b"".join(pending.out), b"".join(pending.err)
    if end is None:
        return ExecResult(
            exit_code=None, stdout=out, stderr=err, channel_lost=True, total_bytes=pending.received, seconds=elapsed_s
        )
    if end.how == 2:
        stage, number = end.code >> 16, end.code & 0xFFFF
        if stage == _NO_USER:
            raise SandboxError(f"cannot run as user {user!r} (errno {number})", code="unknown_user")
        if stage != _NO_START:
            raise SandboxError(
                f"the command could not be set up (errno {number})",
                code="cannot_start",
                hint="see that the folder it is to run in exists, and may be entered by its user",
            )
        # No process could be made: the sandbox's own limits, as a shell would report them.
        err += f"envsdk: cannot start a process (errno {number})\n".encode()
        return ExecResult(exit_code=126, stdout=out, stderr=err, total_bytes=pending.received, seconds=elapsed_s)
    return ExecResult(
        exit_code=end.code if end.how == 0 and not end.timed_out else None,
        signal=end.code if end.how == 1 else None,
        stdout=out,
        stderr=err,
        timed_out=end.timed_out,
        truncated=end.total_bytes > pending.received,
        total_bytes=end.total_bytes,
        seconds=end.wall_us / 1e6,
    )
