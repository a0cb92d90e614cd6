"""All cases, in the order in which they are run."""

from . import answers, bodies, connections, prompts, requests, resets, texts

CASES = [case for module in (bodies, texts, answers, requests, connections, resets, prompts) for case in module.CASES]
