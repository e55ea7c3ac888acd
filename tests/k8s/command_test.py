"""Renders the folders of `thinwire k8s` with kubectl and checks that the jobs of a namespace share nothing.

    command_test THINWIRE
"""

import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tests.k8s.manifests import container_of, kustomize, main
from tests.k8s.schemas import Schemas

THINWIRE = os.path.abspath(sys.argv.pop())
JOB_FILE = "deploy/k8s/base/job.textproto"
# The jobs of one namespace: the flags of each, and its numbers of servers and workers. One name begins with another.
JOBS = {
    "exp1": ([], 2, 4),
    "exp1-server": (["--insecure"], 2, 4),
    "exp2": (["--servers", "3", "--workers", "5", "--cert_manager", "--queue", "gpus", "--gpu_spot"], 3, 5),
}


class Job:
    """The rendered objects of one job."""

    def __init__(self, name, flags=(), job_file=JOB_FILE):
        self.name = name
        with tempfile.TemporaryDirectory() as folder:
            command = [THINWIRE, "k8s", "--config", job_file, "--name", name, "--namespace", "team-a", "--out", f"{folder}/out", *flags]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self.objects = kustomize(f"{folder}/out")
            self.kept = kustomize(f"{folder}/out/setup")  # the objects that outlive the job
            self.state = kustomize(f"{folder}/out/state")

    def all(self, kind):
        return [item for item in self.objects + self.kept if item["kind"] == kind]

    def the(self, kind):
        (item,) = self.all(kind)
        return item

    def templates(self):
        """Returns the pod templates of the servers, in their order, and of the workers."""
        return [item["spec"]["template"] for item in self.all("StatefulSet") + self.all("Job")]

    def names(self):
        """Returns the kind and name of each object, also of those that Kubernetes or cert-manager makes from them."""
        found = [(item["kind"], item["metadata"]["name"]) for item in self.objects + self.kept]
        found += [("Pod", item["metadata"]["name"]) for item in self.state if item["kind"] == "Pod"]
        for item in self.all("StatefulSet"):
            pod = item["metadata"]["name"] + "-0"
            found.append(("Pod", pod))
            found += [("PersistentVolumeClaim", f"{claim['metadata']['name']}-{pod}") for claim in item["spec"]["volumeClaimTemplates"]]
        found += [("Secret", name) for name in self.secrets()]
        return found

    def secrets(self):
        """Returns the names of the Secrets of all pods and certificates."""
        mounted = [volume["secret"]["secretName"] for template in self.templates()
                   for volume in template["spec"]["volumes"] if "secret" in volume]
        return sorted({*mounted, *(item["spec"]["secretName"] for item in self.all("Certificate"))})

    def addresses(self):
        return self.the("ConfigMap")["data"]["addresses"].split(",")


