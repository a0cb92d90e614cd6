"""Runs a command with a real chat model that is served alone (OUTRIDER_HTTP), and with relay.py in front of it
(OUTRIDER_RELAY).

    relayed.py COMMAND ...
"""

import os
import subprocess
import sys

import chat_model
from relay import Relay
from server import Served, free_port

port = free_port()
arguments = ["--target-model", chat_model.file(), "--served-model-name", "SmolLM2", "--http", f"127.0.0.1:{port}"]
quiet = ["--log", "warn", "--listen", "127.0.0.1:0", "--admin", "off"]
with Served([os.environ["OUTRIDER"], "serve", "all", *arguments, *quiet], port) as server:
    with Relay(server.url()) as relay:
        urls = {"OUTRIDER_HTTP": server.url(), "OUTRIDER_RELAY": relay.url()}
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **urls}, check=False).returncode)
