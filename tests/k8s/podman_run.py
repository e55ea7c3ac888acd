"""Runs the pods of the overlays dev and mtls with podman: it makes the pods from the rendered StatefulSet and Job, as Kubernetes would, and waits until
the workers have finished. The image comes from deploy/image.sh. The pods have an internal network of their own.

    podman_run THINWIRE [OVERLAY...]

The job of mtls trains on less data. Its number of workers is raised, a server's pod is lost, and at the end its state is
converted to another number of servers, with the commands of docs/kubernetes.md. Requires root and Debian's podman, runc, aardvark-dns, iptables
and catatonit; without them the program prints "skipped" and a reason.
"""

import copy
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import yaml

from tests.admin.cluster import get, wait_until
from tests.k8s.credentials import make_secrets, secret_files
from tests.k8s.manifests import addresses_of, container_of, controllers, find, job_text, make_pod, overlay, pod_count, render

DATA = "/usr/share/datasets/fashion-mnist"
NETWORK = "thinwire"
# Fields of a pod that podman does not know. This program asks the probes itself.
POD_FIELDS = ("topologySpreadConstraints", "subdomain")
CONTAINER_FIELDS = ("ports", "livenessProbe", "readinessProbe", "lifecycle")


def podman(*arguments, **options):
    result = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=False, timeout=600, **options)
    assert result.returncode == 0, f"podman {' '.join(arguments)}: {result.stderr}"
    return result.stdout.strip()


