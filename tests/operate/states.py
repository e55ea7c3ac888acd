"""What an operator does with checkpoints: on request, back to older ones, on other servers, in a mirror."""

import os
import re
import shutil

from tests.operate.trials import gather, make_folder, stop, trial


@trial("a checkpoint on request is listed, verified and exported")
def checkpoint_now(site):
    site.train(durability="checkpoint")
    step = re.search(r"all servers have a checkpoint of step (\d+)", site.thinwire("checkpoint", "now"))[1]
    for number in (0, 1):
        site.thinwire("checkpoint", "list", site.path(f"host{number + 1}"), words=[step])
        site.thinwire("checkpoint", "verify", site.path(f"host{number + 1}"), words=[f"server-{number}"])
    gather(site)
    site.thinwire("checkpoint", "export", "all", "--out", "model.safetensors", words=["model.safetensors"])


@trial("a running job goes back to a checkpoint; a step without one is refused with the steps")
def restore_running(site):
    site.train(durability="checkpoint", recovery="checkpoint_seconds: 600 keep_checkpoints: 3")
    step = re.search(r"all servers have a checkpoint of step (\d+)", site.thinwire("checkpoint", "now"))[1]
    site.steps(50)
    site.thinwire("checkpoint", "restore", "--step", "999999", code=78, words=[step])
    site.thinwire("checkpoint", "restore", "--step", step, words=[step])
    site.state("training")
    site.steps(5)
    site.shows("generation  2")
    site.lives("worker0", "worker1", "server0", "server1")


@trial("a stopped job goes back to an older checkpoint and resumes there")
def restore_stopped(site):
    site.train(durability="checkpoint", recovery="checkpoint_seconds: 600 keep_checkpoints: 3")
    step = re.search(r"all servers have a checkpoint of step (\d+)", site.thinwire("checkpoint", "now"))[1]
    site.steps(50)
    stop(site)
    gather(site)
    site.thinwire("checkpoint", "list", "all", words=[step])
    site.thinwire("checkpoint", "restore", "all", "--step", step, words=[f"all: went back to step {step}"])
    for number in (0, 1):
        shutil.rmtree(site.path(f"host{number + 1}/server-{number}"))
        os.rename(site.path(f"all/server-{number}"), site.path(f"host{number + 1}/server-{number}"))
    site.servers()
    site.workers()
    site.steps(5)


@trial("a stopped job resumes with three servers in place of two")
def other_servers(site):
    site.train()
    stop(site)
    gather(site)
    job = site.job(servers=3)
    site.thinwire("checkpoint", "import", "--config", job, "--from", "all", "--state_dir", "new", words=["3 servers at step"])
    for host in (1, 2):
        shutil.rmtree(site.path(f"host{host}"))  # with the residuals, which belong to the old shards
    for number in (0, 1, 2):
        os.rename(site.path(f"new/server-{number}"), make_folder(site, f"host{number % 2 + 1}") + f"/server-{number}")
    site.servers()
    site.workers()
    site.steps(5)
    site.shows("3 of 3 answered")


@trial("a mirror brings back a job whose machines are lost")
def mirror(site):
    site.train(durability="checkpoint")
    site.thinwire("checkpoint", "now")
    bucket = make_folder(site, "bucket")
    for host in (1, 2):
        site.thinwire("checkpoint", "mirror", bucket, "--state_dir", site.path(f"host{host}"), words=["mirrored 1 server"])
    for name in ("worker0", "worker1", "server0", "server1"):
        site.kill(name)
    for host in (1, 2):
        shutil.rmtree(site.path(f"host{host}"))
        site.thinwire("checkpoint", "fetch", bucket, "--state_dir", site.path(f"host{host}"), "--server", str(host - 1),
                      words=["fetched"])
    site.servers()
    site.workers()
    site.state("training")
    site.steps(5)
