"""Upgrades and rollbacks while clients ask: from an earlier chart, to values that are wrong, of one role."""

import subprocess
import tarfile

from rows import Failed

# The chart before it had the OpenAI API, health by operators and other things: the oldest that is upgraded from.
EARLIER = "85364c4"


def earlier_chart(trial):
    """The folder of the earlier chart; none in a clone that is too shallow."""
    archive = trial.scratch / "earlier.tar"
    made = ["git", "-C", str(trial.root), "-c", f"safe.directory={trial.root}", "archive", "--output", str(archive)]
    if subprocess.run([*made, EARLIER, "helm/outrider"], stderr=subprocess.DEVNULL).returncode:
        return None
    with tarfile.open(archive) as packed:
        packed.extractall(trial.scratch / "earlier")
    return trial.scratch / "earlier" / "helm" / "outrider"


def from_an_earlier_chart(trial):
    """The chart of 85364c4 with today's program, upgraded to today's chart, and rolled back."""
    earlier, chart = earlier_chart(trial), trial.chart
    if earlier is None:
        print(f"   skipped: this clone has no commit {EARLIER}; git fetch --unshallow brings it", flush=True)
        return
    chart.helm("uninstall", chart.release, "--wait", "--ignore-not-found")
    chart.install(folder=earlier)
    # It has no OpenAI API.
    with trial.load(kept=0) as load:
        load.event(f"upgrade from the chart of {EARLIER}", chart.install)
        load.event("rollback", lambda: chart.helm("rollback", chart.release, "--wait", "--timeout", "3m"))
    chart.install()
    chart.helm("test", chart.release)


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
