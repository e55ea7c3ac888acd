"""Checks the systemd units and their settings against systemd and the programs.

    units_test SERVER WORKER THINWIRE
"""

import configparser
import pathlib
import re
import string
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = dict(zip(("server", "worker", "mirror"), (pathlib.Path(path).resolve() for path in sys.argv[1:4])))
del sys.argv[1:4]
PROCESSES = ("server", "worker")  # programs whose settings are environment variables
HERE = pathlib.Path(__file__).resolve().parent
# The largest allowed exposure of a unit, in tenths (systemd-analyze security).
EXPOSURE = {"server": 12, "worker": 16, "mirror": 12}


def unit_text(program):
    """The unit of PROGRAM, with the program of this build in place of the installed one."""
    text = (HERE / f"thinwire-{program}@.service").read_text()
    installed = "/usr/bin/thinwire" if program == "mirror" else f"/usr/bin/thinwire-{program}"
    return text.replace(installed, str(PROGRAMS[program]))


def help_of(program):
    return subprocess.run([PROGRAMS[program], "--help"], capture_output=True, text=True, check=True).stdout


def environment_of(program, instance, files):
    """The environment that systemd makes for an instance. FILES are the variables of files by path. A file wins over the unit."""
    text = unit_text(program).replace("%i", instance)
    environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
    for optional, path in re.findall(r"^EnvironmentFile=(-?)(.*)$", text, re.MULTILINE):
        environment.update(files.get(path, {}) if optional else files[path])
    return environment


class UnitsTest(unittest.TestCase):
    def analyze(self, program, text, *command):
        """Runs systemd-analyze COMMAND on a unit with TEXT. Returns its exit code and its output."""
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / f"thinwire-{program}@.service"
            unit.write_text(text)
            result = subprocess.run(
                ["systemd-analyze", "--no-pager", *command, unit], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            return result.returncode, result.stdout

    def test_systemd_accepts_every_line(self):
        for program in PROGRAMS:
            self.assertEqual(self.analyze(program, unit_text(program), "verify", "--man=no"), (0, ""))

    def test_a_wrong_line_is_found(self):
        wrong = unit_text("server").replace("WatchdogSec=60", "WatchdogSeconds=60")
        self.assertIn("WatchdogSeconds", self.analyze("server", wrong, "verify", "--man=no")[1])
        absent = unit_text("server").replace(str(PROGRAMS["server"]), "/usr/bin/thinwire-serve")
        self.assertIn("/usr/bin/thinwire-serve", self.analyze("server", absent, "verify", "--man=no")[1])

    def test_the_services_are_confined(self):
        for program, limit in EXPOSURE.items():
            code, output = self.analyze(program, unit_text(program), "security", "--offline=true", f"--threshold={limit}")
            self.assertEqual(code, 0, output)
            print(output.splitlines()[-1])

    def test_every_variable_is_a_flag_of_the_program(self):
        for program in PROCESSES:
            flags = set(re.findall(r"^  --(\w+)", help_of(program), re.MULTILINE))
            settings = (HERE / f"{program}.env").read_text()
            variables = re.findall(r"^#?THINWIRE_(\w+)=", settings, re.MULTILINE)
            variables += re.findall(r"^Environment=THINWIRE_(\w+)=", unit_text(program), re.MULTILINE)
            self.assertGreater(len(variables), 4)
            for variable in variables:
                self.assertIn(variable.lower(), flags, f"{program}.env")

    def test_an_instance_may_have_a_file_of_its_own(self):
        for program in PROCESSES:
            number = f"THINWIRE_{program.upper()}"
            files = {f"/etc/thinwire/{program}.env": {"THINWIRE_CONFIG": "job"},
                     f"/etc/thinwire/{program}-exp1.env": {"THINWIRE_CONFIG": "other", number: "0"}}
            self.assertIn(f"ExecStart={PROGRAMS[program]}\n", unit_text(program))
            self.assertEqual(environment_of(program, "3", files), {
                number: "3", "THINWIRE_CONFIG": "job", "THINWIRE_CREDENTIALS": f"/etc/thinwire/{program}-3"})
            self.assertEqual(environment_of(program, "exp1", files), {
                number: "0", "THINWIRE_CONFIG": "other", "THINWIRE_CREDENTIALS": f"/etc/thinwire/{program}-exp1"})

    def test_a_mirror_has_the_settings_of_its_files(self):
        settings = dict(re.findall(r"^#?(\w+)=(.*)$", (HERE / "mirror.env").read_text(), re.MULTILINE))
        own = {"THINWIRE_MIRROR_URL": "", "THINWIRE_STATE_DIR": "/var/lib/thinwire/exp1", "AWS_PROFILE": "run7"}
        files = {"/etc/thinwire/mirror.env": settings, "/etc/thinwire/mirror-exp1.env": own}
        environment = environment_of("mirror", "exp1", files)
        self.assertEqual(environment, {**settings, **own})
        line = re.search(r"^ExecStart=(.*)$", unit_text("mirror"), re.MULTILINE)[1]
        command = [string.Template(word).substitute(environment) for word in line.split()]
        self.assertEqual(command, [str(PROGRAMS["mirror"]), "checkpoint", "mirror", "", "--state_dir", "/var/lib/thinwire/exp1",
                                   "--every", settings["THINWIRE_MIRROR_SECONDS"]])
        # The program knows all flags, and ends because no bucket is named.
        end = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((end.returncode, end.stdout), (78, ""))
        self.assertRegex(end.stderr, r"^URL: not a bucket ")

    def test_restarts_follow_the_documented_exit_codes(self):
        page = pathlib.Path("docs/configuration.md").read_text()
        rows = re.findall(r"^\| (\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
        self.assertEqual(len(rows), 10)
        # A server neither diverges nor ends with another code than 0 after a signal; a mirror does not diverge.
        for program, others in (("server", ["65", "75", "130"]), ("worker", ["130"]), ("mirror", ["65", "130"])):
            unit = configparser.ConfigParser(strict=False)
            unit.optionxform = str
            unit.read_string(unit_text(program).replace("%", "%%"))
            service = unit["Service"]
            for field, end in (("RestartPreventExitStatus", "fails too"), ("SuccessExitStatus", "continues")):
                expected = [code for code, found in rows if found == end and code not in others]
                self.assertEqual(service.get(field, "").split(), expected, f"{program}: {field}")


if __name__ == "__main__":
    unittest.main()