class Pods:
    """The pods of one overlay, as a context manager that removes pods, volumes and network at the end."""

    def __init__(self, objects, folder, secrets):
        self._objects = objects
        self._folder = folder
        self._secrets = secrets
        self._pods = set()
        self._volumes = {}  # the folder of each claim
        self._own_volumes = set()  # podman makes a volume for each emptyDir and each ConfigMap

    def __enter__(self):
        podman("network", "create", "--internal", NETWORK)
        return self

    def __exit__(self, kind, error, trace):
        for pod in sorted(self._pods):
            if error is not None:
                print(f"{pod}:\n{self.log(pod)[-3000:]}")
            podman("pod", "rm", "--force", "--time", "0", pod)
        for volume in self._volumes.keys() | self._own_volumes:
            podman("volume", "rm", "--force", volume)
        podman("network", "rm", NETWORK)

    def volume(self, claim):
        """Returns the folder of a claim, which is a volume of podman."""
        if claim not in self._volumes:
            podman("volume", "create", claim)
            folder = podman("volume", "inspect", "--format={{.Mountpoint}}", claim)
            os.chown(folder, 65532, 65532)
            self._volumes[claim] = pathlib.Path(folder)
        return self._volumes[claim]

    def play(self, role, number):
        """Starts a server or a worker and returns the name of its pod."""
        pod = make_pod(self._objects, role, number)
        name = pod["metadata"]["name"]
        volumes = pod["spec"]["volumes"]
        for template in controllers(self._objects)[role][1].get("volumeClaimTemplates", []):
            claim = template["metadata"]["name"]
            volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}})
        if self._secrets:
            for path, content in secret_files(pod, self._secrets).items():
                self.write(f"{name}/{path}", content)
            volumes[:] = [volume for volume in volumes if volume["name"] != "credentials"]
            volumes.append({"name": "credentials", "hostPath": {"path": f"{self._folder}/{name}"}})
        for field in POD_FIELDS:
            pod["spec"].pop(field, None)
        for field in CONTAINER_FIELDS:
            container_of(pod["spec"]).pop(field, None)
        self.start(pod, "" if role == "worker" else ":alias=" + addresses_of(self._objects)[number].split(":")[0])
        return name

    def start(self, pod, network_options=""):
        """Starts a pod. A pod of the same name is removed first, as if its node were lost."""
        name = pod["metadata"]["name"]
        for volume in pod["spec"]["volumes"]:
            if "persistentVolumeClaim" in volume:
                self.volume(volume["persistentVolumeClaim"]["claimName"])
            elif "hostPath" not in volume:
                self._own_volumes.add(volume.get("configMap", volume)["name"])
        file = pathlib.Path(self._folder, f"{name}.yaml")
        file.write_text(yaml.safe_dump_all([find(self._objects, "ConfigMap", "train-job"), pod]), encoding="utf-8")
        if name in self._pods:
            podman("pod", "rm", "--force", "--time", "0", name)
        self._pods.add(name)
        podman("kube", "play", "--network", NETWORK + network_options, str(file))

    def write(self, path, content):
        """Writes a file that only the user of the pods can read."""
        file = pathlib.Path(self._folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o400)
        os.chown(file, 65532, 65532)
        return str(file)

    def container(self, pod):
        """Returns the name of the only container in a pod, except podman's own."""
        (name,) = [name for name in podman("ps", "--all", "--filter", f"pod={pod}", "--format={{.Names}}").split()
                   if not name.endswith("-infra")]
        return name

    def run_page_commands(self, pod):
        """Runs the commands that docs/kubernetes.md runs in a pod. Returns their output."""
        page = pathlib.Path("docs/kubernetes.md").read_text(encoding="utf-8")
        commands = re.findall(rf"^kubectl -n thinwire exec {pod} -- (.*)$", page, re.MULTILINE)
        assert commands, f"docs/kubernetes.md has no command for {pod}"
        return "".join(podman("exec", self.container(pod), *shlex.split(command)) + "\n" for command in commands)

    def log(self, pod):
        command = ["podman", "logs", self.container(pod)]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout

    def get(self, pod, path):
        """Returns (status, text) of a page of the admin port."""
        infra = podman("pod", "inspect", "--format={{.InfraContainerID}}", pod)
        address = podman("inspect", f"--format={{{{.NetworkSettings.Networks.{NETWORK}.IPAddress}}}}", infra)
        try:
            return get(f"{address}:9100", path)
        except OSError as error:  # the container has just started
            return 0, str(error)

    def check_container(self, pod, role):
        """Compares a running container with its pod."""
        spec = container_of(controllers(self._objects)[role][1]["template"]["spec"])
        (running,) = json.loads(podman("inspect", self.container(pod)))
        limit = spec["resources"]["limits"]["memory"]
        expected = int(limit[:-2]) << {"Mi": 20, "Gi": 30}[limit[-2:]]
        assert running["HostConfig"]["Memory"] == expected, f"{pod}: wrong memory limit (expected {limit})"
        assert running["HostConfig"]["ReadonlyRootfs"], f"{pod}: the root file system is writable"
        assert running["Config"]["User"].startswith("65532"), f"{pod}: wrong user (expected 65532, got {running['Config']['User']})"
        assert not running["EffectiveCaps"], f"{pod}: has capabilities (expected none, got {running['EffectiveCaps']})"
        path = spec["readinessProbe"]["httpGet"]["path"]
        wait_until(lambda: self.get(pod, path)[0] == 200, f"{pod} is ready")
        path = spec["livenessProbe"]["httpGet"]["path"]
        assert self.get(pod, path)[0] == 200, f"{pod}: not healthy"


def shorten(objects):
    """Returns objects whose job trains on less data for one epoch."""
    objects = copy.deepcopy(objects)
    files = find(objects, "ConfigMap", "train-job")["data"]
    text = re.sub(r"epochs: \d+", "epochs: 1\n  train_examples: 18000\n  test_examples: 1000", files["job.textproto"])
    assert text != files["job.textproto"]
    files["job.textproto"] = text
    return objects


