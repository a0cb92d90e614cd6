"""Connections to a coordinator: its address, who signed its certificate, and the token to show."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

import grpc

# Answers with distributions can be large; the coordinator bounds what it sends. No proxy of the environment is used.
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]


def connect(url: str, ca_file: str | Path | None) -> grpc.Channel:
    """Opens a channel, which connects when it is used.

    Raises ValueError for what is no address of a service, or authorities without https, and OSError if the file of
    authorities cannot be read.
    """
    parts = urlsplit(url)
    try:
        has_place = bool(parts.hostname and parts.port)
    except ValueError:
        has_place = False
    if parts.scheme not in ("http", "https") or not has_place or parts.path.strip("/") or parts.query or parts.username:
        raise ValueError(f"url: {url!r}: expected http:// or https://, a host and a port, as in http://127.0.0.1:7001")
    if parts.scheme == "https":
        authorities = Path(ca_file).read_bytes() if ca_file else None
        return grpc.secure_channel(parts.netloc, grpc.ssl_channel_credentials(authorities), options=OPTIONS)
    if ca_file:
        raise ValueError(f"ca_file: {url!r} is not encrypted; write https://, or leave ca_file out")
    return grpc.insecure_channel(parts.netloc, options=OPTIONS)


def metadata_of(url: str, token: str | None, insecure: bool) -> list[tuple[str, str]]:
    """Returns what goes with each call.

    Raises ValueError for a token that is none, or one that would cross a network in clear.
    """
    if token is None:
        return []
    if not token or not all("!" <= letter <= "~" for letter in token):
        raise ValueError("token: expected visible ASCII characters, without spaces")
    parts = urlsplit(url)
    if parts.scheme != "https" and not insecure and not _is_this_machine(parts.hostname or ""):
        raise ValueError("token: it would cross the network in clear; write https://, or set insecure=True")
    return [("authorization", f"Bearer {token}")]


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
