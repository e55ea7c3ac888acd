"""Renders kustomizations, such as those of deploy/k8s, and finds objects in them."""

import copy
import functools
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

JOBS = ("dev", "mtls", "gpu-spot", "jobset")  # the overlays that start a job


def kustomize(folder):
    """Returns the objects of a kustomization."""
    result = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{folder}: {result.stderr}"
    return list(yaml.load_all(result.stdout, yaml.CSafeLoader))


@functools.cache
def render(folder):
    """Returns the objects of a folder of deploy/k8s. Callers do not change them."""
    with tempfile.TemporaryDirectory() as temporary:
        # Bazel passes symbolic links, whose targets kustomize refuses because they are outside its folder.
        tree = shutil.copytree("deploy", f"{temporary}/deploy")
        return kustomize(f"{tree}/k8s/{folder}")


def overlay(name):
    """Returns the objects of an overlay that starts a job, with those that outlive the job."""
    return render(f"overlays/{name}") + render("setup")


def find(objects, kind, name):
    """Returns the only object of this kind and name."""
    found = [item for item in objects if item["kind"] == kind and item["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind} {name}: wrong number of objects (expected 1, got {len(found)})"
    return found[0]


def container_of(pod_spec):
    """Returns the only container of a pod."""
    (container,) = pod_spec["containers"]
    return container


def addresses_of(objects):
    return find(objects, "ConfigMap", "train-job")["data"]["addresses"].split(",")


def job_text(objects):
    return find(objects, "ConfigMap", "train-job")["data"]["job.textproto"]


def job_number(objects, field, default=None):
    """Returns the value of a numeric field of the job file."""
    found = re.search(rf"^\s*{field}: ([\d.]+)$", job_text(objects), re.MULTILINE)
    return float(found[1]) if found else default


def controllers(objects):
    """Returns {role: (kind, spec)} of the controllers of servers and workers. The spec has a pod template."""
    jobsets = [item for item in objects if item["kind"] == "JobSet"]
    if not jobsets:
        return {
            "server": ("StatefulSet", find(objects, "StatefulSet", "train-server")["spec"]),
            "worker": ("Job", find(objects, "Job", "train-worker")["spec"]),
        }
    return {job["name"]: ("Job", job["template"]["spec"]) for job in jobsets[0]["spec"]["replicatedJobs"]}


def pod_count(objects, role):
    """Returns the number of pods of a StatefulSet or an Indexed Job."""
    spec = controllers(objects)[role][1]
    return spec["replicas"] if "replicas" in spec else spec["completions"]


def make_pod(objects, role, number):
    """Returns the pod that the StatefulSet or the Indexed Job of a role makes from its template. The variables in the container's
    arguments are replaced, as the kubelet does."""
    kind, spec = controllers(objects)[role]
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(spec["template"])}
    metadata = pod["metadata"]
    metadata["name"] = f"train-{role}-{number}"
    if kind == "StatefulSet":
        metadata["labels"]["apps.kubernetes.io/pod-index"] = str(number)
        pod["spec"]["subdomain"] = spec["serviceName"]
    else:
        metadata["annotations"] = {"batch.kubernetes.io/job-completion-index": str(number)}
    pod["spec"]["hostname"] = metadata["name"]
    container = container_of(pod["spec"])
    container["args"] = [argument.replace(f"$(THINWIRE_{role.upper()})", str(number)) for argument in container["args"]]
    return pod


def main():
    """Runs the tests of the calling program. Without kubectl it reports one skipped case, which does not count as passed."""
    if shutil.which("kubectl") is not None:
        unittest.main()
    print("skipped: kubectl is not installed")
    path = os.environ.get("XML_OUTPUT_FILE")
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write('<testsuite name="k8s" tests="1"><testcase name="all"><skipped/></testcase></testsuite>')
