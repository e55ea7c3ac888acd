"""What an operator does before a job trains: settings, certificates, the start."""

import os
import re
import shutil
import subprocess

from tests.operate.trials import trial
from tests.program import Failed, wait_until


@trial("mistakes in a job file, a command or a flag are answered with the likely word")
def check_job(site):
    job = site.job()
    site.thinwire("config", "check", job, words=["job.textproto: ok"])
    site.write("wrong.textproto", 'name: "operate"\noptimization {\n  learning_rat: 0.1\n}\n')
    site.thinwire("config", "check", "wrong.textproto", code=78,
                  words=["wrong.textproto:3:3: learning_rat: unknown field (did you mean learning_rate?)"])
    site.thinwire("config", "show", job, words=["lease_seconds: 5"])
    site.thinwire("statsu", code=64, words=["did you mean status?"])
    site.thinwire("status", "--watsh", code=64, words=["--watsh: unknown flag (did you mean --watch?)"])
    site.worker(0, {"--wroker": "1"})
    site.ends("worker0", 64, "--wroker: unknown flag (did you mean --worker?)")
    site.server(0, {"--addreses": "1"}, wait=False)
    site.ends("server0", 64, "--addreses: unknown flag (did you mean --addresses?)")


@trial("certificates are made, shown, and not replaced without --force")
def make_certificates(site):
    issue = ["certs", "issue", "ca", "--role", "worker", "--job", "operate", "--worker", "7", "--out", "w7"]
    site.thinwire("certs", "init", "ca")
    site.thinwire(*issue)
    site.thinwire("certs", "show", "w7", words=["worker-7.operate.thinwire"])
    site.thinwire(*issue, code=78, words=["w7", "--force"])
    site.thinwire(*issue, "--force")


@trial("without credentials nobody listens or calls; status names a missing server and missing credentials")
def no_credentials(site):
    site.job()
    site.server(0, {"--credentials": None}, wait=False)
    site.ends("server0", 78, "--credentials", "--insecure")
    site.worker(0, {"--credentials": None})
    site.ends("worker0", 78, "--credentials", "--insecure")
    site.thinwire("status", THINWIRE_CREDENTIALS="", code=78, words=["--credentials", "--insecure"])
    site.thinwire("status", code=69, words=["server 0 (10.77.0.1:7000)", "onnection refused"])
    site.servers()
    site.thinwire("status", "--insecure", THINWIRE_CREDENTIALS="", code=69, words=["--credentials"])


@trial("the certificate of another process, an expired one and a torn one are named by their file")
def wrong_certificates(site):
    site.job()
    other = site.path("certs/worker-0")
    site.server(0, {"--credentials": other}, wait=False)
    site.ends("server0", 78, f"(expected server-0.operate.thinwire, got worker-0.operate.thinwire in {other})")
    expired = site.path("certs/expired")
    expire(site, site.path("certs/worker-1"), expired)
    site.worker(1, {"--credentials": expired})
    site.ends("worker1", 78, f"{expired}/cert.pem: expired")
    shutil.copy(site.path("certs/worker-0/key.pem"), site.path("certs/worker-1/key.pem"))
    site.worker(1)
    site.ends("worker1", 78, "certs/worker-1/key.pem: does not match the certificate in cert.pem")


def expire(site, source, target):
    """Copies a credentials folder with a certificate that has expired."""
    shutil.copytree(source, target)
    ca = os.path.join(site.setting.work, "ca")
    files = {"request": site.path("request.pem"), "key": f"{target}/key.pem", "certificate": f"{target}/cert.pem"}
    extensions = site.write("extensions", "subjectAltName = DNS:worker-1.operate.thinwire\nkeyUsage = digitalSignature\n")
    for command in (["req", "-new", "-key", files["key"], "-subj", "/", "-out", files["request"]],
                    ["x509", "-req", "-in", files["request"], "-CA", f"{ca}/ca.pem", "-CAkey", f"{ca}/ca-key.pem",
                     "-days", "-1", "-extfile", extensions, "-out", files["certificate"]]):
        subprocess.run(["openssl", *command], check=True, capture_output=True)


