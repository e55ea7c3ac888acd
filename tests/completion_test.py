"""Completes command lines in real shells, with the scripts of `thinwire completion` and of the other programs' --completion."""

import os
import pathlib
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import unittest

# The command that prints the script, without the shell.
SCRIPTS = dict(zip(("thinwire", "thinwire-server", "thinwire-worker"),
                   ([sys.argv.pop(1), "completion"], [sys.argv.pop(1), "--completion"], [sys.argv.pop(1), "--completion"])))
# The time limit of one completion, on a busy machine.
SECONDS = 60

# The start file of zsh. compadd gets every offered word; the shell ends after the first completion.
ZSHRC = """
PS1='ready> '
LISTMAX=1000  # zsh asks before it lists more words
fpath=($ZDOTDIR $fpath)
autoload -Uz compinit
compinit -u -d $ZDOTDIR/dump
bindkey '^I' complete-word
compadd() {
  local -a words options
  options=(${@[1,(i)(-|--)]})
  if (( ${options[(I)-[OAD]]} == 0 )); then
    builtin compadd -O words "$@"
    print -rl -- $words >> $ZDOTDIR/offered
  fi
  builtin compadd "$@"
}
finish() { exit }
comppostfuncs=(finish)
"""


class CompletionTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name in ("job.textproto", "my file.txt"):
            (self.folder / name).touch()
        (self.folder / "state").mkdir()

    def script(self, shell, line):
        """The script for the program of LINE."""
        return subprocess.run([*SCRIPTS[line.split()[0]], shell], check=True, capture_output=True, text=True).stdout

    def bash(self, line):
        """Returns the words that bash offers at the end of LINE."""
        # Bash makes words of "=" signs.
        words = [word for part in line.split(" ") for word in (re.split("(=)", part) if "=" in part else [part])]
        program = "\n".join((
            self.script("bash", line),
            f"COMP_WORDS=({' '.join(shlex.quote(word) for word in words)})",
            f"COMP_CWORD={len(words) - 1}",
            "_" + line.split()[0].replace("-", "_"),
            'printf "%s\\n" "${COMPREPLY[@]}"',
        ))
        shell = subprocess.run(["bash", "--norc", "-u", "-c", program], cwd=self.folder, capture_output=True, text=True,
                               timeout=SECONDS)
        self.assertEqual(shell.stderr, "", line)
        return {word for word in shell.stdout.splitlines() if word}

    def zsh(self, line):
        """Returns the words that zsh offers at the end of LINE."""
        folder = self.folder / "zsh"
        folder.mkdir(exist_ok=True)
        (folder / ".zshrc").write_text(ZSHRC)
        (folder / f"_{line.split()[0]}").write_text(self.script("zsh", line))
        offered = folder / "offered"
        offered.write_text("")
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-d", "-i"], {"PATH": os.environ["PATH"], "ZDOTDIR": str(folder), "TERM": "dumb"})
        shown = b""
        typed = False
        try:
            # A read fails when the shell has ended.
            while select.select([terminal], [], [], SECONDS)[0]:
                shown += os.read(terminal, 65536)
                if not typed and b"ready> " in shown:
                    typed = True
                    os.write(terminal, line.encode() + b"\t")
            self.fail(f"zsh did not complete {line!r}: {shown!r}")
        except OSError:
            pass
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)
        return {word for word in offered.read_text().splitlines() if word}

    def fish(self, line):
        """Returns the words that fish offers at the end of LINE."""
        folder = self.folder / "fish"
        folder.mkdir(exist_ok=True)
        (folder / "script.fish").write_text(self.script("fish", line))
        program = f"source {shlex.quote(str(folder / 'script.fish'))}; complete -C {shlex.quote(line)}"
        shell = subprocess.run(["fish", "--no-config", "-c", program], cwd=self.folder, capture_output=True, text=True,
                               timeout=SECONDS, env={"PATH": os.environ["PATH"], "HOME": str(folder)})
        self.assertEqual(shell.stderr, "", line)
        words = (word.split("\t")[0] for word in shell.stdout.splitlines())
        # fish offers the whole word --flag=value.
        return {word.split("=", 1)[1] if "=" in line and word.startswith("--") else word for word in words if word}

    def shells(self):
        return (("bash", self.bash), ("zsh", self.zsh), ("fish", self.fish))

    def test_commands_are_offered(self):
        for name, offered in self.shells():
            with self.subTest(name):
                self.assertLessEqual({"train", "launch", "completion", "help"}, offered("thinwire "))
                self.assertEqual(offered("thinwire la"), {"launch"})
                self.assertEqual(offered("thinwire config "), {"check", "show"})
                self.assertEqual(offered("thinwire help config "), {"check", "show"})
                self.assertEqual(offered("thinwire completion "), {"bash", "zsh", "fish"})

    def test_flags_of_the_command_are_offered(self):
        for name, offered in self.shells():
            with self.subTest(name):
                self.assertEqual(offered("thinwire launch --hos"), {"--hosts"})
                self.assertLessEqual({"--push", "--pull", "--mode", "--config"}, offered("thinwire train --"))
                self.assertEqual(offered("thinwire scale --hos"), set())
                self.assertEqual(offered("thinwire certs issue --ro"), {"--role"})

    def test_values_of_enums_are_offered(self):
        for name, offered in self.shells():
            with self.subTest(name):
                self.assertEqual(offered("thinwire train --mode "), {"sync", "backup", "ssp", "async"})
                self.assertEqual(offered("thinwire launch --mode s"), {"sync", "ssp"})
                self.assertEqual(offered("thinwire train --epochs 2 --push fp8"), {"fp8_e5m2", "fp8_e4m3"})
                self.assertIn("resnet20", offered("thinwire train --model "))
                self.assertEqual(offered("thinwire train --keep "), {"last", "best"})
                self.assertEqual(offered("thinwire certs issue ca --role "),
                                 {"server", "worker", "operator", "viewer"})
                self.assertEqual(offered("thinwire train --mode=s"), {"sync", "ssp"})
                self.assertEqual(offered("thinwire mode --set "), {"sync", "backup", "ssp", "async"})

    def test_files_and_folders_are_offered(self):
        for name, offered in self.shells():
            with self.subTest(name):
                self.assertIn("job.textproto", offered("thinwire train --config "))
                self.assertIn("my file.txt", {word.replace("\\", "") for word in offered("thinwire config check m")})
                folders = {word.rstrip("/") for word in offered("thinwire train --state_dir s")}
                self.assertEqual(folders, {"state"})

    def test_a_flag_without_a_value_is_followed_by_the_next_argument(self):
        for name, offered in self.shells():
            with self.subTest(name):
                self.assertIn("job.textproto", offered("thinwire experiment run --quick "))

    def test_the_server_and_the_worker_complete_their_flags(self):
        for name, offered in self.shells():
            with self.subTest(name):
                self.assertEqual(offered("thinwire-server --state"), {"--state_dir"})
                self.assertIn("job.textproto", offered("thinwire-server --config "))
                self.assertEqual({word.rstrip("/") for word in offered("thinwire-worker --state_dir s")}, {"state"})
                self.assertEqual(offered("thinwire-worker --keep "), {"last", "best"})
                self.assertEqual(offered("thinwire-worker --completion "), {"bash", "zsh", "fish"})
                self.assertEqual(offered("thinwire-server --hos"), set())

    def test_numbers_offer_nothing(self):
        for name, offered in self.shells():
            with self.subTest(name):
                self.assertEqual(offered("thinwire train --epochs "), set())


if __name__ == "__main__":
    unittest.main()
