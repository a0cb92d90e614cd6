"""Who may talk to whom: network policies, certificates and tokens, and their rotation while clients ask."""

import time

import notes
from certificates import Authority, names_of, secret, token
from chart import Chart, command, until
from load import Load
from rows import Failed


def network_policies(trial):
    """Pods in three places try what they may and what they may not."""
    chart = trial.chart
    chart.install()
    address = {role: chart.pods(role)[0]["status"]["podIP"] for role in ("coordinator", "drafter", "verifier")}
    places = [Chart(chart.folder, name) for name in ("monitoring", "other")]
    for place in places:
        place.kubectl("create", "namespace", place.namespace)
        place.kubectl("run", "idle", "--image", "cluster.test/pause:1", "--restart", "Never")
    for place in places:
        place.kubectl("wait", "--for", "condition=Ready", "pod/idle", "--timeout", "60s")
    # Rules follow a new pod within a second or two.
    time.sleep(3)
    monitoring, other = places

    def reaches(place, role, port):
        asked = ["curl", "--silent", "--max-time", "3", "--http2-prior-knowledge"]
        url = f"http://{address[role]}:{port}/metrics"
        return place.in_pod("idle", *asked, url, check=False).returncode == 0

    for place, role, port, may in (
        (monitoring, "coordinator", 9464, True),
        (monitoring, "drafter", 9465, True),
        (monitoring, "verifier", 9466, True),
        (other, "verifier", 9466, False),
        (monitoring, "verifier", 7201, False),
        (monitoring, "drafter", 7101, False),
        (other, "coordinator", 7001, True),
        (other, "coordinator", 8000, True),
    ):
        if reaches(place, role, port) != may:
            raise Failed(f"from {place.namespace} to {role}:{port}: {'refused' if may else 'not refused'}")
    chart.install("--set-json", 'networkPolicy.clients=[{"podSelector":{"matchLabels":{"app":"gateway"}}}]')
    until(15, "others than clients are kept out", lambda: not reaches(other, "coordinator", 7001))
    # The chart's own test is let in.
    chart.helm("test", chart.release)
    trial.rows.add("network policies: peers, metrics and clients, each let in or kept out")


def fetched(pod, port):
    """The serial number of the certificate that a pod shows."""
    connected = f"openssl s_client -connect {pod}:{port} </dev/null 2>/dev/null"
    return command("sh", "-c", f"{connected} | openssl x509 -serial -noout").strip()


def tls_and_tokens(trial):
    """TLS between all, tokens for clients and for peers; each is renewed without a restart."""
    chart, names = trial.chart, names_of(trial.chart.release, trial.chart.namespace)
    authority = Authority(trial.scratch / "authority")
    peers, clients = token(), token()
    file = trial.scratch / "client-token"
    file.write_text(clients)
    chart.apply(
        authority.secret("outrider-tls", names),
        secret("peers", token=peers),
        secret("clients", tokens=clients),
        secret("client", token=clients),
    )
    values = "tls.mode=server,tls.existingSecret=outrider-tls,auth.peerToken.secret=peers"
    values += ",auth.clientTokens.secret=clients,tests.tokenSecret.name=client"
    values += ",config.auth.reload_seconds=2,config.tls.reload_seconds=2"
    chart.install("--set", values)
    chart.helm("test", chart.release)
    notes.run(trial)
    flags = ["--ca-file", authority.path("ca.crt"), "--token-file", str(file)]
    refused = Load(trial.expected, chart.address(), 0, 0, "https", flags[:2])._generate(7)
    if refused[0] != "failed" or "token" not in refused[2]:
        raise Failed(f"a client without a token was not refused: {refused}")
    before = {it["metadata"]["name"] for it in chart.pods()}
    with trial.load(kept=0, scheme="https", flags=flags) as load:
        rotate(trial, load, authority, (peers, clients), file)
    if {it["metadata"]["name"] for it in chart.pods()} != before:
        raise Failed("pods were restarted")
    old = trial.scratch / "old-token"
    old.write_text(clients)
    refused = Load(trial.expected, chart.address(), 0, 0, "https", [*flags[:3], str(old)])._generate(7)
    if refused[0] != "failed":
        raise Failed("a token that was taken away is still taken")


def rotate(trial, load, authority, tokens, file):
    """As docs/security.md has it: the new one as a second line, then the first, then alone."""
    chart, names = trial.chart, names_of(trial.chart.release, trial.chart.namespace)
    pod = chart.pods("coordinator")[0]["status"]["podIP"]
    serial = fetched(pod, 7001)

    def renewed():
        chart.apply(authority.secret("outrider-tls", names))
        until(60, "the new certificate is shown", lambda: fetched(pod, 7001) != serial)

    # The kubelet brings a changed Secret within its syncFrequency, 5 s here, and the program reads it within 2 s.
    reached = 9

    def lines(name, key, *of):
        chart.apply(secret(name, **{key: "\n".join(of) + "\n"}))
        time.sleep(reached)

    def peers():
        old, new = tokens[0], token()
        for of in ((old, new), (new, old), (new,)):
            lines("peers", "token", *of)

    def clients():
        old, new = tokens[1], token()
        lines("clients", "tokens", old, new)
        file.write_text(new)
        load.under.settle()
        lines("clients", "tokens", new)

    load.event("certificates renewed, no restart", renewed)
    load.event("the peers' token rotated, no restart", peers)
    load.event("a client's token rotated, no restart", clients)
