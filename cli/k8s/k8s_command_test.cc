#include "cli/k8s/k8s_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class K8sCommandTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& name) { return dir_->PathOf(name); }

  // Runs the command with a job file of this text and with FLAGS.
  ExitCode Run(const std::string& job, std::vector<std::string> flags = {}) {
    std::ofstream(PathOf("job.textproto")) << job;
    flags.insert(flags.begin(),
                 {"k8s", "--config", PathOf("job.textproto"), "--out", PathOf("out")});
    std::ranges::reverse(flags);
    K8sCommand command;
    CLI::App app;
    AddK8s(app, command);
    app.parse(flags);
    out_.str("");
    err_.str("");
    Console console(err_, {});
    return RunK8s(command, console, out_);
  }

  // Returns the message of a run that fails and writes nothing.
  std::string Refused(const std::string& job, std::vector<std::string> flags = {}) {
    EXPECT_EQ(Run(job, std::move(flags)), ExitCode::kConfig);
    EXPECT_EQ(out_.str(), "");
    EXPECT_FALSE(std::filesystem::exists(PathOf("out")));
    return err_.str();
  }

  std::string Read(const std::string& name) {
    std::ifstream in(PathOf(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::unique_ptr<TempDir> dir_ = TempDir::Make(testing::TempDir()).value();
  std::ostringstream out_;
  std::ostringstream err_;
};

constexpr char kJob[] = "servers: 2 consistency { workers: 3 } recovery { durability: checkpoint }";

TEST_F(K8sCommandTest, TheFolderHasTheFilesOfTheJob) {
  ASSERT_EQ(Run(kJob, {"--name", "exp1", "--namespace", "team-a"}), ExitCode::kOk) << err_.str();
  EXPECT_EQ(out_.str(),
            PathOf("out") + ": job exp1 in namespace team-a, 2 servers and 3 workers\n");
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PathOf("out"))) {
    if (entry.is_regular_file()) paths.push_back(entry.path().lexically_relative(PathOf("out")));
  }
  EXPECT_THAT(paths, UnorderedElementsAre("job.textproto", "kustomization.yaml", "network.yaml",
                                          "servers.yaml", "workers.yaml", "setup/data.yaml",
                                          "setup/kustomization.yaml", "state/kustomization.yaml",
                                          "state/state.yaml"));
  const std::string job = Read("out/job.textproto");
  EXPECT_THAT(job, HasSubstr("name: \"exp1\"\n"));
  EXPECT_THAT(job, HasSubstr("data_dir: \"/data\"\n"));
}

TEST_F(K8sCommandTest, FlagsReplaceFieldsOfTheJobFile) {
  ASSERT_EQ(Run(kJob, {"--workers", "5", "--servers", "1", "--data_dir", "/data/cifar"}),
            ExitCode::kOk)
      << err_.str();
  EXPECT_EQ(out_.str(),
            PathOf("out") + ": job train in namespace thinwire, 1 server and 5 workers\n");
  EXPECT_THAT(Read("out/workers.yaml"), HasSubstr("completions: 5\n"));
  EXPECT_THAT(Read("out/job.textproto"), HasSubstr("data_dir: \"/data/cifar\"\n"));
}

TEST_F(K8sCommandTest, AFolderWithFilesIsNotChanged) {
  ASSERT_EQ(Run(kJob), ExitCode::kOk);
  const std::string workers = Read("out/workers.yaml");
  EXPECT_EQ(Run(kJob, {"--workers", "5"}), ExitCode::kConfig);
  EXPECT_EQ(err_.str(), absl::StrCat("error: --out: ", PathOf("out"),
                                     ": exists already (expected a new or an empty folder)\n"));
  EXPECT_EQ(Read("out/workers.yaml"), workers);
  std::filesystem::remove_all(PathOf("out"));
  std::ofstream(PathOf("out")) << "a file";
  EXPECT_EQ(Run(kJob), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr(": exists already (expected a new or an empty folder)"));
  std::filesystem::remove_all(PathOf("out"));
  std::filesystem::create_directory(PathOf("out"));
  EXPECT_EQ(Run(kJob), ExitCode::kOk);
}

TEST_F(K8sCommandTest, AJobThatCannotRunInThePodsIsRefused) {
  const std::vector<std::string> log = {"--durability", "log"};
  EXPECT_THAT(Refused("servers: 2"),
              EndsWith("durability: a replaced server pod would lose the job (expected checkpoint "
                       "or log, got none)\n"));
  EXPECT_THAT(Refused(kJob, {"--name", "Exp_1"}), HasSubstr("--name: "));
  EXPECT_THAT(Refused(kJob, {"--name", "1exp"}),
              EndsWith("--name: not the name of a job in Kubernetes (expected at most 40 "
                       "characters, and a letter first, got \"1exp\")\n"));
  EXPECT_THAT(Refused("task { data_dir: \"/home/data\" }", log),
              EndsWith("job.textproto:1:8: data_dir: not in the claim of the pods (expected /data "
                       "or a path below it, got \"/home/data\")\n"));
  EXPECT_THAT(Refused("task { data_dir: \"/database\" }", log),
              HasSubstr("data_dir: not in the claim"));
  EXPECT_THAT(Refused("task { model: torchscript model_file: \"/m.pt\" }", log),
              HasSubstr("model_file: not in the claim"));
  EXPECT_THAT(Refused("compression { push: adaptive }", {"--durability", "checkpoint"}),
              HasSubstr("push: needs a folder for the state of each worker"));
  EXPECT_THAT(Refused("servers: 0"), HasSubstr("servers: out of range"));
  EXPECT_THAT(Refused(kJob, {"--namespace", "Team"}), HasSubstr("--namespace: not a DNS label"));
}

TEST_F(K8sCommandTest, AMissingJobFileIsAnError) {
  K8sCommand command;
  CLI::App app;
  AddK8s(app, command);
  app.parse(std::vector<std::string>{PathOf("out"), "--out", "/nowhere", "--config", "k8s"});
  Console console(err_, {});
  EXPECT_EQ(RunK8s(command, console, out_), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr("/nowhere: cannot be read"));
  EXPECT_FALSE(std::filesystem::exists(PathOf("out")));
}

TEST_F(K8sCommandTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(PathOf("file")) << "";
  std::ofstream(PathOf("job.textproto")) << kJob;
  K8sCommand command;
  CLI::App app;
  AddK8s(app, command);
  app.parse(std::vector<std::string>{PathOf("file/out"), "--out", PathOf("job.textproto"),
                                     "--config", "k8s"});
  Console console(err_, {});
  EXPECT_EQ(RunK8s(command, console, out_), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr(PathOf("file/out")));
}

}  // namespace
}  // namespace thinwire
