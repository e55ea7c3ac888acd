"""Renders the overlays of deploy/k8s, validates their objects, and compares them with the programs.

    overlays_test SERVER WORKER THINWIRE
"""

import copy
import functools
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

from tests.k8s.manifests import (JOBS, addresses_of, container_of, controllers, find, job_number, job_text, main, overlay,
                                 pod_count, render)
from tests.k8s.schemas import Schemas

THINWIRE = sys.argv.pop()
PROGRAMS = {"worker": sys.argv.pop(), "server": sys.argv.pop()}
FOLDERS = ("setup", "state", "overlays/monitoring", *(f"overlays/{name}" for name in JOBS))


@functools.cache
def output_of(*command):
    """Returns the standard output of a command that must succeed."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return result.stdout


def help_flags(*command):
    """Returns the flags in the help text of a program."""
    return set(re.findall(r"^  (?:-h,)?(--\w+)", output_of(*command, "--help"), re.MULTILINE))


def port_in(container, flag):
    """Returns the port in the argument --FLAG=HOST:PORT."""
    (port,) = re.findall(rf"--{flag}=\S+:(\d+)", " ".join(container["args"]))
    return int(port)


def pods():
    """Returns (name for messages, objects, role, spec of the controller, spec of the pod) for the servers and workers of all jobs."""
    found = []
    for name in JOBS:
        objects = overlay(name)
        for role, (_, spec) in controllers(objects).items():
            found.append((f"{name}: {role}", objects, role, spec, spec["template"]["spec"]))
    assert len(found) == 2 * len(JOBS), found
    return found


class ObjectsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = Schemas("tests/k8s/custom_schemas.yaml")

    def test_promise12_all_overlays_render_and_are_valid(self):
        kinds = set()
        for folder in FOLDERS:
            for item in render(folder):
                self.assertEqual(self.schemas.problems(item), [], f"{folder}: {item['kind']} {item['metadata']['name']}")
                kinds.add(item["kind"])
        self.assertEqual(kinds, {"Namespace", "ConfigMap", "Service", "PersistentVolumeClaim", "StatefulSet", "Job", "JobSet", "Pod",
                                 "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PodMonitor", "PrometheusRule"})

    def test_an_unknown_field_is_refused(self):
        places = [
            ("mtls", "StatefulSet", "train-server", ("spec", "template", "spec", "containers", 0, "livenessProbe")),
            ("mtls", "Job", "train-worker", ("spec", "podFailurePolicy", "rules", 0)),
            ("mtls", "NetworkPolicy", "train-pods", ("spec", "ingress", 0)),
            ("jobset", "JobSet", "train", ("spec", "network")),
            ("jobset", "JobSet", "train", ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")),
            ("monitoring", "ServiceMonitor", "thinwire-server", ("spec", "endpoints", 0)),
            ("monitoring", "PodMonitor", "thinwire-worker", ("spec",)),
            ("monitoring", "PrometheusRule", "thinwire", ("spec", "groups", 0, "rules", 0)),
        ]
        for name, kind, item_name, path in places:
            item = copy.deepcopy(find(render(f"overlays/{name}"), kind, item_name))
            place = item
            for key in path:
                place = place[key]
            place["extraField"] = 1
            problems = self.schemas.problems(item)
            self.assertEqual(len(problems), 1, f"{kind} {path}: {problems}")
            self.assertIn("'extraField' was unexpected", problems[0])

    def test_pods_meet_the_restricted_standard(self):
        labels = find(render("setup"), "Namespace", "thinwire")["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "restricted")
        specs = [(name, pod) for name, _, _, _, pod in pods()]
        specs += [(name, find(render(folder), "Pod", name)["spec"]) for folder, name in
                  (("setup", "train-data"), ("state", "train-state"))]
        for name, pod in specs:
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name)
            self.assertTrue(pod["securityContext"]["runAsNonRoot"], name)
            self.assertGreater(pod["securityContext"]["runAsUser"], 0, name)
            self.assertFalse(pod["automountServiceAccountToken"], name)
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & pod.keys(), name)
            security = container_of(pod)["securityContext"]
            self.assertEqual((security["allowPrivilegeEscalation"], security["capabilities"]), (False, {"drop": ["ALL"]}), name)
            allowed = {"name", "configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
            self.assertLessEqual({key for volume in pod["volumes"] for key in volume}, allowed, name)
        for name, _, _, _, pod in pods():
            self.assertTrue(container_of(pod)["securityContext"]["readOnlyRootFilesystem"], name)

    def test_every_reference_has_a_target(self):
        for name, objects, _, spec, pod in pods():
            volumes = {volume["name"] for volume in pod["volumes"]}
            volumes |= {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
            self.assertEqual({mount["name"] for mount in container_of(pod)["volumeMounts"]}, volumes, name)
            for volume in pod["volumes"]:
                if "persistentVolumeClaim" in volume:
                    find(objects, "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
                if "configMap" in volume:
                    find(objects, "ConfigMap", volume["configMap"]["name"])
            for variable in container_of(pod)["env"]:
                reference = variable["valueFrom"].get("configMapKeyRef")
                if reference is not None:
                    self.assertIn(reference["key"], find(objects, "ConfigMap", reference["name"])["data"], name)

    def test_every_selector_finds_its_pods(self):
        for name in JOBS:
            objects = overlay(name) + render("overlays/monitoring")
            specs = {role: spec for role, (_, spec) in controllers(objects).items()}
            service = find(objects, "Service", "train-servers")
            selectors = [
                (service["spec"]["selector"], {"server"}),
                (find(objects, "PodDisruptionBudget", "train-server")["spec"]["selector"]["matchLabels"], {"server"}),
                (find(objects, "NetworkPolicy", "train-server")["spec"]["podSelector"]["matchLabels"], {"server"}),
                (find(objects, "NetworkPolicy", "train-pods")["spec"]["podSelector"]["matchLabels"], {"server", "worker"}),
                (find(objects, "PodMonitor", "thinwire-worker")["spec"]["selector"]["matchLabels"], {"worker"}),
                (specs["server"].get("selector", {}).get("matchLabels", service["spec"]["selector"]), {"server"}),
            ]
            for selector, roles in selectors:
                selected = {role for role, spec in specs.items()
                            if selector.items() <= spec["template"]["metadata"]["labels"].items()}
                self.assertEqual(selected, roles, f"{name}: {selector}")
            monitor = find(objects, "ServiceMonitor", "thinwire-server")["spec"]["selector"]["matchLabels"]
            self.assertLessEqual(monitor.items(), service["metadata"]["labels"].items(), name)


class JobTest(unittest.TestCase):
    def test_job_files_are_valid(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in JOBS:
                path = pathlib.Path(folder, f"{name}.textproto")
                path.write_text(job_text(overlay(name)), encoding="utf-8")
                self.assertEqual(output_of(THINWIRE, "config", "check", str(path)), f"{path}: ok\n")

    def test_there_are_as_many_pods_as_the_job_file_says(self):
        for name, objects, role, spec, _ in pods():
            self.assertEqual(pod_count(objects, role), job_number(objects, f"{role}s"), name)
            self.assertEqual(spec.get("completions"), spec.get("parallelism"), name)

    def test_addresses_are_the_names_of_the_server_pods(self):
        for name in JOBS:
            objects = overlay(name)
            kind, spec = controllers(objects)["server"]
            service = find(objects, "Service", "train-servers")["spec"]
            self.assertEqual((service["clusterIP"], service["publishNotReadyAddresses"]), ("None", True))
            # Kubernetes names the pods of a StatefulSet NAME-N, and JobSet those of a replicated job JOBSET-NAME-0-N.
            if kind == "StatefulSet":
                pod, subdomain = "train-server", spec["serviceName"]
            else:
                pod, subdomain = "train-server-0", find(objects, "JobSet", "train")["spec"]["network"]["subdomain"]
            self.assertEqual(subdomain, "train-servers")
            expected = [f"{pod}-{i}.train-servers:7000" for i in range(pod_count(objects, "server"))]
            self.assertEqual(addresses_of(objects), expected, name)

    def test_nodes_with_servers_can_be_drained(self):
        for name in JOBS:
            objects = overlay(name)
            budget = dict(find(objects, "PodDisruptionBudget", "train-server")["spec"])
            del budget["selector"]
            # The Job of a JobSet cannot be scaled, and its budget may name no maximum.
            limit = {"maxUnavailable": 1} if name != "jobset" else {"minAvailable": pod_count(objects, "server") - 1}
            self.assertEqual(budget, {**limit, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, name)

    def test_a_job_replaces_a_server_that_was_stopped(self):
        """A Job does not replace a pod that ended with exit code 0; a StatefulSet does."""
        for name in JOBS:
            kind, spec = controllers(overlay(name))["server"]
            arguments = container_of(spec["template"]["spec"])["args"]
            self.assertEqual("--replaceable" in arguments, kind == "Job", name)

    def test_names_are_resolved_at_any_address(self):
        for name in JOBS:
            rules = find(overlay(name), "NetworkPolicy", "train-pods")["spec"]["egress"]
            (ports,) = [rule["ports"] for rule in rules if "to" not in rule]
            self.assertEqual({(port["port"], port["protocol"]) for port in ports},
                             {(53, "UDP"), (53, "TCP"), (5353, "UDP"), (5353, "TCP")}, name)

    def test_only_workers_run_on_spot_machines(self):
        specs = {role: spec["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                 for role, (_, spec) in controllers(overlay("gpu-spot")).items()}
        labels = {role: [(item["key"], item["operator"], *item["values"]) for term in spec["nodeSelectorTerms"]
                         for item in term["matchExpressions"]] for role, spec in specs.items()}
        # A worker needs one of the labels, a server none of them: terms are alternatives, expressions of a term are not.
        self.assertEqual(len(specs["worker"]["nodeSelectorTerms"]), len(labels["worker"]))
        self.assertEqual(len(specs["server"]["nodeSelectorTerms"]), 1)
        self.assertEqual([(key, "In", value) for key, _, value in labels["server"]], labels["worker"])
        self.assertEqual({operator for _, operator, _ in labels["server"]}, {"NotIn"})
        self.assertGreaterEqual(len(labels["worker"]), 4)

    def test_ports_agree(self):
        for name, objects, role, _, pod in pods():
            container = container_of(pod)
            expected = {"admin": port_in(container, "admin")}
            if role == "server":
                expected["grpc"] = port_in(container, "listen")
                self.assertEqual({int(address.split(":")[1]) for address in addresses_of(objects)}, {expected["grpc"]}, name)
                service = find(objects, "Service", "train-servers")["spec"]["ports"]
                self.assertEqual({port["name"]: port["port"] for port in service}, expected, name)
                self.assertTrue(all(port["name"] == port["targetPort"] for port in service), name)
                policy = find(objects, "NetworkPolicy", "train-server")["spec"]
                self.assertEqual([port["port"] for rule in policy["ingress"] for port in rule["ports"]], [expected["grpc"]], name)
            self.assertEqual({port["name"]: port["containerPort"] for port in container["ports"]}, expected, name)
            policy = find(objects, "NetworkPolicy", "train-pods")["spec"]
            self.assertEqual([port["port"] for rule in policy["ingress"] for port in rule["ports"]], [expected["admin"]], name)
            for probe in ("livenessProbe", "readinessProbe"):
                self.assertEqual(container[probe]["httpGet"]["port"], "admin", name)

    def test_flags_and_variables_exist(self):
        for name, _, role, _, pod in pods():
            container = container_of(pod)
            self.assertEqual(container["command"], [f"/usr/bin/thinwire-{role}"])
            given = {argument.split("=")[0] for argument in container["args"]}
            for variable in container["env"]:
                self.assertTrue(variable["name"].startswith("THINWIRE_"))
                given.add("--" + variable["name"].removeprefix("THINWIRE_").lower())
            self.assertGreaterEqual(len(given), 5)
            self.assertEqual(given - help_flags(PROGRAMS[role]), set(), name)

    def test_the_failure_policies_are_those_of_the_documented_exit_codes(self):
        page = pathlib.Path("docs/configuration.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
        self.assertEqual(len(rows), 10)
        actions = {"fails too": "FailJob", "continues": "Ignore"}
        expected = {int(code): actions[end] for code, end in rows if end in actions}
        del expected[130]  # of `thinwire` only
        self.assertEqual(set(expected.values()), {"FailJob", "Ignore"})
        for name in JOBS:
            for role, (kind, spec) in controllers(overlay(name)).items():
                if kind == "StatefulSet":
                    continue
                rules = spec["podFailurePolicy"]["rules"]
                found = {code: rule["action"] for rule in rules for code in rule.get("onExitCodes", {}).get("values", [])}
                # A server does not diverge.
                possible = {code: action for code, action in expected.items() if role == "worker" or code != 65}
                self.assertEqual(found, possible, f"{name}: {role}")

    def test_pods_have_the_time_that_their_end_takes(self):
        for name, objects, role, _, pod in pods():
            drain = job_number(objects, "drain_seconds", 30)
            grace = pod["terminationGracePeriodSeconds"]
            if role == "worker":
                self.assertGreater(grace, drain, name)
            else:
                wait = container_of(pod)["lifecycle"]["preStop"]["sleep"]["seconds"]
                self.assertGreaterEqual(wait, drain, name)
                self.assertGreater(grace, wait + 5, name)  # open calls get 5 s


class MonitoringTest(unittest.TestCase):
    def test_rules_and_dashboard_are_those_of_deploy_monitoring(self):
        objects = render("overlays/monitoring")
        rules = yaml.safe_load(pathlib.Path("deploy/monitoring/rules.yaml").read_text(encoding="utf-8"))
        self.assertEqual(find(objects, "PrometheusRule", "thinwire")["spec"], rules, "run deploy/k8s/overlays/monitoring/copy.sh")
        dashboard = pathlib.Path("deploy/monitoring/dashboard.json").read_text(encoding="utf-8")
        self.assertEqual(find(objects, "ConfigMap", "thinwire-dashboard")["data"]["dashboard.json"], dashboard)

    def test_the_targets_have_the_job_that_the_rules_expect(self):
        objects = render("overlays/monitoring") + overlay("mtls")
        self.assertIn('job=~"thinwire.*"', pathlib.Path("deploy/monitoring/rules.yaml").read_text(encoding="utf-8"))
        targets = {
            "ServiceMonitor": ("thinwire-server", "endpoints", find(objects, "Service", "train-servers")["metadata"]["labels"]),
            "PodMonitor": ("thinwire-worker", "podMetricsEndpoints",
                           find(objects, "Job", "train-worker")["spec"]["template"]["metadata"]["labels"]),
        }
        for kind, (name, field, labels) in targets.items():
            spec = find(objects, kind, name)["spec"]
            self.assertEqual(spec["namespaceSelector"], {"any": True})
            self.assertEqual(labels[spec["jobLabel"]], "thinwire")
            self.assertEqual([(end["port"], end["path"]) for end in spec[field]], [("admin", "/metrics")])


class PageTest(unittest.TestCase):
    """Checks the commands of docs/kubernetes.md."""

    @classmethod
    def setUpClass(cls):
        cls.page = pathlib.Path("docs/kubernetes.md").read_text(encoding="utf-8")

    def test_thinwire_has_the_flags_of_its_commands(self):
        lines = re.findall(r"^(?:kubectl .* -- /usr/bin/)?thinwire ([^\n|`]+)$", self.page, re.MULTILINE)
        for line in lines:
            flags = set(re.findall(r" (--\w+)", line))
            command = re.match(r"(certs|checkpoint) [a-z]+|[a-z0-9]+", line)[0].split()
            self.assertEqual(flags - help_flags(THINWIRE, *command), set(), line)
        self.assertGreaterEqual(len(lines), 7)

    def test_kubectl_has_the_flags_of_its_commands(self):
        commands = [command.strip() for line in re.findall(r"^kubectl .*$", self.page, re.MULTILINE)
                    for command in line.split(" -- ")[0].split("|") if command.strip().startswith("kubectl ")]
        options = output_of("kubectl", "options")
        for command in commands:
            words = re.sub(r"^kubectl (-n \S+ )?", "", command).split()
            verb = words[:3] if words[0] == "create" else words[:1]
            known = re.findall(r"^ +(?:(-\w), )?(--[\w-]+)", output_of("kubectl", *verb, "--help") + options, re.MULTILINE)
            given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            self.assertEqual(given - {name for names in known for name in names}, set(), command)
        self.assertGreaterEqual(len(commands), 25)

    def test_the_folders_of_the_page_exist(self):
        folders = set(re.findall(r"deploy/k8s/([\w/-]+)", self.page))
        self.assertLessEqual({"setup", "state", "overlays/dev", "overlays/mtls", "overlays/monitoring"}, folders)
        for folder in folders:
            path = pathlib.Path("deploy/k8s", folder)
            self.assertTrue(path.is_dir() or path.with_suffix(".sh").exists(), folder)


if __name__ == "__main__":
    main()
