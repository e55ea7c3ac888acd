"""Whole jobs for `promtool test rules`: actions of an operator, which raise no alert, and faults, each of which raises one.

A job has two servers and two workers, all scraped every 15 s for 15 minutes. A scenario is a healthy job with other values
of some series. A series is named "METRIC PROCESS" or "METRIC PROCESS LABEL"; values are those of promtool: "1x3" is 1 1 1 1,
and "_" is no sample.
"""

SAMPLES = 60  # after the first one
EVENT = 20  # the sample with which the action or the fault begins
SYMPTOM = "worker 0: the loss of step 3 is not finite"
LABEL_NAMES = {"thinwire_job_waiting_seconds": "cause", "thinwire_job_diverged_info": "symptom"}

SERVER_METRICS = {
    "thinwire_ready": 1,
    "thinwire_server_shards": 4,
    "thinwire_server_live_workers": 2,
    "thinwire_server_awaits_rollback": 0,
    "thinwire_server_status_age_seconds": 0.5,
    "thinwire_server_checkpoint_age_seconds": 60,
}
WORKER_METRICS = {"thinwire_ready": 1, "thinwire_worker_step": 300}


def metrics_of(process):
    if process.startswith("worker"):
        return WORKER_METRICS
    return SERVER_METRICS | ({"thinwire_job_lost_workers": 0} if process == "server0" else {})


def then(before, *after):
    """A value until EVENT, then others: (value, number of samples), the last one until the end."""
    parts, left = [f"{before}x{EVENT - 1}"], SAMPLES - EVENT
    for value, count in after[:-1]:
        parts.append(f"{value}x{count - 1}")
        left -= count
    return " ".join(parts + [f"{after[-1]}x{left}"])


def gone(*processes, until=None):
    """Processes that do not answer from EVENT on, for UNTIL samples or to the end."""
    changes = {}
    for process in processes:
        changes[f"up {process}"] = then(1, 0) if until is None else then(1, (0, until), 1)
        for metric, value in metrics_of(process).items():
            changes[f"{metric} {process}"] = then(value, "_") if until is None else then(value, ("_", until), value)
            # Prometheus marks the series of a target that does not answer.
            changes[f"{metric} {process}"] = changes[f"{metric} {process}"].replace(" _", " stale _", 1)
    return changes


def of_servers(metric, values):
    return {f"{metric} server0": values, f"{metric} server1": values}


def waiting(cause, values):
    """A job that waits from EVENT on. Prometheus marks the end of a series that is no longer exported."""
    values += "" if values == LONG else " stale"
    return {f"thinwire_job_waiting_seconds server0 {cause}": f"_x{EVENT - 1} {values}"}


LIVE = "thinwire_server_live_workers"
ALL = ("server0", "server1", "worker0", "worker1")
WITHOUT_WORKERS = {f"{metric} worker{i}": None for metric in ("up", *WORKER_METRICS) for i in (0, 1)}
LONG = "0+15x40"

# name: changes of the healthy job
PLANNED = {
    "nothing happens": {},
    "the job ends, and its servers run on": gone("worker0", "worker1") | of_servers(LIVE, then(2, 0)),
    "the job ends, and all processes end between two scrapes": gone(*ALL),
    "a worker is drained": gone("worker1") | of_servers(LIVE, then(2, 1)),
    "a server is started again within 45 s": gone("server1", until=3) | waiting("server", "10 25 40"),
    "an operator goes back to a checkpoint": waiting("rollback", "0 15 30") | {
        "thinwire_server_awaits_rollback server1": then(0, (1, 3), 0), "thinwire_worker_step worker0": then(300, 100)},
    "a worker tests the model while the other waits": waiting("slow_worker", "5 20 35 50"),
    "the servers wait for the first workers": WITHOUT_WORKERS | of_servers(LIVE, "0x60")
    | of_servers("thinwire_server_checkpoint_age_seconds", None),
}

