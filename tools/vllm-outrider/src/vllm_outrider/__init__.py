"""Draft tokens for vLLM from an Outrider drafter.

    --speculative-config '{"method": "custom_class", "model": "vllm_outrider.OutriderProposer", "num_speculative_tokens": 4}'
    --additional-config '{"outrider": {"url": "https://drafter:7101", "ca_file": "ca.pem", "token_file": "token"}}'
"""

from vllm_outrider.proposer import OutriderProposer

__all__ = ["OutriderProposer"]
