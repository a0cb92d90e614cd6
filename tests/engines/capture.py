"""What an engine says of itself, and its answers to requests of the kinds that Outrider makes, recorded as they come."""

import json
import random
import time
import urllib.error
import urllib.request

from servers import NAME, VOCAB

# Of a round: committed tokens, draft tokens, most likely tokens and tokens of most noise asked for.
COMMITTED, DRAFTS, TOP, NOISE = 200, 4, 256, 128
INFORMATION = {"sglang": ("model_info", "server_info", "v1/models"), "vllm": ("version", "v1/models")}
# An id that no vocabulary has: a refusal says which there are. SGLang checks these; one among the input's tokens, or
# more most likely tokens than the vocabulary has, would end the server.
NO_TOKEN = 2**31 - 1


class Answer:
    """Status, bytes and milliseconds of an answer, and what it says."""

    def __init__(self, url, body=None):
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, sent, {"content-type": "application/json"})
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                self.status, said = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            self.status, said = error.code, error.read()
        self.ms = (time.monotonic() - began) * 1000
        self.sent_bytes, self.bytes = len(sent or b""), len(said)
        self.said = json.loads(said)

    def why(self):
        """The words of a refusal."""
        return self.said["error"]["message"]


def sglang_body(tokens, start, top, ids):
    sampling = {"max_new_tokens": 1, "temperature": 0, "ignore_eos": True}
    body = {"input_ids": tokens, "sampling_params": sampling, "return_logprob": True, "logprob_start_len": start}
    return {**body, "top_logprobs_num": top, **({"token_ids_logprob": ids} if ids else {})}


def several(bodies):
    """One request to SGLang for what several ask."""
    return {field: [body[field] for body in bodies] for field in bodies[0]}


def generate_body(tokens, top, **more):
    params = {"max_tokens": 1, "temperature": 0, "ignore_eos": True, "detokenize": False, "prompt_logprobs": top}
    return {"token_ids": tokens, "sampling_params": {**params, **more}, "stream": False}


def completions_body(tokens, top):
    sampling = {"max_tokens": 1, "temperature": 0, "stream": False}
    return {"model": NAME, "prompt": tokens, **sampling, "prompt_logprobs": top}


def small(engine, url):
    """Answers by what was asked, small enough to be read."""
    tokens = [1, 749, 858, 273, 569, 14]
    if engine == "sglang":
        one, other = sglang_body(tokens, 3, 2, [5, 9]), sglang_body(tokens[:4], 3, 2, [0])
        return {
            "round": Answer(f"{url}/generate", one),
            "round of two sessions": Answer(f"{url}/generate", several([one, other])),
            "an id out of range": Answer(f"{url}/generate", sglang_body(tokens, 3, 2, [NO_TOKEN])),
        }
    # One more, for the row after the last.
    tokens = [*tokens, 0]
    lists = {"prompt_logprob_token_ids": [[5, 9], [7, -1], [2, 8]], "prompt_logprob_start": 3}
    return {
        "completions": Answer(f"{url}/v1/completions", completions_body(tokens, 2)),
        "generate": Answer(f"{url}/inference/v1/generate", generate_body(tokens, 2)),
        "generate with given tokens": Answer(f"{url}/inference/v1/generate", generate_body(tokens, 2, **lists)),
        "a token out of range": Answer(f"{url}/inference/v1/generate", generate_body([1, NO_TOKEN], 2)),
        "too many most likely tokens": Answer(f"{url}/v1/completions", completions_body(tokens, NO_TOKEN)),
    }


def information(engine, url):
    return {route: Answer(f"{url}/{route}") for route in INFORMATION[engine]}


def version(engine, url):
    route = {"sglang": "server_info", "vllm": "version"}[engine]
    return Answer(f"{url}/{route}").said["version"]


def usual_round(engine, url, tokens):
    """Answers to a round of the usual size, the first of which fills the engine's cache."""
    tokens = tokens[: COMMITTED + DRAFTS]
    if engine == "sglang":
        drawn = random.Random(1)
        ids = sorted({id for _ in range(DRAFTS + 1) for id in drawn.sample(range(VOCAB), NOISE)})
        route, body = "generate", sglang_body(tokens, COMMITTED - 1, TOP, ids)
    else:
        # As above.
        route, body = "v1/completions", completions_body([*tokens, 0], TOP)
    return [Answer(f"{url}/{route}", body) for _ in range(9)][1:]


def decoding(engine, url, tokens):
    """Milliseconds that the engine takes for a token that it generates by itself."""

    def generated(count):
        sampling = {"temperature": 0, "ignore_eos": True}
        if engine == "sglang":
            body = {"input_ids": tokens, "sampling_params": {"max_new_tokens": count, **sampling}}
            return Answer(f"{url}/generate", body).ms
        return Answer(f"{url}/v1/completions", {"model": NAME, "prompt": tokens, "max_tokens": count, **sampling}).ms

    few, many = 8, 72
    return min(generated(many) - generated(few) for _ in range(5)) / (many - few)


def trimmed(said, most=400):
    """As it came, without what is long and not read."""
    if isinstance(said, dict):
        kept = {key: trimmed(value) for key, value in said.items() if key != "internal_states"}
        return kept if len(kept) < 80 else {key: kept[key] for key in kept if key in KEPT}
    if isinstance(said, list):
        return [trimmed(value) for value in said]
    return said if not isinstance(said, str) or len(said) < most else f"{said[:most]}…"


# Of SGLang's several hundred settings.
KEPT = (
    "model_path tokenizer_path served_model_name version dtype quantization kv_cache_dtype context_length revision "
    "max_total_num_tokens max_req_input_len weight_version enable_fp32_lm_head device tp_size pp_size dp_size "
    "attention_backend sampling_backend disable_radix_cache page_size random_seed allow_auto_truncate"
).split()


def record(engine, url, folder):
    """Writes what the engine answers, one file for each request."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, answer in {**information(engine, url), **small(engine, url)}.items():
        file = folder / f"{engine} {name.replace('/', ' ')}.json".replace(" ", "-")
        file.write_text(json.dumps({"status": answer.status, "said": trimmed(answer.said)}, indent=1) + "\n")
        print(f"engines: {file}: status {answer.status}, {answer.bytes} bytes", flush=True)
