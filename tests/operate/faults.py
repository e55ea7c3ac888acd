"""What an operator sees when processes, links and disks fail."""

import os
import signal
import subprocess
import time

from tests.operate.trials import trial
from tests.program import Failed


@trial("a killed worker is named as silent, then as lost; its next process trains on")
def killed_worker(site):
    site.train()
    site.kill("worker1")
    site.state("waiting", "waiting for worker 1", "worker 1 has been silent for", "its lease ends in")
    site.state("training", "worker 1 was lost: its lease has ended")
    site.shows("1 of 2 live, 2 wanted", "worker 1 was lost")
    site.worker(1)
    site.steps(5)
    site.state("training")
    site.shows("2 of 2 live, 2 wanted")


@trial("a suspended worker is named and goes on; if a new process has its number, it ends")
def suspended_worker(site):
    site.train()
    site.started["worker1"].signal(signal.SIGSTOP)
    site.state("waiting", "waiting for worker 1", "worker 1 has been silent for")
    site.started["worker1"].signal(signal.SIGCONT)
    site.shows("state       training", "2 of 2 live, 2 wanted")
    site.steps(5)
    site.lives("worker0", "worker1", "server0", "server1")
    site.started["worker1"].signal(signal.SIGSTOP)
    site.state("training", "worker 1 was lost: its lease has ended")
    site.worker(1, {"--admin": None}, name="new")
    site.says("new", "joined at step")
    site.started["worker1"].signal(signal.SIGCONT)
    site.ends("worker1", 76, "another process has joined under this number")
    site.steps(5)
    site.lives("worker0", "new")


@trial("a slow worker is named as slow, not as silent")
def slow_worker(site):
    site.train()
    site.kill("worker1")
    site.worker(1, {"--delay": "600s"})
    site.state("waiting", "waiting for worker 1", "worker 1 did not finish step")
    site.lives("worker0", "worker1")
    cause = [line for line in site.get("server", 0, "/metrics").splitlines() if line.startswith("thinwire_job_waiting_seconds")]
    if len(cause) != 1 or 'cause="slow_worker"' not in cause[0]:
        raise Failed(f"wrong cause (expected slow_worker, got {cause})")


@trial("a dead server is named at once; with an event log the same workers train on")
def killed_server_with_log(site):
    site.train()
    step = site.step()
    site.kill("server1")
    site.state("waiting", "waiting for server 1", "server 1 has not answered for")
    site.shows("state       waiting for server 1", "1 of 2 answered")
    if site.metric("server", 0, 'thinwire_job_server_reachable{server="1"') != 0:
        raise Failed("the metrics show server 1 as reachable")
    site.server(1)
    site.state("training")
    site.steps(5)
    if site.step() < step:
        raise Failed(f"the job lost steps (expected at least {step}, got {site.step()})")
    site.lives("worker0", "worker1", "server0")


@trial("a dead lead is named by status and by the workers, and comes back")
def killed_lead(site):
    site.train()
    site.kill("server0")
    site.shows("server 0 (10.77.0.1:7000)", "1 of 2 answered")
    site.says("worker1", "server 0 (10.77.0.1:7000)")
    site.server(0)
    site.state("training")
    site.steps(5)
    site.lives("worker0", "worker1", "server1")


@trial("with checkpoints, all servers go back to the newest common one")
def killed_server_with_checkpoints(site):
    site.train(durability="checkpoint")
    site.thinwire("checkpoint", "now", words=["all servers have a checkpoint of step"])
    site.kill("server1")
    site.state("waiting", "waiting for server 1")
    site.server(1)
    site.says("server0", "restarting in place after a rollback")
    site.state("training")
    site.steps(5)
    site.shows("generation  2")
    site.lives("worker0", "worker1", "server0")


@trial("without durability, every worker names the dead server and ends; only a new start of all helps")
def killed_server_without_durability(site):
    site.train(durability="none", recovery="")
    site.kill("server1")
    for name in ("worker0", "worker1"):
        site.ends(name, 69, "server 1 (10.77.0.2:7000)", "silent for")
    site.shows("1 of 2 answered")
    site.server(1)
    site.worker(0)
    site.ends("worker0", 78, "server 1 lost its state")
    site.kill("server0")
    site.server(0)
    site.kill("server1")
    site.server(1)
    site.workers()
    site.steps(5)


@trial("a server suspended for less than silence_seconds is waited for")
def suspended_server(site):
    site.train(durability="none", recovery="")
    site.started["server1"].signal(signal.SIGSTOP)
    time.sleep(2)  # half of silence_seconds
    site.started["server1"].signal(signal.SIGCONT)
    site.state("training")
    site.steps(5)
    site.lives("worker0", "worker1", "server0", "server1")


@trial("a host whose link is down is named as an unreachable server, and returns")
def link_down(site):
    site.train()
    link = ["ip", "-n", f"{site.setting.prefix}-h2", "link", "set", "eth0"]
    subprocess.run([*link, "down"], check=True)
    site.state("waiting", "waiting for server 1", "server 1 has not answered for")
    subprocess.run([*link, "up"], check=True)
    site.state("training")
    site.steps(5)
    site.lives("worker0", "worker1", "server0", "server1")


@trial("a full disk ends the server with its cause; with room again it goes on")
def full_disk(site):
    small = site.path("host2")
    os.makedirs(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", small], check=True)
    site.train()
    with open(os.path.join(small, "filler"), "wb") as file:
        try:
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        except OSError:
            pass
    site.ends("server1", 74, "No space left on device")
    site.state("waiting", "waiting for server 1")
    os.remove(os.path.join(small, "filler"))
    site.server(1)
    site.state("training")
    site.steps(5)
    site.lives("worker0", "worker1")
