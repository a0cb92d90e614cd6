"""Pods are replaced, deleted, killed and cut off while clients ask."""

import time

import notes
from room import small_node
from rows import Failed

ROLES = ("drafter", "verifier", "coordinator")

# Two of each role. The built-in pair answers in a tenth of a second: verifiers are held to a quarter of a CPU, so that
# something can happen in the middle of an answer. With a draft length of its own the coordinator asks drafters also
# where the measured times say that drafting does not pay.
PAIRS = """
config: {coordinator: {draft_len: 4}}
coordinator: {replicas: 2}
drafter: {replicas: 2, resources: {requests: {cpu: 50m}, limits: {cpu: 300m}}}
verifier: {replicas: 2, resources: {requests: {cpu: 50m}, limits: {cpu: 250m}}}
"""


def defaults(trial):
    """The chart as it is, on a small node: its own test, what its notes show, and a restart of all pods at once."""
    chart = trial.chart
    chart.helm("uninstall", chart.release, "--wait", "--ignore-not-found")
    with small_node(chart):
        chart.install()
        chart.helm("test", chart.release)
        trial.ask()
        notes.run(trial)
        chart.kubectl("rollout", "restart", "deployment")
        for role in ROLES:
            chart.rollout(role)
        chart.helm("test", chart.release)
    trial.rows.add("installed with default values beside a system on 2 CPUs, restarted")


def restarts_of_one(trial):
    """Rolling restarts with one pod of each role."""
    trial.chart.install()
    with trial.load() as load:
        for role in ROLES:
            load.event(f"rolling restart of the only {role}", lambda role=role: trial.chart.restart(role))


def install_pairs(trial, *flags):
    values = trial.scratch / "pairs.yaml"
    values.write_text(PAIRS)
    trial.chart.install("--values", trial.chart.folder / "values-ha.yaml", "--values", values, *flags)
    trial.chart.ready()


def losses(trial):
    """Pods of pairs are deleted, killed as by a crash, and cut off as by the loss of a node."""
    install_pairs(trial)
    chart = trial.chart
    # Not so many that the one that is left has too much to do for the limit to say anything.
    with trial.load(generating=2) as load:
        # Beside the keepalive's 3 s, and a second: the verifier that is left has twice the streams.
        for role, beyond in (("drafter", 2), ("verifier", 4 + load.usual)):
            load.event(f"a {role}'s pod deleted", lambda role=role: chart.delete(role), beyond=beyond)
            chart.ready()
            load.event(f"a {role} killed (SIGKILL)", lambda role=role: chart.crash(role), beyond=beyond)
            chart.ready()
            cut_off(load, chart, role, beyond)
        load.event("a coordinator's pod deleted", lambda: chart.delete("coordinator"))
        chart.ready()


def cut_off(load, chart, role, beyond):
    mend = []
    try:
        load.event(f"a {role}'s network cut", lambda: mend.append(chart.cut(chart.pod(role))), beyond=beyond, after=20)
    finally:
        for undo in mend:
            undo()
    chart.ready()


def coordinator_killed(trial):
    """The one loss that clients feel: answers end with UNAVAILABLE, and are asked for again with their seed."""
    install_pairs(trial)
    with trial.load() as load:
        kill = lambda: trial.chart.crash("coordinator")  # noqa: E731
        load.event("a coordinator killed (SIGKILL)", kill, may_resume=True, after=15)
    trial.chart.ready()


def restarts_of_pairs(trial):
    """Rolling restarts with two pods of each role, in the middle of answers."""
    install_pairs(trial)
    with trial.load() as load:
        for role in ROLES:
            load.event(f"rolling restart of two {role}s", lambda role=role: trial.chart.restart(role))


def drain(trial):
    """The only node is drained: the disruption budgets let one pod of each role go, and hold the others back."""
    install_pairs(trial)
    chart = trial.chart

    def drained():
        done = chart.kubectl(
            "drain", "node1", "--pod-selector", f"app.kubernetes.io/instance={chart.release}", "--timeout", "15s",
            check=False,
        )  # fmt: skip
        chart.kubectl("uncordon", "node1")
        if done.returncode == 0 or "disruption budget" not in done.stderr:
            raise Failed(f"drain: {done.stderr[-500:]}")
        time.sleep(1)
        chart.ready()

    with trial.load() as load:
        load.event("a drain, held back by disruption budgets", drained)
