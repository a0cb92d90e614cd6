"""Settings, TLS and the fingerprint."""

import hashlib

import grpc
import pytest
import trustme
from fake_drafter import FakeDrafter, drafts

from vllm_outrider.settings import BadSettings, Settings
from vllm_outrider.vocabulary import fingerprint


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("http://a:1", "expected an object"),
        ({}, "url: missing"),
        ({"url": "a:1"}, "url: expected http"),
        ({"url": "http://a"}, "url: expected http"),
        ({"url": "http://a:1/path"}, "url: expected http"),
        ({"url": "http://a:1", "adress": 1}, "adress: unknown"),
        ({"url": "http://a:1", "deadline_ms": "5"}, "deadline_ms: expected float"),
        ({"url": "http://a:1", "deadline_ms": 0}, "deadline_ms: expected more than 0"),
        ({"url": "http://a:1", "insecure": 1}, "insecure: expected bool"),
        ({"url": "http://a:1", "confidence": 2}, "confidence: expected 0 to 1"),
        ({"url": "http://a:1", "ca_file": "x"}, "ca_file: the url must begin with https"),
        ({"url": "http://a:1", "token_file": "x"}, "token_file: would be sent in clear"),
    ],
)
def test_each_fault_is_named(given, problem):
    with pytest.raises(BadSettings, match=problem):
        Settings.of(given)


def test_a_token_goes_in_clear_within_the_machine_only(tmp_path):
    file = tmp_path / "token"
    file.write_text("secret")
    for url in ("http://127.0.0.1:1", "http://localhost:1", "https://a:1"):
        assert Settings.of({"url": url, "token_file": str(file)}).metadata() == (("authorization", "Bearer secret"),)
    file.write_text("two words")
    with pytest.raises(BadSettings, match="one token"):
        Settings.of({"url": "https://a:1", "token_file": str(file)}).metadata()
    with pytest.raises(BadSettings, match="No such file"):
        Settings.of({"url": "https://a:1", "token_file": str(tmp_path / "none")}).metadata()


def test_who_signed_the_drafters_certificate_is_believed_and_nobody_else(propose, tmp_path):
    signer, other = trustme.CA(), trustme.CA()
    shown = signer.issue_cert("127.0.0.1")
    pair = (shown.private_key_pem.bytes(), shown.cert_chain_pems[0].bytes())
    signer.cert_pem.write_to_path(tmp_path / "ca.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")
    with FakeDrafter(credentials=grpc.ssl_server_credentials([pair])) as drafter:
        batch = propose(drafter.port, scheme="https", ca_file=str(tmp_path / "ca.pem"))
        batch.set(0, [5, 6])
        assert batch.step(0) == [drafts([6], 4)]
        batch = propose(drafter.port, scheme="https", ca_file=str(tmp_path / "other.pem"))
        batch.set(0, [5, 6])
        assert batch.step(0) == [[]]
        assert len(drafter.opened) == 1


def test_the_fingerprint_is_of_ids_and_bytes_in_the_order_of_the_ids():
    one = fingerprint({"a": 0, "b": 1})
    assert one == fingerprint({"b": 1, "a": 0})
    assert one != fingerprint({"a": 1, "b": 0})
    assert one != fingerprint({"a": 0, "bé": 1})
    id_and_length = b"%c\0\0\0\1\0\0\0\0\0\0\0"
    assert one == hashlib.sha256(id_and_length % 0 + b"a" + id_and_length % 1 + b"b").digest()
