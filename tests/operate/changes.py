"""What an operator changes while a job runs: processes, their number, the mode, certificates."""

import os
import re
import shutil
import signal

from tests.operate.trials import trial
from tests.program import Failed, wait_until


@trial("a drained worker leaves with 0, the others go on, and it may return")
def drain_worker(site):
    site.train(lease=600)
    site.thinwire("drain", "--worker", "1", words=["worker 1 finishes its step, pushes its residual, leaves and exits with code 0"])
    site.ends("worker1", 0)
    site.steps(5)
    site.state("training")
    site.shows("1 of 2 live, 2 wanted")
    site.thinwire("drain", "--worker", "3", code=78, words=["worker 3"])
    site.worker(1)
    site.steps(5)
    site.shows("2 of 2 live, 2 wanted")


@trial("a drained server ends with 0, is waited for, and continues")
def drain_server(site):
    site.train(durability="checkpoint")
    step = site.step()
    site.thinwire("drain", "--server", "1", words=["server 1 stops and exits with code 0"])
    site.ends("server1", 0)
    site.state("waiting", "waiting for server 1")
    site.server(1)
    site.state("training")
    site.steps(5)
    if site.step() < step:
        raise Failed(f"the drained server lost steps (expected at least {step}, got {site.step()})")
    site.lives("worker0", "worker1")


@trial("SIGTERM at one worker: it ends with 75, and the others do not wait for its lease")
def stop_worker(site):
    site.train(lease=600)
    site.started["worker1"].signal(signal.SIGTERM)
    site.ends("worker1", 75)
    site.steps(20)
    site.state("training")
    if site.status()["problems"]:
        raise Failed(f"a stopped worker is no problem (expected none, got {site.status()['problems']})")


@trial("a job that is stopped in order is stopping, and resumes at its step")
def stop_and_resume(site):
    site.train()
    for name in ("worker0", "worker1"):
        site.started[name].signal(signal.SIGTERM)
    for name in ("worker0", "worker1"):
        site.ends(name, 75)
    site.state("stopping")
    step = site.step()
    for name in ("server0", "server1"):
        site.started[name].signal(signal.SIGTERM)
        site.ends(name, 0)
    site.servers()
    site.workers()
    site.steps(5)
    if site.step() < step:
        raise Failed(f"the job lost steps (expected at least {step}, got {site.step()})")


@trial("scale: a third worker joins, the highest leaves with 0, too many are refused")
def scale(site):
    site.train()
    site.thinwire("scale", "--workers", "3", words=["workers 2 -> 3"])
    site.worker(2)
    site.shows("3 of 3 live, 3 wanted")
    site.worker(3)
    site.ends("worker3", 76, "worker: above the number of workers (expected below 3, got 3)")
    site.thinwire("scale", "--workers", "2", words=["workers 3 -> 2"])
    site.ends("worker2", 0)
    site.thinwire("scale", "--workers", "5", code=78, words=["4, the value of max_workers, got 5)"])
    site.state("training")


@trial("mode: sync to backup and back; wrong flags are refused, and where training may diverge --force is needed")
def change_mode(site):
    site.train(optimizer="momentum", rate=0.05)
    site.thinwire("mode", "--set", "backup", "--backup", "1", words=["mode sync -> backup from step "])
    wait_until(lambda: re.search(r"^mode +backup", site.command("status")[1], re.MULTILINE), "the mode does not change")
    site.thinwire("mode", "--set", "sync", "--slack", "2", code=64, words=["--slack"])
    site.thinwire("mode", "--set", "backup", "--backup", "2", code=78, words=["below 2, the value of workers, got 2)"])
    site.thinwire("mode", "--set", "sync", words=["mode backup -> sync from step "])
    site.thinwire("mode", "--set", "async", code=78, words=["momentum", "--force"])
    site.thinwire("mode", "--set", "async", "--force", words=["mode sync -> async from step "])
    site.steps(5)


@trial("certificates are replaced under load: the logs name the file, and no step fails")
def rotate(site):
    site.train()
    name = "thinwire_certificate_read_timestamp_seconds"
    before = {kind: site.metric(kind, 0, name) for kind in ("server", "worker")}
    for kind in before:
        site.thinwire("certs", "issue", os.path.join(site.setting.work, "ca"), "--role", kind, "--job", "operate", f"--{kind}", "0",
                      "--out", site.path(f"certs/{kind}-0"), "--force")
    site.says("server0", f"{site.path('certs/server-0/cert.pem')}: read again, valid until")
    site.says("worker0", f"{site.path('certs/worker-0/cert.pem')}: read again, valid until")
    for kind, time in before.items():
        if not site.metric(kind, 0, name) > time:
            raise Failed(f"{name} of {kind} 0 has not risen (got {time})")
    site.steps(5)
    site.lives("worker0", "worker1", "server0", "server1")


@trial("a torn certificate is named in the log of a running process until it is whole")
def torn(site):
    site.train()
    key = site.path("certs/worker-0/key.pem")
    with open(key, encoding="utf-8") as file:
        whole = file.read()
    shutil.copy(site.path("certs/worker-1/key.pem"), key)
    site.says("worker0", f"{key}: does not match the certificate in cert.pem")
    site.steps(5)
    site.write("certs/worker-0/key.pem", whole)
    site.says("worker0", "cert.pem: read again, valid until")
    site.lives("worker0", "worker1")