def run_overlay(name, thinwire):
    """Runs all pods of an overlay. Returns one line with the result."""
    objects = shorten(overlay(name)) if name != "dev" else overlay(name)
    server_count, worker_count = pod_count(objects, "server"), pod_count(objects, "worker")
    with tempfile.TemporaryDirectory() as folder:
        secrets = make_secrets(thinwire, folder) if name != "dev" else {}
        with Pods(objects, folder, secrets) as pods:
            data = pods.volume("train-data")
            shutil.copytree(DATA, data, dirs_exist_ok=True)
            servers = [pods.play("server", i) for i in range(server_count)]
            for server in servers:
                pods.check_container(server, "server")
            workers = [pods.play("worker", i) for i in range(worker_count)]
            for worker in workers:
                pods.check_container(worker, "worker")
            if name != "dev":
                scaled = pods.run_page_commands("train-server-0")
                assert scaled == f"workers {worker_count} -> {worker_count + 2}\n", scaled
                workers += [pods.play("worker", worker_count + i) for i in range(2)]
                for worker in workers[worker_count:]:
                    pods.check_container(worker, "worker")  # a member of the job before the server is lost
                pods.play("server", server_count - 1)  # the state of dev would end with its pod
            codes = [podman("wait", pods.container(worker)) for worker in workers]
            assert set(codes) == {"0"}, f"{name}: exit codes of the workers (expected 0, got {codes})"
            done = [done_event(pods.log(worker)) for worker in workers]
            accuracy = done[0]["final_test_accuracy"]
            assert accuracy > 0.5, f"{name}: test accuracy (expected above 0.5, got {accuracy})"
            assert (data / "model.safetensors").stat().st_size > 0
            rejoins = sum(int(event["counters"]["rejoins"]) for event in done)
            for server in servers:
                podman("stop", "--time", "60", pods.container(server))
                code = podman("wait", pods.container(server))
                assert code == "0", f"{server}: exit code after SIGTERM (expected 0, got {code})"
            result = f"{name}: {server_count} servers and {len(workers)} workers, test accuracy {accuracy:.4f}"
            if name == "dev":
                return result
            assert rejoins > 0, f"{name}: no worker joined the replaced server again"
            return f"{result}, {rejoins} rejoins of a replaced server, {convert(pods, objects)}"


def convert(pods, objects):
    """Converts the state of the stopped servers to one more server with the commands of docs/kubernetes.md. Returns the step."""
    pods.start(find(render("state"), "Pod", "train-state"))
    server_count = pod_count(objects, "server")
    job = job_text(objects).replace(f"servers: {server_count}\n", f"servers: {server_count + 1}\n")
    file = pods.write("job.textproto", job.encode())
    podman("cp", file, f"{pods.container('train-state')}:/scratch/job.textproto")
    output = pods.run_page_commands("train-state")
    found = re.search(rf"{server_count + 1} servers at step \d+", output)
    assert found is not None, output
    for server in range(server_count + 1):
        folder = pods.volume(f"state-train-server-{server}")
        assert [path.name for path in folder.iterdir()] == [f"server-{server}"], sorted(folder.iterdir())
    return f"converted to {found[0]}"


def done_event(log):
    """Returns the `done` event in a worker's output."""
    (event,) = [json.loads(line)["done"] for line in log.splitlines() if line.startswith("{") and '"done":' in line]
    return event


def missing():
    """Returns the reason why this machine cannot run pods, or an empty string."""
    if os.geteuid() != 0:
        return "not root"
    for program in ("kubectl", "podman", "runc", "iptables", "catatonit"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if subprocess.run(["podman", "image", "exists", "localhost/thinwire:dev"], check=False).returncode != 0:
        return "the image localhost/thinwire:dev does not exist (deploy/image.sh builds it)"
    return ""


def main():
    thinwire = os.path.abspath(sys.argv[1])
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return
    os.environ["CONTAINERS_CONF"] = os.path.abspath("tests/containers.conf")
    results = [run_overlay(name, thinwire) for name in sys.argv[2:] or ("dev", "mtls")]
    print("; ".join(results))


if __name__ == "__main__":
    main()
