"""Runs a command with a real chat model that is served alone (OUTRIDER_HTTP), and with relay.py in front of it
(OUTRIDER_RELAY).

    relayed.py COMMAND ...
"""

import os
import subprocess
import sys

import chat_model
from relay import Relay

with chat_model.served() as server, Relay(server.url()) as relay:
    urls = {"OUTRIDER_HTTP": server.url(), "OUTRIDER_RELAY": relay.url()}
    status = subprocess.run(sys.argv[1:], env={**os.environ, **urls}, check=False).returncode
sys.exit(status)
