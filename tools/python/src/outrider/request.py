"""Requests, made of what a caller says."""

from collections.abc import Mapping, Sequence
from typing import Any

from outrider.v1 import coordinator_pb2

# Text as it is; token ids; or a conversation, each turn with "role" and "content", of which the model's template makes text.
Prompt = str | Sequence[int] | Sequence[Mapping[str, str]]
# Value of a method's setting.
Setting = str | float | bool


def request_of(
    prompt: Prompt,
    fields: Mapping[str, Any],
    sampling: Mapping[str, Any],
    settings: Mapping[str, Setting],
    base: coordinator_pb2.GenerateRequest | None,
) -> coordinator_pb2.GenerateRequest:
    """Makes the message of a request: that of `base`, with what is not None in its place.

    Raises TypeError or ValueError, naming the argument, for what does not go into it. What the values mean the coordinator
    judges.
    """
    request = coordinator_pb2.GenerateRequest()
    if base is not None:
        request.CopyFrom(base)
    _put_prompt(request, prompt)
    for message, given in ((request, fields), (request.sampling, sampling)):
        for name, value in given.items():
            if value is not None:
                _put(message, name, value)
    for name, value in settings.items():
        if not isinstance(value, (str, int, float)):
            raise TypeError(f"{name}: a setting is a number, True, False or a text, not {type(value).__name__}")
        request.settings[name] = value
    return request


def _put_prompt(request: coordinator_pb2.GenerateRequest, prompt: Prompt) -> None:
    if isinstance(prompt, str):
        request.text = prompt
    elif isinstance(prompt, (bytes, bytearray)) or not isinstance(prompt, Sequence):
        raise TypeError(f"prompt: expected a text, token ids or messages, not {type(prompt).__name__}")
    elif prompt and isinstance(prompt[0], Mapping):
        del request.messages[:]
        for turn in prompt:
            try:
                request.messages.add(**turn)  # type: ignore[arg-type]
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"prompt: {turn!r} is no message, such as {{'role': 'user', 'content': '...'}}: {error}"
                ) from error
    else:
        try:
            request.token_ids.ids[:] = prompt  # type: ignore[assignment]
        except (TypeError, ValueError) as error:
            raise ValueError(f"prompt: not all of it are token ids: {error}") from error
        request.token_ids.SetInParent()


def _put(message: Any, name: str, value: Any) -> None:
    try:
        if isinstance(value, (list, tuple)):
            getattr(message, name)[:] = value
        else:
            setattr(message, name, value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {value!r}: {error}") from error
