"""The end of a release."""

from rows import Failed

KINDS = (
    "all,configmaps,secrets,serviceaccounts,ingresses,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,"
    "persistentvolumeclaims,endpointslices"
)


def uninstall(trial):
    """`helm uninstall` leaves nothing of the release, nor of its test."""
    chart = trial.chart
    chart.install()
    chart.helm("test", chart.release)
    chart.helm("uninstall", chart.release, "--wait", "--timeout", "3m")
    left = chart.kubectl("get", KINDS, "--selector", f"app.kubernetes.io/instance={chart.release}", "--output", "name")
    left += chart.kubectl("get", "secrets", "--selector", "owner=helm", "--output", "name")
    if left:
        raise Failed(f"left behind: {left.split()}")
    trial.rows.add("uninstalled, nothing is left")
