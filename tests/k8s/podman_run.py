"""Runs the pods of the overlays dev and mtls with podman: it makes the pods from the rendered StatefulSet and Job, as Kubernetes would, and waits until
the workers have finished. The image comes from deploy/image.sh. The pods have an internal network of their own.

    podman_run THINWIRE [OVERLAY...]

Overlay mtls trains on a tenth of the data, and loses a server's pod. Requires root and Debian's podman, runc, aardvark-dns, iptables
and catatonit; without them the program prints "skipped" and a reason.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

from tests.admin.cluster import get, wait_until
from tests.k8s.credentials import make_secrets, secret_files
from tests.k8s.manifests import addresses_of, container_of, controllers, find, make_pod, overlay, pod_count

DATA = "/usr/share/datasets/fashion-mnist"
NETWORK = "thinwire"
# crun does not run on machines with control groups of version 1, and the default limits on open files may exceed those of this machine.
CONFIGURATION = """
[containers]
default_ulimits = []
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
"""
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
        """Starts a pod and returns its name. A pod of this name is removed first, as if its node were lost."""
        pod = make_pod(self._objects, role, number)
        name = pod["metadata"]["name"]
        volumes = pod["spec"]["volumes"]
        for template in controllers(self._objects)[role][1].get("volumeClaimTemplates", []):
            claim = template["metadata"]["name"]
            volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}})
        for volume in volumes:
            if "persistentVolumeClaim" in volume:
                self.volume(volume["persistentVolumeClaim"]["claimName"])
            else:
                self._own_volumes.add(volume.get("configMap", volume)["name"])
        if self._secrets:
            folder = self._write(f"credentials-{name}", secret_files(pod, self._secrets))
            volumes[:] = [volume for volume in volumes if volume["name"] != "credentials"]
            volumes.append({"name": "credentials", "hostPath": {"path": folder}})
        for field in POD_FIELDS:
            pod["spec"].pop(field, None)
        for field in CONTAINER_FIELDS:
            container_of(pod["spec"]).pop(field, None)
        file = pathlib.Path(self._folder, f"{name}.yaml")
        file.write_text(yaml.safe_dump_all([find(self._objects, "ConfigMap", "train-job"), pod]), encoding="utf-8")
        network = NETWORK
        if role == "server":
            network += ":alias=" + addresses_of(self._objects)[number].split(":")[0]
        if name in self._pods:
            podman("pod", "rm", "--force", "--time", "0", name)
        self._pods.add(name)
        podman("kube", "play", "--network", network, str(file))
        return name

    def _write(self, folder, files):
        """Writes files that only the user of the pods can read. Returns their folder."""
        for path, content in files.items():
            file = pathlib.Path(self._folder, folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o400)
            os.chown(file, 65532, 65532)
        return str(pathlib.Path(self._folder, folder))

    def container(self, pod):
        """Returns the name of the container in a pod such as train-server-0."""
        return f"{pod}-{pod.split('-')[1]}"

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
    """Returns objects whose job trains on a tenth of the data for one epoch."""
    objects = copy.deepcopy(objects)
    files = find(objects, "ConfigMap", "train-job")["data"]
    text = re.sub(r"epochs: \d+", "epochs: 1\n  train_examples: 6000\n  test_examples: 1000", files["job.textproto"])
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
            wait_until(lambda: '"step":' in pods.log(workers[0]), "worker 0 reports a step")
            lost = servers[-1]
            if name != "dev":  # the state of dev ends with its pod
                pods.play("server", server_count - 1)
            codes = [podman("wait", pods.container(worker)) for worker in workers]
            assert codes == ["0"] * worker_count, f"{name}: exit codes of the workers (expected 0, got {codes})"
            done = [json.loads(line)["done"] for line in pods.log(workers[0]).splitlines() if '"done":' in line]
            accuracy = done[0]["final_test_accuracy"]
            assert accuracy > 0.5, f"{name}: test accuracy (expected above 0.5, got {accuracy})"
            assert (data / "model.safetensors").stat().st_size > 0
            for server in servers:
                podman("stop", "--time", "60", pods.container(server))
                code = podman("wait", pods.container(server))
                assert code == "0", f"{server}: exit code after SIGTERM (expected 0, got {code})"
            rejoins = sum(int(json.loads(line)["done"]["counters"]["rejoins"]) for worker in workers
                          for line in pods.log(worker).splitlines() if '"done":' in line)
            if name != "dev":
                assert rejoins >= 1, f"{name}: no worker joined the replaced {lost} again"
            return (f"{name}: {server_count} servers and {worker_count} workers, exit codes 0, "
                    f"test accuracy {accuracy:.4f}, {rejoins} rejoins of a replaced server")


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
    with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as configuration:
        configuration.write(CONFIGURATION)
        configuration.flush()
        os.environ["CONTAINERS_CONF"] = configuration.name
        results = [run_overlay(name, thinwire) for name in sys.argv[2:] or ("dev", "mtls")]
    print("; ".join(results))


if __name__ == "__main__":
    main()
