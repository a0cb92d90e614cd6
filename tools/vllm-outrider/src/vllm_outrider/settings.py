"""Settings, which are the object `outrider` of vLLM's --additional-config."""

import ipaddress
from dataclasses import dataclass, fields
from urllib.parse import urlsplit


class BadSettings(ValueError):
    """A setting that cannot be used. vLLM does not start with it."""


@dataclass(frozen=True)
class Settings:
    # Where the drafter is: http:// or https://, a host and a port.
    url: str
    # A file of PEM certificates, one of which must have signed the drafter's; empty takes those of the system.
    ca_file: str = ""
    # A file with the token that the drafter asks its peers for.
    token_file: str = ""
    # Whether a token may be sent in clear to another machine.
    insecure: bool = False
    # The model's name at the drafter; empty takes the one that it serves.
    model: str = ""
    # How long a step of vLLM waits for draft tokens, at most.
    deadline_ms: float = 20
    # The drafter stops before a token that it finds less probable than this; 0: never.
    confidence: float = 0
    # How long a drafter may be silent in a round before it counts as lost.
    silence_ms: float = 5000
    # How long after its last step the session of a request is kept at the drafter.
    release_after_ms: float = 5000

    @classmethod
    def of(cls, given):
        """Checks what was given."""
        if not isinstance(given, dict):
            raise BadSettings("outrider: expected an object in --additional-config")
        kinds = {field.name: field.type for field in fields(cls)}
        for name, value in given.items():
            if name not in kinds:
                raise BadSettings(f"outrider.{name}: unknown, expected some of {', '.join(kinds)}")
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (is_number if kinds[name] is float else isinstance(value, kinds[name])):
                raise BadSettings(f"outrider.{name}: expected {kinds[name].__name__}, found {type(value).__name__}")
        if "url" not in given:
            raise BadSettings("outrider.url: missing")
        settings = cls(**given)
        settings.check()
        return settings

    def check(self):
        url = urlsplit(self.url)
        try:
            has_place = bool(url.hostname and url.port)
        except ValueError:
            has_place = False
        if url.scheme not in ("http", "https") or not has_place or url.path.strip("/") or url.query or "@" in url.netloc:
            raise BadSettings("outrider.url: expected http:// or https://, a host and a port")
        if self.ca_file and not self.is_encrypted:
            raise BadSettings("outrider.ca_file: the url must begin with https://")
        if self.token_file and not (self.is_encrypted or self.insecure or is_this_machine(url.hostname)):
            raise BadSettings("outrider.token_file: would be sent in clear; use https://, or set insecure")
        for name in ("deadline_ms", "silence_ms", "release_after_ms"):
            if not 0 < getattr(self, name) <= 600_000:
                raise BadSettings(f"outrider.{name}: expected more than 0, at most 600,000")
        if not 0 <= self.confidence <= 1:
            raise BadSettings("outrider.confidence: expected 0 to 1")

    @property
    def is_encrypted(self):
        return self.url.startswith("https://")

    @property
    def address(self):
        """Host and port."""
        return urlsplit(self.url).netloc

    def authorities(self):
        """The certificates to believe; none for those of the system."""
        return read("ca_file", self.ca_file) if self.ca_file else None

    def metadata(self):
        """What goes with each call."""
        if not self.token_file:
            return ()
        token = read("token_file", self.token_file).decode("ascii", "replace").strip()
        if not token or not all("!" <= letter <= "~" for letter in token):
            raise BadSettings("outrider.token_file: must hold one token of visible ASCII characters")
        return (("authorization", f"Bearer {token}"),)


def is_this_machine(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read(name, file):
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise BadSettings(f"outrider.{name}: {error}") from error
