"""The allow list, the proxy requests it reads, and the proxy itself over loopback sockets."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.sandboxes.egress import CONNECTIONS, Egress, is_allowed, parse_request, proxy_variables


@pytest.mark.parametrize(
    ("host", "port", "entry", "verdict"),
    [
        ("example.org", 443, "example.org", True),
        ("EXAMPLE.org.", 80, "example.ORG", True),
        ("sub.example.org", 443, "example.org", False),
        ("example.org.evil.net", 443, "example.org", False),
        ("notexample.org", 443, "*.example.org", False),
        ("a.b.example.org", 443, "*.example.org", True),
        ("example.org", 443, "*.example.org", False),
        ("example.org", 443, "example.org:443", True),
        ("example.org", 22, "example.org:443", False),
        ("10.0.0.7", 80, "10.0.0.7", True),
        ("::1", 80, "[::1]:80", True),
        ("::1", 80, "::1", True),
    ],
)
def test_a_list_names_hosts_and_ports(host: str, port: int, entry: str, verdict: bool) -> None:
    assert is_allowed(host, port, ["other.invalid", entry]) is verdict


@given(st.text(min_size=1, max_size=30), st.integers(1, 65535))
def test_an_empty_list_allows_nothing(host: str, port: int) -> None:
    assert not is_allowed(host, port, [])


def test_a_tunnel_names_its_host_and_sends_nothing_by_itself() -> None:
    assert parse_request(b"CONNECT a.org:8443 HTTP/1.1\r\nHost: b.org\r\n\r\n") == ("a.org", 8443, b"")


def test_a_plain_request_goes_to_the_host_in_its_url_once_and_without_what_was_for_the_proxy() -> None:
    head = b"GET http://a.org/x?y=1 HTTP/1.1\r\nHost: a.org\r\nProxy-Authorization: s\r\nConnection: keep-alive\r\nX: 1\r\n\r\n"
    host, port, sent = parse_request(head)
    assert (host, port) == ("a.org", 80)
    assert sent == b"GET /x?y=1 HTTP/1.1\r\nHost: a.org\r\nX: 1\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET https://a.org/ HTTP/1.1\r\n\r\n",
        b"GET http://user@a.org/ HTTP/1.1\r\n\r\n",
        b"CONNECT :443 HTTP/1.1\r\n\r\n",
        b"CONNECT a.org:many HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ],
)
def test_what_is_no_proxy_request_is_a_value_error(head: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_request(head)


@contextlib.asynccontextmanager
async def proxy_to_an_echo(*, allowed: str) -> AsyncIterator[tuple[Egress, int, int]]:
    """A proxy that allows one address, its port, and the port of a server on 127.0.0.2 that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()
        await writer.wait_closed()

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    egress = Egress([allowed])
    await egress.open(listener)
    server = await asyncio.start_server(echo, "127.0.0.2", 0)
    async with server:
        yield egress, port, server.sockets[0].getsockname()[1]
        await egress.close()


async def said(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def hung_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()
    with contextlib.suppress(ConnectionResetError):
        await writer.wait_closed()
    return True


async def test_a_tunnel_to_an_allowed_host_carries_bytes_both_ways() -> None:
    async with proxy_to_an_echo(allowed="127.0.0.2") as (egress, port, echo):
        answer = await said(port, b"CONNECT 127.0.0.2:%d HTTP/1.1\r\n\r\nping\x00\xff" % echo)
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\nping\x00\xff"
        assert egress.refused == set()


async def test_a_host_that_is_not_listed_is_refused_by_name_and_noted() -> None:
    async with proxy_to_an_echo(allowed="127.0.0.9") as (egress, port, echo):
        answer = await said(port, b"CONNECT 127.0.0.2:%d HTTP/1.1\r\n\r\n" % echo)
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"127.0.0.2" in answer
        assert egress.refused == {f"127.0.0.2:{echo}"}


async def test_an_allowed_host_that_is_not_there_is_a_bad_gateway() -> None:
    async with proxy_to_an_echo(allowed="*.invalid") as (_, port, _echo):
        assert (await said(port, b"CONNECT a.invalid:80 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 502 ")


async def test_what_is_no_request_is_told_so() -> None:
    async with proxy_to_an_echo(allowed="a.org") as (_, port, _echo):
        assert (await said(port, b"hello\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_a_crowd_of_connections_meets_a_bound_and_closing_hangs_all_of_them_up() -> None:
    async with proxy_to_an_echo(allowed="a.org") as (egress, port, _echo):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
        await asyncio.sleep(0)
        assert await hung_up(*await asyncio.open_connection("127.0.0.1", port))
        await egress.close()
        assert all([await hung_up(*each) for each in held])


def test_programs_are_told_of_the_proxy_in_both_spellings_and_left_to_their_own_servers() -> None:
    told = proxy_variables()
    assert told["http_proxy"] == told["HTTPS_PROXY"] == "http://127.0.0.1:3128"
    assert "127.0.0.1" in told["no_proxy"].split(",")