def selectors(value):
    """Returns the labels of each label selector in a part of an object."""
    found = []
    if isinstance(value, list):
        for item in value:
            found += selectors(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            is_map = isinstance(item, dict) and item and all(isinstance(label, str) for label in item.values())
            if key == "matchLabels" or (key == "selector" and is_map):
                found.append(item)
            else:
                found += selectors(item)
    return found


def pod_selectors(job):
    """Returns the selectors of pods in all objects of a job."""
    found = [labels for item in job.objects for labels in selectors(item["spec"] if "spec" in item else {})]
    return [labels for labels in found if "kubernetes.io/metadata.name" not in labels]  # that of a namespace


class CommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jobs = {name: Job(name, flags) for name, (flags, _, _) in JOBS.items()}

    def test_two_jobs_of_a_namespace_share_no_name(self):
        for one, other in itertools.combinations(self.jobs.values(), 2):
            self.assertGreaterEqual(len(one.names()), 14)
            self.assertEqual(len(set(one.names())), len(one.names()), one.names())
            self.assertEqual(set(one.names()) & set(other.names()), set(), f"{one.name} and {other.name}")

    def test_two_jobs_of_a_namespace_share_no_address(self):
        for name, (_, servers, _) in JOBS.items():
            job = self.jobs[name]
            service = job.the("Service")["metadata"]["name"]
            pods = [item["metadata"]["name"] + "-0" for item in job.all("StatefulSet")]
            self.assertEqual(job.addresses(), [f"{pod}.{service}:7000" for pod in pods])
            self.assertEqual(len(pods), servers)
            self.assertEqual({item["spec"]["serviceName"] for item in job.all("StatefulSet")}, {service})
        for one, other in itertools.combinations(self.jobs.values(), 2):
            self.assertEqual(set(one.addresses()) & set(other.addresses()), set())

    def test_a_selector_finds_pods_of_its_own_job_only(self):
        for job in self.jobs.values():
            found = pod_selectors(job)
            # Service, budget, two policies with two peers, and the set and the spread of each server; the spread of the workers.
            self.assertEqual(len(found), 7 + 2 * len(job.all("StatefulSet")), found)
            for labels in found:
                for other in self.jobs.values():
                    selected = [template for template in other.templates() if labels.items() <= template["metadata"]["labels"].items()]
                    self.assertEqual(bool(selected), other is job, f"{job.name}: {labels} in {other.name}")
            for item in job.all("StatefulSet"):
                selected = [template for template in job.templates()
                            if item["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()]
                self.assertEqual(selected, [item["spec"]["template"]])

    def test_every_object_is_in_the_namespace_and_valid(self):
        schemas = Schemas("tests/k8s/custom_schemas.yaml")
        kinds = set()
        for job in self.jobs.values():
            for item in job.objects + job.kept + job.state:
                self.assertEqual(item["metadata"]["namespace"], "team-a")
                self.assertEqual(schemas.problems(item), [], f"{item['kind']} {item['metadata']['name']}")
                kinds.add(item["kind"])
            for item in job.objects:
                labels = {"app.kubernetes.io/name": "thinwire", "app.kubernetes.io/instance": job.name}
                self.assertLessEqual(labels.items(), item["metadata"]["labels"].items())
        self.assertEqual(kinds, {"ConfigMap", "Service", "StatefulSet", "Job", "PodDisruptionBudget", "NetworkPolicy",
                                 "PersistentVolumeClaim", "Pod", "Issuer", "Certificate"})

    def test_every_reference_has_a_target(self):
        for job in self.jobs.values():
            names = set(job.names())
            checked = 0
            for template in job.templates():
                for volume in template["spec"]["volumes"]:
                    for kind, source, field in (("PersistentVolumeClaim", "persistentVolumeClaim", "claimName"),
                                                ("ConfigMap", "configMap", "name")):
                        if source in volume:
                            self.assertIn((kind, volume[source][field]), names)
                            checked += 1
                for variable in container_of(template["spec"])["env"]:
                    reference = variable.get("valueFrom", {}).get("configMapKeyRef")
                    if reference is not None:
                        self.assertIn(("ConfigMap", reference["name"]), names)
                        checked += 1
            self.assertEqual(checked, 2 * len(job.templates()) + 1)

    def test_the_numbers_of_pods_are_those_of_the_job(self):
        for name, (_, servers, workers) in JOBS.items():
            job = self.jobs[name]
            sets = job.all("StatefulSet")
            self.assertEqual([item["spec"]["replicas"] for item in sets], [1] * servers)
            numbers = [variable["value"] for item in sets
                       for variable in container_of(item["spec"]["template"]["spec"])["env"] if variable["name"] == "THINWIRE_SERVER"]
            self.assertEqual(numbers, [str(number) for number in range(servers)])
            spec = job.the("Job")["spec"]
            self.assertEqual((spec["completions"], spec["parallelism"]), (workers, workers))
            text = job.the("ConfigMap")["data"]["job.textproto"]
            for line in (f'name: "{name}"\n', f"servers: {servers}\n", f"workers: {workers}\n"):
                self.assertIn(line, text)

    def test_a_pod_has_the_secret_of_its_own_certificate_only(self):
        for name, suffixes in (("exp1", ["server-0", "server-1", "worker"]), ("exp1-server", []),
                               ("exp2", ["server-0", "server-1", "server-2", "worker"])):
            mounted = [volume["secret"]["secretName"] for template in self.jobs[name].templates()
                       for volume in template["spec"]["volumes"] if "secret" in volume]
            self.assertEqual(mounted, [f"{name}-{suffix}" for suffix in suffixes])

    def test_cert_manager_makes_the_secrets_of_the_pods(self):
        job = self.jobs["exp2"]
        certificates = {item["metadata"]["name"]: item["spec"] for item in job.all("Certificate")}
        issuers = {item["metadata"]["name"]: item["spec"] for item in job.all("Issuer")}
        self.assertEqual(certificates.pop("exp2-ca")["issuerRef"], {"kind": "Issuer", "name": "exp2-self-signed"})
        self.assertEqual(issuers["exp2-ca"]["ca"]["secretName"], "exp2-ca")
        self.assertEqual({name: spec["dnsNames"] for name, spec in certificates.items()},
                         {"exp2-worker": ["worker.exp2.thinwire"],
                          **{f"exp2-server-{number}": [f"server-{number}.exp2.thinwire"] for number in range(3)}})
        for name, spec in certificates.items():
            self.assertEqual((spec["secretName"], spec["issuerRef"]), (name, {"kind": "Issuer", "name": "exp2-ca"}))
        for template in job.templates():
            (secret,) = [volume["secret"] for volume in template["spec"]["volumes"] if "secret" in volume]
            self.assertEqual({item["path"]: item["key"] for item in secret["items"]},
                             {"ca.pem": "ca.crt", "cert.pem": "tls.crt", "key.pem": "tls.key"})

    def test_a_changed_job_file_gets_other_names(self):
        """A Job and an immutable ConfigMap cannot be changed, so that a second `apply` would fail."""
        text = pathlib.Path(JOB_FILE).read_text(encoding="utf-8")
        with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
            file.write(text.replace("epochs: 2", "epochs: 3"))
            file.flush()
            changed = Job("exp1", job_file=file.name)
        first, again = self.jobs["exp1"], Job("exp1")
        self.assertEqual(again.objects, first.objects)
        difference = {kind for kind, name in set(changed.names()) - set(first.names())}
        self.assertEqual(difference, {"Job", "ConfigMap"})
        self.assertTrue(first.the("ConfigMap")["immutable"])
        # A Job differs only if its name does.
        for flags in (["--image", "r/thinwire:2"], ["--insecure"], ["--cert_manager"], ["--gpu_spot"], ["--workers", "5"], ["--servers", "3"]):
            other = Job("exp1", flags)
            self.assertNotEqual(other.the("Job")["spec"], first.the("Job")["spec"], flags)
            self.assertNotEqual(other.the("Job")["metadata"]["name"], first.the("Job")["metadata"]["name"], flags)

    def test_the_pod_of_the_state_mounts_the_claims_of_all_servers(self):
        for name, (_, servers, _) in JOBS.items():
            job = self.jobs[name]
            claims = {item["metadata"]["name"]: item["spec"] for item in job.state if item["kind"] == "PersistentVolumeClaim"}
            self.assertEqual(list(claims), [f"state-{name}-server-{number}-0" for number in range(servers)])
            self.assertLessEqual({("PersistentVolumeClaim", claim) for claim in claims}, set(job.names()))
            for item in job.all("StatefulSet"):
                (template,) = item["spec"]["volumeClaimTemplates"]
                self.assertEqual({str(template["spec"])}, {str(spec) for spec in claims.values()})
            (pod,) = [item["spec"] for item in job.state if item["kind"] == "Pod"]
            volumes = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]
                       if "persistentVolumeClaim" in volume}
            mounts = {mount["mountPath"]: volumes.get(mount["name"]) for mount in container_of(pod)["volumeMounts"]}
            self.assertEqual(mounts, {"/scratch": None, **{f"/claims/{number}": claim for number, claim in enumerate(claims)}})

    def test_kueue_admits_the_workers(self):
        queues = {name: job.the("Job")["metadata"]["labels"].get("kueue.x-k8s.io/queue-name") for name, job in self.jobs.items()}
        self.assertEqual(queues, {"exp1": None, "exp1-server": None, "exp2": "gpus"})

    def test_the_budget_lets_a_server_go_and_counts_no_worker(self):
        """A budget with `maxUnavailable` needs pods of a controller that can be scaled, which a Job is not."""
        for job in self.jobs.values():
            spec = job.the("PodDisruptionBudget")["spec"]
            self.assertEqual((spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]), (1, "AlwaysAllow"))
            roles = [template["metadata"]["labels"]["app.kubernetes.io/component"] for template in job.templates()
                     if spec["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()]
            self.assertEqual(roles, ["server"] * len(job.all("StatefulSet")))

    def test_workers_wait_for_their_servers(self):
        for job in self.jobs.values():
            self.assertIn("--wait_for_servers", container_of(job.the("Job")["spec"]["template"]["spec"])["args"])


if __name__ == "__main__":
    main()