# name: (changes, the minute at which the alert fires, its name and labels)
FAULTS = {
    "a server is killed": (
        gone("server1") | waiting("server", LONG) | {"thinwire_server_checkpoint_age_seconds server0": then(60, "60+15")},
        (7, 15), "ThinwireServerDown", "page", {"instance": "server1"}),
    "the lead is killed, and another server is started again": (
        gone("server0") | {"thinwire_server_awaits_rollback server1": then(0, (0, 4), 1)},
        (7, 15), "ThinwireServerDown", "page", {"instance": "server0"}),
    "server 0 cannot reach another server, after a worker was drained": (
        gone("worker1") | of_servers(LIVE, then(2, 1)) | waiting("server", LONG), (7, 15), "ThinwireServerUnreachable", "page",
        {"instance": "server0", "job_name": "mnist", "cause": "server"}),
    "a worker is killed": (
        gone("worker1") | waiting("silent_worker", "8") | of_servers(LIVE, then(2, (2, 1), 1))
        | {"thinwire_job_lost_workers server0": then(0, (0, 1), 1)},
        (7, 15), "ThinwireWorkerLost", "ticket", {"instance": "server0", "job_name": "mnist"}),
    "all workers are killed": (
        gone("worker0", "worker1") | waiting("no_worker", LONG) | of_servers(LIVE, then(2, 0))
        | {"thinwire_job_lost_workers server0": then(0, 2)},
        (11, 15), "ThinwireNoLiveWorker", "page", {"instance": "server0", "job_name": "mnist", "cause": "no_worker"}),
    "a worker hangs": (
        waiting("slow_worker", LONG), (8, 15), "ThinwireStepStalled", "page", {"instance": "server0", "job_name": "mnist"}),
    "the run diverges, and its workers end": (
        gone("worker0", "worker1") | of_servers(LIVE, then(2, 0)) | of_servers("thinwire_server_saturated_updates_total", then(0, 4))
        | {f"thinwire_job_diverged_info server0 {SYMPTOM}": f"_x{EVENT - 1} 1x40"},
        (6, 15), "ThinwireDiverged", "page", {"instance": "server0", "job_name": "mnist", "symptom": SYMPTOM}),
    "the disk of a server is full": (
        {"thinwire_server_failed_checkpoints_total server1": then(0, "0+1")},
        (6, 15), "ThinwireCheckpointFailed", "page", {"instance": "server1", "job_name": "mnist"}),
    "the job of a server hangs": (
        {"thinwire_server_status_age_seconds server1": then(0.5, "0+15")},
        (7, 15), "ThinwireStatusOld", "page", {"instance": "server1", "job_name": "mnist"}),
}


def labelled(name, labels):
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def series_of(changes):
    all_series = {f"up {process}": "1x60" for process in ALL}
    for process in ALL:
        all_series |= {f"{metric} {process}": f"{value}x60" for metric, value in metrics_of(process).items()}
    rows = []
    for key, values in (all_series | changes).items():
        metric, process, *label = key.split(" ", 2)
        labels = {"instance": process, "job": "thinwire"}
        if metric != "up":
            labels["job_name"] = "mnist"
        if label:
            labels[LABEL_NAMES[metric]] = label[0]
        if values is not None:
            rows.append({"series": labelled(metric, labels), "values": values})
    return rows


def tests():
    """The tests of a file for `promtool test rules`."""

    def check(minute, *alerts):
        return {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{minute}m",
                "exp_samples": [{"labels": labels, "value": 1} for labels in alerts]}

    def test(name, changes, checks):
        return {"name": name, "interval": "15s", "input_series": series_of(changes), "promql_expr_test": checks}

    rows = [test(f"planned: {name}", changes, [check(minute) for minute in (4, 6, 8, 11, 15)])
            for name, changes in PLANNED.items()]
    for name, (changes, minutes, alert, severity, labels) in FAULTS.items():
        firing = labelled("ALERTS", {"alertname": alert, "alertstate": "firing", "job": "thinwire", "severity": severity} | labels)
        rows.append(test(f"fault: {name}", changes, [check(4), *(check(minute, firing) for minute in minutes)]))
    return rows