@trial("the doctor measures the links of host 3 and recommends codecs")
def doctor(site):
    job = site.job()
    for number in (0, 1):
        listener = site.start(f"doctor{number}", number + 1, f"{site.setting.programs}/thinwire", "doctor", "--listen",
                              f"10.77.0.{number + 1}:7000", "--credentials", site.path(f"certs/server-{number}"))
        wait_until(lambda one=listener: "10.77.0." in one.log() + one.output(), "the doctor does not listen")
    site.thinwire("doctor", "--config", job, "--parameters", "200000", "--compute", "20ms", THINWIRE_CREDENTIALS=site.path(
        "certs/worker-0"), words=["10.77.0.1:7000", "10.77.0.2:7000", "round trip ms", "The most exact codec within 5 %"])


@trial("the processes start in any order, and the waiting ones say for whom")
def start_in_any_order(site):
    site.job()
    site.workers()
    site.says("worker0", "waiting for server 0 (10.77.0.1:7000): ", "onnection refused")
    site.server(1)
    site.thinwire("status", words=["server 0 (10.77.0.1:7000)", "1 of 2 answered"])
    site.server(0)
    site.state("training")
    site.steps(5)
    site.lives("worker0", "worker1")
    site.shows("state       training", "2 of 2 answered", "2 of 2 live, 2 wanted")


@trial("servers without workers are starting; a missing worker is waited for, then left out")
def start_without_a_worker(site):
    site.job()
    site.servers()
    site.state("starting")
    site.worker(0)
    site.says("worker0", '"waiting"')
    site.state("training")  # after start_timeout_seconds
    site.shows("1 of 1 live, 2 wanted")


@trial("page, metrics and health checks show a healthy job")
def page(site):
    site.train()
    site.state("training")
    for kind, number in (("server", 0), ("server", 1), ("worker", 0), ("worker", 1)):
        if "<title>" not in site.get(kind, number, "/"):
            raise Failed(f"{kind} {number} has no page")
        for path in ("/healthz", "/readyz"):
            site.get(kind, number, path)
    for name, expected in (('thinwire_job_state{state="training"', 1), ('thinwire_job_state{state="waiting"', 0),
                           ("thinwire_server_live_workers", 2), ('thinwire_job_server_reachable{server="1"', 1)):
        if site.metric("server", 0, name) != expected:
            raise Failed(f"{name}: wrong value (expected {expected}, got {site.metric('server', 0, name)})")


@trial("a viewer sees the job and may not change it")
def viewer(site):
    site.train()
    certificate = site.path("certs/viewer")
    site.thinwire("status", "--credentials", certificate, words=["training"])
    for change in (["scale", "--workers", "3"], ["drain", "--worker", "1"], ["mode", "--set", "async"], ["checkpoint", "now"]):
        site.thinwire(*change, "--credentials", certificate, code=78, words=["viewer"])
    site.state("training")
    site.lives("worker1")


@trial("a worker with another job is refused by the name of the setting")
def another_job(site):
    site.train()
    other = site.job("other.textproto", rate=0.5)
    site.worker(1, {"--config": other, "--admin": None, "--state_dir": None}, name="other")
    site.ends("other", 78, "optimization.learning_rate differs from the job's (expected 0.02, got 0.5)")
    site.state("training")


@trial("a second process of a number is refused, and the first goes on")
def second_process(site):
    site.train()
    site.worker(1, {"--admin": None, "--state_dir": None}, name="second")
    site.server(1, {"--admin": None, "--listen": "10.77.0.2:7999"}, name="double", wait=False)
    site.ends("double", 69, "state_dir: another process of server 1 uses")
    site.ends("second", 76, "worker 1")
    site.steps(5)
    site.lives("worker0", "worker1")


@trial("--worker auto takes the free numbers, and a third process finds none")
def automatic_numbers(site):
    site.job()
    site.servers()
    shared = {"--credentials": site.path("certs/worker")}
    for name, host in (("first", 0), ("second", 1), ("third", 1)):
        site.process("worker", host, {**shared, "--worker": "auto", "--admin": None}, name)
        if name != "third":
            site.says(name, "this process is worker ")
    numbers = sorted(re.findall(r"this process is worker (\d)", site.started["first"].log() + site.started["second"].log()))
    if numbers != ["0", "1"]:
        raise Failed(f"wrong numbers (expected 0 and 1, got {numbers})")
    site.state("training")
    site.ends("third", 76, "number")
