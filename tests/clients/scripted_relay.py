"""A relay for agents whose instructions a small model would not follow: a script changes each of their requests."""

import json

from relay import Handler, Relay


class ScriptedRelay(Relay):
    """Relays to the server at `url` until its block ends; `change` makes of each request the one that goes on."""

    def __init__(self, url, change):
        class Scripted(Handler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.pass_on(json.dumps(change(request)).encode())

        super().__init__(url)
        self.relay.RequestHandlerClass = Scripted


def with_values(tool, values):
    """A tool's function whose arguments can be nothing but `values`."""
    parameters = {
        "type": "object",
        "properties": {name: {"const": value} for name, value in values.items()},
        "required": list(values),
        "additionalProperties": False,
    }
    return {**tool, "parameters": parameters}
