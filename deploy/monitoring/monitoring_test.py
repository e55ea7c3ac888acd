"""Checks the alert rules and the dashboard with promtool and against the documents.

    monitoring_test.py RULES METRICS_PAGE MONITORING_PAGE
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

MONITORING_PAGE = sys.argv.pop()
METRICS_PAGE = sys.argv.pop()
RULES = sys.argv.pop()
FOLDER = os.path.dirname(RULES)
sys.path.insert(0, FOLDER)
import scenarios  # noqa: E402


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def in_folder(name):
    return os.path.join(FOLDER, name)


def rules():
    """The alert rules."""
    return [rule for rule in all_rules() if "alert" in rule]


def all_rules():
    return [rule for group in yaml.safe_load(read(RULES))["groups"] for rule in group["rules"]]


def targets():
    """The queries of all panels of the dashboard."""
    return [target for panel in json.loads(read(in_folder("dashboard.json")))["panels"] for target in panel.get("targets", [])]


def metrics_in(query):
    return re.findall(r"\bthinwire_\w+", query)


def documented():
    return set(re.findall(r"^\| `(thinwire_\w+)", read(METRICS_PAGE), re.MULTILINE))


class MonitoringTest(unittest.TestCase):
    def promtool(self, *arguments):
        run = subprocess.run(["promtool", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_promtool_accepts_the_rules_and_the_example(self):
        self.promtool("check", "rules", RULES)
        self.promtool("check", "config", in_folder("prometheus.yml"))

    def test_each_alert_fires_and_does_not_fire(self):
        self.promtool("test", "rules", in_folder("rules_test.yaml"))
        tests = yaml.safe_load(read(in_folder("rules_test.yaml")))["tests"]
        self.assertEqual([test["name"] for test in tests], [rule["alert"] for rule in rules()])
        for test in tests:
            expected = [case["exp_samples"] for case in test["promql_expr_test"]]
            self.assertIn([], expected, test["name"])
            fired = [sample["labels"] for samples in expected for sample in samples]
            self.assertEqual(len(fired), 1, test["name"])
            self.assertIn(f'alertname="{test["name"]}"', fired[0])
            self.assertEqual({case["expr"] for case in test["promql_expr_test"]}, {'ALERTS{alertstate="firing"}'})

    def test_planned_actions_raise_no_alert_and_faults_raise_one(self):
        tests = scenarios.tests()
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=os.environ.get("TEST_TMPDIR")) as file:
            content = {"rule_files": [os.path.abspath(RULES)], "evaluation_interval": "15s", "tests": tests}
            yaml.safe_dump(content, file, sort_keys=False)
            file.flush()
            self.promtool("test", "rules", file.name)
        self.assertGreaterEqual(len(tests), 17)
        for test in tests:
            counts = {len(check["exp_samples"]) for check in test["promql_expr_test"]}
            self.assertEqual(counts, {0} if test["name"].startswith("planned: ") else {0, 1}, test["name"])

    def test_each_alert_says_what_to_do(self):
        for rule in rules():
            self.assertRegex(rule["alert"], "^Thinwire[A-Z]")
            self.assertIn(rule["labels"]["severity"], ("page", "ticket"), rule["alert"])
            self.assertEqual(set(rule["annotations"]), {"summary", "action"}, rule["alert"])

    def test_the_table_of_alarms_has_every_alert(self):
        section = read(MONITORING_PAGE).split("\n## Alarms\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (\S+) \|", section, re.MULTILINE)
        self.assertEqual(rows, [(rule["alert"], rule["expr"], rule.get("for", "0s")) for rule in rules()])

    def test_every_metric_is_documented(self):
        names = documented()
        count = 0
        for query in [rule["expr"] for rule in all_rules()] + [target["expr"] for target in targets()]:
            for name in metrics_in(query):
                self.assertIn(re.sub("_bucket$", "", name), names, query)
                count += 1
        self.assertGreater(count, 40)

    def test_the_dashboard_works_with_any_data_source(self):
        dashboard = json.loads(read(in_folder("dashboard.json")))
        self.assertNotIn("id", dashboard)
        source = {"type": "prometheus", "uid": "${datasource}"}
        self.assertEqual(dashboard["templating"]["list"][0]["name"], "datasource")
        self.assertGreater(len(targets()), 30)
        for panel in dashboard["panels"]:
            self.assertNotIn("id", panel)
            if panel["type"] != "row":
                self.assertEqual(panel["datasource"], source, panel["title"])
        for target in targets():
            self.assertEqual(target["datasource"], source, target["expr"])
            selectors = re.findall(r"\bthinwire_\w+(?!\w)(\{[^}]*\})?", target["expr"])
            self.assertTrue(all('job=~"$job", job_name=~"$job_name"' in selector for selector in selectors), target["expr"])
            # Sums of several jobs would mean nothing.
            if re.search(r"\b(sum|avg|max)\b", target["expr"]):
                self.assertIn("by (job_name", target["expr"])


if __name__ == "__main__":
    unittest.main()
