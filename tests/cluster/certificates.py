"""Certificates and Secrets for the cases, as cert-manager or an administrator would make them."""

import secrets as random
from pathlib import Path

from chart import command


class Authority:
    """A CA of the test's own. `secret` is what the chart mounts."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                      "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=tests")  # fmt: skip

    def _openssl(self, *words):
        command("sh", "-c", 'cd "$0" && exec openssl "$@"', self.folder, *words)

    def path(self, name):
        return str(self.folder / name)

    def issue(self, names):
        """A certificate and its key for these names, as tls.crt and tls.key in the folder."""
        extensions = "extendedKeyUsage=serverAuth,clientAuth\nkeyUsage=digitalSignature\n"
        (self.folder / "extensions").write_text(extensions + "subjectAltName=" + ",".join(f"DNS:{it}" for it in names))
        self._openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=outrider")  # fmt: skip
        self._openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                      "-days", "2", "-out", "tls.crt", "-extfile", "extensions")  # fmt: skip

    def secret(self, name, names):
        """The Secret of a new certificate."""
        self.issue(names)
        return secret(name, **{it: (self.folder / it).read_text() for it in ("tls.crt", "tls.key", "ca.crt")})


def names_of(release, namespace):
    """The names by which clients and peers call the services of a release."""
    services = [release, *(f"{release}-{role}" for role in ("coordinator", "drafter", "verifier"))]
    return [name + end for name in services for end in ("", f".{namespace}", f".{namespace}.svc")]


def secret(name, **entries):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": entries}


def token():
    return random.token_hex(32)
