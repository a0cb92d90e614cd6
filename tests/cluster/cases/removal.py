"""The end of a release."""

from chart import until

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

    def left():
        ours = ["--selector", f"app.kubernetes.io/instance={chart.release}", "--output", "name"]
        records = ["get", "secrets", "--selector", f"owner=helm,name={chart.release}", "--output", "name"]
        return chart.kubectl("get", KINDS, *ours) + chart.kubectl(*records)

    # Pods take their time to stop.
    until(60, "nothing is left", lambda: not left(), every=1)
    trial.rows.add("uninstalled, nothing is left")
