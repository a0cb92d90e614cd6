"""Upgrades and rollbacks while clients ask: of one role, to values that are wrong."""

from rows import Failed


def of_one_role(trial):
    """A drafter's configuration restarts drafters, and nobody else."""
    chart = trial.chart
    chart.install()
    others = {it["metadata"]["name"] for role in ("verifier", "coordinator") for it in chart.pods(role)}
    drafters = {it["metadata"]["name"] for it in chart.pods("drafter")}
    with trial.load() as load:
        load.event(
            "a drafter's configuration changed", lambda: chart.install("--set", "config.drafter.engine.max_batch=16")
        )
    after = {it["metadata"]["name"] for it in chart.pods()}
    if not others <= after:
        raise Failed(f"restarted as well: {others - after}")
    if drafters & after:
        raise Failed("the drafter was not restarted")


def to_what_never_serves(trial):
    """A model that is not there passes the chart's checks; the new pods never become ready, and the old ones serve."""
    chart = trial.chart
    chart.install()
    before = {it["metadata"]["name"] for it in chart.pods()}

    def upgrade():
        flags = ["--set", "verifier.model=/nowhere,drafter.model=/nowhere"]
        done = chart.install(*flags, wait=["--wait", "--timeout", "20s"], check=False)
        if done.returncode == 0:
            raise Failed("a model that is not there was rolled out")

    with trial.load() as load:
        load.event("upgrade to a model that is not there; old pods serve", upgrade)
        gone = before - {it["metadata"]["name"] for it in chart.pods()}
        if gone:
            raise Failed(f"pods that served are gone: {gone}")
        load.event("rolled back", lambda: chart.helm("rollback", chart.release, "--wait", "--timeout", "3m"))
