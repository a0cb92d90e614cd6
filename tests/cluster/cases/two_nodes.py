"""Two nodes: pods are spread over them; one is drained, and one is lost."""

from cases.replacements import ROLES, install_pairs
from chart import until
from nodes import NAME, SecondNode, drain, is_ready
from rows import Failed


def two_nodes(trial):
    """Each role has a pod on each node, so that neither a drain nor a loss takes all."""
    chart = trial.chart
    chart.helm("uninstall", chart.release, "--wait", "--ignore-not-found")
    with SecondNode(chart) as second:
        install_pairs(trial)
        spread(chart)
        # A kept connection without keepalive would wait for the lost node's answer for ever. Until Kubernetes knows that a
        # node is lost, in 40 to 50 s, a Service sends new connections there too: clients must ask again.
        with trial.load(generating=2, kept=0, insists=True) as load:
            load.event("the second of two nodes drained", lambda: emptied(chart))
            chart.kubectl("uncordon", NAME)
            for role in ROLES:
                chart.restart(role)
            chart.ready()
            spread(chart)
            load.under.settle()
            load.event("the second of two nodes lost, without a word", second.lose, may_resume=True, after=30)
            until(90, "the lost node is known to be lost", lambda: not is_ready(chart), every=1)
            # Requests that began before that, on connections to the lost one, still end with UNAVAILABLE.
            load.event("while it is known to be lost", lambda: None, may_resume=True)


def spread(chart):
    for role in ROLES:
        nodes = sorted(pod["spec"]["nodeName"] for pod in chart.pods(role))
        if nodes != ["node1", "node2"]:
            raise Failed(f"the {role}s are on {nodes}")


def emptied(chart):
    drain(chart)
    left = [pod["metadata"]["name"] for pod in chart.pods() if pod["spec"]["nodeName"] == NAME]
    if left:
        raise Failed(f"still on {NAME}: {left}")
    # What left has come back elsewhere.
    chart.ready()
