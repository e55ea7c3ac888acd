"""The end of a job, and a whole job with one command."""

import os
import shutil
import signal
import subprocess

from tests.operate.trials import trial


@trial("a diverged run ends with its symptom, and the state keeps it")
def diverged(site):
    site.job(rate=1e6)
    site.servers()
    site.workers()
    site.ends("worker0", 65, "diverged")
    site.state("diverged", "diverged: worker")
    site.shows("state       diverged")


@trial("a job that ends is finished; its model is tested, and its traces are merged")
def finish(site):
    job = site.job(epochs=2)
    for number in (0, 1):
        site.server(number, {"--trace": site.path(f"server{number}.json")}, wait=False)
    for number in (0, 1):
        site.worker(number, {"--output": site.path("model.safetensors"), "--trace": site.path(f"worker{number}.json")})
    site.ends("worker0", 0, '"done"')
    site.ends("worker1", 0)
    site.state("finished")
    site.thinwire("evaluate", "--config", job, "--model", "model.safetensors", words=["test accuracy"])
    for number in (0, 1):
        site.started[f"server{number}"].signal(signal.SIGTERM)
        site.ends(f"server{number}", 0)
    site.thinwire("trace", "merge", "job.json", "server0.json", "server1.json", "worker0.json", "worker1.json",
                  words=["the trace of 4 processes"])


@trial("thinwire launch trains on both hosts over ssh, and names a machine that refuses")
def launch(site):
    job = site.job(epochs=2, durability="none", recovery="")
    ssh = start_ssh(site)
    flags = ["launch", "--config", job, "--ssh", ssh, "--remote_bin_dir", site.setting.programs, "--credentials_from",
             os.path.join(site.setting.work, "ca"), "--hosts"]
    site.write("hosts.txt", "10.77.0.1 servers=1 workers=1\n10.77.0.2 servers=1 workers=1\n")
    site.write("wrong.txt", "10.77.0.1 servers=1 workers=1\n10.77.0.2 servers=1\n10.77.0.9 workers=1\n")
    site.environment = {"THINWIRE_CREDENTIALS": ""}
    site.thinwire(*flags, "wrong.txt", code=69, words=["wrong.txt:3: 10.77.0.9: ssh: connect to host 10.77.0.9 port 22"])
    site.thinwire(*flags, "hosts.txt", "--output", "model.safetensors",
                  words=["10.77.0.2: server 1, worker 1", "2 of 2 done", "test accuracy", "model.safetensors"])


def start_ssh(site):
    """Starts an ssh server on the hosts 1 and 2. Returns the command of the client."""
    os.makedirs("/run/sshd", exist_ok=True)
    for key in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", site.path(key)], check=True)
    with open(site.path("host_key.pub"), encoding="utf-8") as file:
        site.write("known_hosts", "* " + file.read())
    server = site.write("sshd_config", f"HostKey {site.path('host_key')}\nAuthorizedKeysFile {site.path('key.pub')}\n"
                                       "PidFile none\nStrictModes no\nUsePAM no\nMaxStartups 100\n")
    client = site.write("ssh_config", f"IdentityFile {site.path('key')}\nIdentitiesOnly yes\nConnectTimeout 5\n"
                                      f"UserKnownHostsFile {site.path('known_hosts')}\n")
    for host in (1, 2):
        site.start(f"sshd{host}", host, "/usr/sbin/sshd", "-D", "-e", "-f", server)
        site.says(f"sshd{host}", "Server listening on")
    return f"ssh -F {client}"
