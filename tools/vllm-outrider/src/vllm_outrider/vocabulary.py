"""By what two services know that they share a tokenizer."""

import hashlib
import struct


def fingerprint(vocabulary):
    """SHA-256 over the id, the length and the bytes of every token in the order of the ids, as Outrider computes it.

    `vocabulary` has ids by token, added ones included.
    """
    digest = hashlib.sha256()
    for token_id, token in sorted((token_id, token.encode()) for token, token_id in vocabulary.items()):
        digest.update(struct.pack("<IQ", token_id, len(token)))
        digest.update(token)
    return digest.digest()


def of_model(model_config):
    """The fingerprint of the tokenizer that vLLM serves a model with, by its tokenizer.json."""
    from tokenizers import Tokenizer
    from transformers.utils import cached_file

    file = cached_file(model_config.tokenizer, "tokenizer.json", revision=model_config.tokenizer_revision)
    return fingerprint(Tokenizer.from_file(file).get_vocab(with_added_tokens=True))
