"""Network namespaces joined by links with delay, jitter, loss, a rate, or nothing at all.

Each namespace gets a TUN device; packets between them pass through this process, which holds them up
or drops them. It needs no traffic control of the kernel (netem is a module that many kernels lack), and
no address of it is known outside the namespaces.
"""

import ctypes
import fcntl
import heapq
import os
import random
import selectors
import struct
import subprocess
import threading
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 1400
# Packets that wait for a slow link; more are dropped, as a router would.
QUEUE = 100


class Link:
    """One namespace's way to the others, the same in both directions."""

    def __init__(self):
        self.set()

    def set(self, delay_ms=0.0, jitter_ms=0.0, loss=0.0, kbit=None, up=True):
        """Delay and jitter hold for each direction; loss is a share of 1."""
        self.delay, self.jitter, self.loss = delay_ms / 1e3, jitter_ms / 1e3, loss
        self.bytes_per_second = None if kbit is None else kbit * 1000 / 8
        self.up = up


class Direction:
    """What is under way on a link in one direction."""

    def __init__(self, link):
        self.link = link
        self.free_at = 0.0
        self.last = 0.0
        self.queued = []

    def arrival(self, size, now, dice):
        """When a packet that sets out now gets across, or None if it never does."""
        link = self.link
        if not link.up or dice.random() < link.loss:
            return None
        start = now
        if link.bytes_per_second is not None:
            self.queued = [at for at in self.queued if at > now]
            if len(self.queued) >= QUEUE:
                return None
            start = max(now, self.free_at) + size / link.bytes_per_second
            self.free_at = start
            self.queued.append(start)
        arrival = start + link.delay + dice.uniform(-link.jitter, link.jitter)
        # Packets do not overtake each other.
        self.last = max(arrival, self.last)
        return self.last


class Network:
    """Namespaces by name, with the address of each."""

    def __init__(self, addresses):
        self.prefix = f"outrider-{os.getpid()}-"
        self.links = {name: Link() for name in addresses}
        self.addresses = addresses
        self.made = []
        self.stopping = False

    def namespace(self, name):
        return self.prefix + name

    def start(self):
        """Makes the namespaces. Raises OSError or CalledProcessError where that is not allowed."""
        devices = {}
        for name, address in self.addresses.items():
            namespace = self.namespace(name)
            ip("netns", "add", namespace)
            self.made.append(namespace)
            devices[name] = tun(namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "address", "add", f"{address}/24", "dev", "link0")
            ip("-n", namespace, "link", "set", "link0", "mtu", str(MTU), "up")
        threading.Thread(target=self.forward, args=(devices,), daemon=True).start()

    def forward(self, devices):
        """Carries packets from device to device, each at its time."""
        by_address = {ip_bytes(address): name for name, address in self.addresses.items()}
        out = {name: Direction(link) for name, link in self.links.items()}
        into = {name: Direction(link) for name, link in self.links.items()}
        selector = selectors.DefaultSelector()
        for name, device in devices.items():
            selector.register(device, selectors.EVENT_READ, name)
        waiting, number, dice = [], 0, random.Random(1)
        while not self.stopping:
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, to, packet = heapq.heappop(waiting)
                os.write(devices[to], packet)
            patience = min(waiting[0][0] - now, 0.2) if waiting else 0.2
            for key, _ in selector.select(max(patience, 0)):
                packet = os.read(key.fd, 65536)
                # IPv4 alone is configured; what else the kernel sends, such as IPv6, goes nowhere.
                to = by_address.get(packet[16:20]) if packet[0] >> 4 == 4 else None
                if to is None:
                    continue
                now = time.monotonic()
                arrival = out[key.data].arrival(len(packet), now, dice)
                if arrival is not None:
                    arrival = into[to].arrival(len(packet), arrival, dice)
                if arrival is not None:
                    number += 1
                    heapq.heappush(waiting, (arrival, number, to, packet))

    def stop(self):
        """Removes the namespaces, and with them the devices."""
        self.stopping = True
        for namespace in self.made:
            subprocess.run(["ip", "netns", "delete", namespace], check=False)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stderr=subprocess.PIPE)


def ip_bytes(address):
    return bytes(int(part) for part in address.split("."))


def tun(namespace):
    """Opens a TUN device called link0 in a namespace, as a thread of its own that enters it."""
    opened = []

    def enter_and_open():
        with open(f"/run/netns/{namespace}") as there:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                opened.append(OSError(ctypes.get_errno(), "setns"))
                return
        try:
            device = os.open("/dev/net/tun", os.O_RDWR)
            request = struct.pack("16sH22x", b"link0", IFF_TUN | IFF_NO_PI)
            fcntl.ioctl(device, TUNSETIFF, request)
            opened.append(device)
        except OSError as error:
            opened.append(error)

    thread = threading.Thread(target=enter_and_open)
    thread.start()
    thread.join()
    if isinstance(opened[0], OSError):
        raise opened[0]
    return opened[0]
