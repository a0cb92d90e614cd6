"""What arguments make of a request."""

import unittest

import grpc
import trustme
from stub_server import StubCoordinator

from outrider import Client
from outrider.v1 import coordinator_pb2 as v1


def asked(prompt="x", **arguments):
    """The request that a coordinator gets."""
    with StubCoordinator() as stub, Client(stub.url) as client:
        client.generate(prompt, **arguments)
    return stub.requests[0]


class Requests(unittest.TestCase):
    def test_fields_sampling_and_settings_go_where_they_belong(self):
        request = asked(
            method="spec-cascade",
            max_tokens=9,
            seed=2**64 - 1,
            temperature=0,
            top_k=3,
            stop=["."],
            rule="opt",
            alpha=0.3,
        )
        self.assertEqual((request.text, request.method, request.max_tokens), ("x", "spec-cascade", 9))
        self.assertEqual((request.seed, list(request.stop), request.report_rounds), (2**64 - 1, ["."], True))
        self.assertTrue(request.sampling.HasField("temperature"))
        self.assertEqual((request.sampling.temperature, request.sampling.top_k), (0, 3))
        self.assertEqual(dict(request.settings), {"rule": "opt", "alpha": 0.3})

    def test_what_is_left_out_is_left_to_the_coordinator(self):
        request = asked(rounds=False)
        self.assertEqual(request, v1.GenerateRequest(text="x"))

    def test_a_prompt_is_text_token_ids_or_messages(self):
        self.assertEqual(list(asked([1, 2]).token_ids.ids), [1, 2])
        self.assertEqual(asked([]).WhichOneof("prompt"), "token_ids")
        messages = asked([{"role": "user", "content": "Hello"}]).messages
        self.assertEqual((messages[0].role, messages[0].content), ("user", "Hello"))

    def test_the_rest_of_the_protocol_goes_into_a_request_of_which_arguments_change_their_part(self):
        base = v1.GenerateRequest(tenant="me", max_tokens=5, sampling={"min_p": 0.5})
        request = asked(max_tokens=6, temperature=0.5, request=base)
        self.assertEqual((request.tenant, request.max_tokens), ("me", 6))
        self.assertEqual((request.sampling.min_p, request.sampling.temperature), (0.5, 0.5))
        self.assertEqual(base.max_tokens, 5)

    def test_a_time_limit_is_the_coordinators(self):
        self.assertEqual(asked(timeout_s=1.5).timeout_ms, 1500)

    def test_arguments_that_go_into_no_request_are_named_at_once(self):
        with Client("http://127.0.0.1:9") as client:
            for prompt, arguments, named in (
                (b"bytes", {}, "prompt: "),
                (["a", "b"], {}, "prompt: "),
                ([{"speaker": "me"}], {}, "prompt: "),
                ("x", {"max_tokens": -1}, "max_tokens: "),
                ("x", {"temperature": "warm"}, "temperature: "),
                ("x", {"alpha": [0.1, 0.2]}, "alpha: "),
                ("x", {"timeout_s": 0}, "timeout_s: "),
            ):
                with self.subTest(named=named), self.assertRaisesRegex((TypeError, ValueError), f"^{named}"):
                    client.stream(prompt, **arguments)


class Connections(unittest.TestCase):
    def test_a_token_goes_with_each_call(self):
        with StubCoordinator() as stub, Client(stub.url, token="secret") as client:
            client.models()
        self.assertEqual(stub.metadata["authorization"], "Bearer secret")

    def test_over_tls_the_certificate_must_be_signed_by_the_authority_given(self):
        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        key, chain = issued.private_key_pem.bytes(), b"".join(pem.bytes() for pem in issued.cert_chain_pems)
        credentials = grpc.ssl_server_credentials([(key, chain)])
        with StubCoordinator(credentials=credentials) as stub, authority.cert_pem.tempfile() as file:
            with Client(stub.url, ca_file=file, token="secret") as client:
                self.assertEqual(client.models()[0].name, "default")
            with trustme.CA().cert_pem.tempfile() as other, Client(stub.url, ca_file=other) as client:
                with self.assertRaisesRegex(Exception, "UNAVAILABLE"):
                    client.models()

    def test_what_is_no_address_or_would_show_a_token_is_refused(self):
        for url, arguments, named in (
            ("127.0.0.1:7001", {}, "url: "),
            ("http://127.0.0.1", {}, "url: "),
            ("http://127.0.0.1:x", {}, "url: "),
            ("http://127.0.0.1:1/path", {}, "url: "),
            ("http://127.0.0.1:1", {"ca_file": "ca.pem"}, "ca_file: "),
            ("http://far.example:1", {"token": "secret"}, "token: it would cross"),
            ("http://127.0.0.1:1", {"token": "two words"}, "token: expected"),
        ):
            with self.subTest(url=url), self.assertRaisesRegex(ValueError, f"^{named}"):
                Client(url, **arguments)
        Client("http://far.example:1", token="secret", insecure=True).close()
