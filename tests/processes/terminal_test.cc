// Tests what a user of `thinwire`, `server` and `worker` sees at the terminal, with real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/exit_code.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class TerminalTest : public testing::Test {
 protected:
  ProcessResult Thinwire(const std::vector<std::string>& arguments) {
    return daemons_.Run("cli/thinwire", arguments);
  }

  Daemons daemons_;
};

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

TEST_F(TerminalTest, HelpFitsEightyColumnsWithoutATerminal) {
  for (const char* program : {"cli/thinwire", "server/server", "worker/worker"}) {
    const ProcessResult help = daemons_.Run(program, {"--help"});
    EXPECT_EQ(help.exit, ExitStatus());
    EXPECT_THAT(help.output, HasSubstr("Example"));
    EXPECT_LE(LongestLine(help.output), 80) << program;
    const std::vector<std::string> words =
        absl::StrSplit(help.output, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    EXPECT_THAT(absl::StrJoin(words, " "), HasSubstr(ExitCodesHelp())) << program;
  }
}

TEST_F(TerminalTest, EveryProgramTellsTheSameVersion) {
  const std::string thinwire = Thinwire({"--version"}).output;
  EXPECT_THAT(thinwire, MatchesRegex("thinwire [0-9.]+ \\(revision [0-9a-z+]+\\)\ncodecs: fp32 .*\n"
                                     "CUDA architectures: .*\n"));
  const std::string version = thinwire.substr(std::string("thinwire ").size());
  EXPECT_EQ(daemons_.Run("server/server", {"--version"}).output,
            absl::StrCat("thinwire server ", version));
  EXPECT_THAT(daemons_.Run("worker/worker", {"--version"}).output,
              StartsWith(absl::StrCat("thinwire worker ", version, "LibTorch ")));
}

TEST_F(TerminalTest, HelpOfACommandIsACommandAndAFlag) {
  const ProcessResult train = Thinwire({"help", "train"});
  EXPECT_EQ(train.exit, ExitStatus());
  EXPECT_THAT(train.output, HasSubstr("Usage: thinwire train"));
  EXPECT_THAT(train.output, HasSubstr("\nCompression:\n  --push NAME\n"));
  EXPECT_LE(LongestLine(train.output), 80);
  EXPECT_EQ(Thinwire({"train", "--help"}).output, train.output);
  EXPECT_THAT(Thinwire({"help"}).output, HasSubstr("\n  train\n"));
  const ProcessResult launch = Thinwire({"help", "launch"});
  EXPECT_THAT(launch.output, HasSubstr("\nLaunch:\n  --hosts FILE\n"));
  EXPECT_LE(LongestLine(launch.output), 80);
  EXPECT_THAT(Thinwire({"help", "config", "check"}).output,
              HasSubstr("Usage: thinwire config check"));
}

TEST_F(TerminalTest, CompletionAndPagesArePrinted) {
  EXPECT_THAT(Thinwire({"completion", "bash"}).output, HasSubstr("complete -F _thinwire thinwire"));
  EXPECT_THAT(Thinwire({"completion", "zsh"}).output, HasSubstr("#compdef thinwire"));
  EXPECT_EQ(Thinwire({"completion", "tcsh"}).exit, ExitStatus{.code = 64});
  EXPECT_THAT(Thinwire({"help", "--man", "train"}).output, HasSubstr(".TH THINWIRE\\-TRAIN 1 "));
  for (const char* program : {"server/server", "worker/worker"}) {
    const ProcessResult page = daemons_.Run(program, {"--man"});
    EXPECT_EQ(page.exit, ExitStatus());
    EXPECT_THAT(page.output, HasSubstr(".SH NAME\nthinwire\\-"));
  }
}

TEST_F(TerminalTest, HelpOfCommandsForRunningJobsFitsEightyColumns) {
  for (const char* command : {"scale", "mode", "status", "drain", "doctor", "experiment"}) {
    const ProcessResult help = Thinwire({"help", command});
    EXPECT_EQ(help.exit, ExitStatus());
    EXPECT_THAT(help.output, HasSubstr("Example"));
    EXPECT_THAT(help.output, HasSubstr(absl::StrCat("Usage: thinwire ", command)));
    EXPECT_LE(LongestLine(help.output), 80) << help.output;
  }
}

TEST_F(TerminalTest, DrainNeedsExactlyOneTarget) {
  EXPECT_EQ(Thinwire({"drain", "--addresses", "a:1"}).exit, ExitStatus{.code = 64});
  EXPECT_EQ(Thinwire({"drain", "--addresses", "a:1", "--worker", "1", "--server", "0"}).exit,
            ExitStatus{.code = 64});
}

TEST_F(TerminalTest, ModeNeedsAModeAndItsSettings) {
  EXPECT_EQ(Thinwire({"mode", "--addresses", "a:1"}).exit, ExitStatus{.code = 64});
  EXPECT_EQ(Thinwire({"mode", "--addresses", "a:1", "--set", "fast"}).exit, ExitStatus{.code = 64});
  EXPECT_EQ(Thinwire({"mode", "--addresses", "a:1", "--set", "ssp"}).exit, ExitStatus{.code = 64});
}

TEST_F(TerminalTest, AnUnknownCommandIsReportedWithTheNearest) {
  const std::string expected =
      "error: command: unknown (expected train, launch, evaluate, scale, mode, status, drain, "
      "doctor, "
      "config, "
      "checkpoint, certs, k8s, trace, experiment, completion or help, got "
      "\"trian\"; did you mean "
      "train?)\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"trian"}, std::vector<std::string>{"help", "trian"}}) {
    const ProcessResult run = Thinwire(words);
    EXPECT_EQ(run.exit, ExitStatus{.code = 64});
    EXPECT_EQ(run.log, expected);
  }
}

