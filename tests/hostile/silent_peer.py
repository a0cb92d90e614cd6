"""A peer that speaks HTTP/2, answers pings, and nothing that is asked of it."""

import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, ACK = 4, 6, 1


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def read(one, count):
    data = b""
    while len(data) < count:
        more = one.recv(count - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


class SilentPeer:
    """It listens until this process ends."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            one, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def serve(self, one):
        try:
            read(one, len(PREFACE))
            one.sendall(frame(SETTINGS))
            while True:
                length, kind, flags, _ = struct.unpack(">IBBI", b"\0" + read(one, 9))
                payload = read(one, length)
                if kind in (SETTINGS, PING) and not flags & ACK:
                    one.sendall(frame(kind, ACK, payload=payload if kind == PING else b""))
        except OSError:
            one.close()
