"""Autoscalers add and remove pods while clients ask."""

from chart import until
from rows import Failed

# What is waited for before pods go again; Kubernetes' own default is five minutes.
BEHAVIOR = '{"scaleDown":{"stabilizationWindowSeconds":5,"policies":[{"type":"Pods","value":1,"periodSeconds":5}]}}'


def replicas(chart, role):
    return chart.object(chart.deployment(role))["spec"]["replicas"]


def autoscaling(trial):
    """Three of each are three when an autoscaler takes over; then they follow the load, up and down."""
    chart = trial.chart
    limits = "resources.requests.cpu=50m,{0}.resources.limits.cpu=200m"
    of_each = ",".join(f"{role}.replicas=2,{role}." + limits.format(role) for role in ("drafter", "verifier"))
    base = ["--set", f"coordinator.replicas=3,{of_each}", "--set", "config.coordinator.draft_len=4"]
    chart.install(*base)
    scaled = [*base]
    for role, by in (("coordinator", "running=1"), ("drafter", "cpuPercent=40"), ("verifier", "running=2")):
        scaling = f"{role}.autoscaling"
        scaled += ["--set", f"{scaling}.type=hpa,{scaling}.{by},{scaling}.minReplicas=2,{scaling}.maxReplicas=3"]
        scaled += ["--set-json", f"{scaling}.behavior={BEHAVIOR}"]
    with trial.load(generating=1) as load:
        load.event("autoscaling turned on: three coordinators", lambda: turned_on(chart, scaled))
        gone = lambda: replicas(chart, "coordinator") == 2  # noqa: E731
        load.event("scaled down, coordinators to two", lambda: until(90, "two coordinators", gone, 1))
    with trial.load(generating=8) as load:
        for role in ("coordinator", "verifier"):
            grown = lambda role=role: replicas(chart, role) > 2  # noqa: E731
            load.event(f"scaled up, {role}s to three", lambda grown=grown: until(90, "a third", grown, 1))
    chart.install()


def turned_on(chart, flags):
    chart.install(*flags, wait=False)
    if replicas(chart, "coordinator") < 2:
        raise Failed("autoscaling took pods away at once")