TEST_F(TerminalTest, AFileOfAnotherKindIsNamed) {
  const std::string file = daemons_.Write("model.gz", "\x1f\x8b\x08");
  const ProcessResult run = Thinwire({"train", "--config", file});
  EXPECT_EQ(run.exit, ExitStatus{.code = 78});
  EXPECT_EQ(run.log, absl::StrCat("error: ", file,
                                  ": not a job file (expected text as in examples/, got a gzip "
                                  "file)\n"));
}

TEST_F(TerminalTest, AFailureIsToldOnceAndItsLogsRemain) {
  const ProcessResult run = Thinwire({"train", "--workers", "3", "--dataset", "safetensors",
                                      "--data_dir", daemons_.folder(), "--model", "softmax"});
  EXPECT_EQ(run.exit, ExitStatus{.code = 78});
  EXPECT_EQ(run.output, "") << "no step was trained, so there is no table";
  const std::vector<std::string> parts = absl::StrSplit(run.log, "train.safetensors");
  EXPECT_EQ(parts.size(), 2u) << run.log;
  EXPECT_THAT(run.log, HasSubstr("error: worker "));
  EXPECT_THAT(run.log, HasSubstr(" lost: exit code 78: "));
  EXPECT_THAT(run.log, HasSubstr("The logs of all processes are in /"));
  EXPECT_THAT(run.log, Not(HasSubstr("batch_size")));
}

TEST_F(TerminalTest, AnExperimentNeedsItsLaboratory) {
  const std::string file = daemons_.Write("study.textproto", "name: 'study'");
  const ProcessResult run = Thinwire({"experiment", "run", file, "--bin_dir", daemons_.folder()});
  EXPECT_EQ(run.exit, ExitStatus{.code = 69});
  EXPECT_THAT(run.log, StartsWith("error: --bin_dir: no program laboratory (expected "));
}

TEST_F(TerminalTest, TraceMergeNamesAFileThatIsNoTrace) {
  const std::string out = daemons_.folder() + "/out.json";
  const ProcessResult run =
      Thinwire({"trace", "merge", out, daemons_.Write("job.textproto", "servers: 2")});
  EXPECT_EQ(run.exit, ExitStatus{.code = 78});
  EXPECT_THAT(run.log, HasSubstr("job.textproto: not the trace of a process (expected a file of "
                                 "--trace of server or worker, got no JSON, such as an incomplete "
                                 "file)\n"));
}

TEST_F(TerminalTest, RecordsThatCannotBeWrittenAreNamedBeforeTraining) {
  for (const std::string flag : {"--trace", "--tensorboard"}) {
    const ProcessResult run = Thinwire({"train", "--model", "softmax", flag, "/proc/absent/file"});
    EXPECT_EQ(run.exit, ExitStatus{.code = 78});
    EXPECT_THAT(run.log, HasSubstr(absl::StrCat("error: ", flag, ": /proc/absent")));
  }
}

TEST_F(TerminalTest, AnAddressOfTwoServersIsRefused) {
  const std::string job = daemons_.Write("job.textproto", "servers: 2");
  for (const char* program : {"server/server", "worker/worker"}) {
    const ProcessResult run =
        daemons_.Run(program, {"--config", job, "--addresses", "127.0.0.1:1,127.0.0.1:1"});
    EXPECT_EQ(run.exit, ExitStatus{.code = 78});
    EXPECT_THAT(run.log, HasSubstr("--addresses: one address for two servers"));
  }
}

}  // namespace
}  // namespace thinwire
