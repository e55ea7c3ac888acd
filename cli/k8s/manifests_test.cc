#include "cli/k8s/manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::Not;

JobSpec Job(const std::string& name) {
  return {.name = name, .server_count = 2, .rule = Rule::Sync(3), .drain = absl::Seconds(7.5)};
}

ManifestOptions InNamespace(const std::string& name) {
  ManifestOptions options;
  options.kube_namespace = name;
  return options;
}

// Returns the name of the Job of the workers.
std::string WorkersName(const JobSpec& job, const std::string& job_text,
                        const ManifestOptions& options) {
  const std::string text = Manifests(job, job_text, options)["workers.yaml"];
  const size_t begin = text.find(job.name + "-worker-");
  EXPECT_NE(begin, std::string::npos) << text;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(ManifestsTest, AFileHasNoNameOfTheBase) {
  ManifestOptions options = InNamespace("team-a");
  options.cert_manager = true;
  options.gpu_spot = true;
  options.queue = "gpus";
  const auto files = Manifests(Job("exp1"), "servers: 2\n", options);
  EXPECT_EQ(files.size(), 10u);
  for (const auto& [path, text] : files) {
    EXPECT_THAT(absl::StrReplaceAll(text, {{"Constraints", ""}}), Not(HasSubstr("train"))) << path;
  }
}

TEST(ManifestsTest, EachServerMountsItsOwnCertificate) {
  const std::string text = Manifests(Job("exp1"), "", InNamespace("a"))["servers.yaml"];
  const size_t second = text.find("name: exp1-server-1");
  ASSERT_NE(second, std::string::npos);
  EXPECT_THAT(text.substr(0, second), HasSubstr("secretName: exp1-server-0\n"));
  EXPECT_THAT(text.substr(0, second), Not(HasSubstr("secretName: exp1-server-1\n")));
  EXPECT_THAT(text.substr(second), HasSubstr("secretName: exp1-server-1\n"));
  EXPECT_THAT(text.substr(second), Not(HasSubstr("secretName: exp1-server-0\n")));
}

TEST(ManifestsTest, PodsEndAfterTheDrainOfTheWorkers) {
  const auto files = Manifests(Job("exp1"), "", InNamespace("a"));
  EXPECT_THAT(files.at("servers.yaml"), HasSubstr("seconds: 8\n"));
  EXPECT_THAT(files.at("servers.yaml"), HasSubstr("terminationGracePeriodSeconds: 98\n"));
  EXPECT_THAT(files.at("workers.yaml"), HasSubstr("terminationGracePeriodSeconds: 18\n"));
}

TEST(ManifestsTest, AChangedTemplateGetsAnotherJob) {
  const ManifestOptions options = InNamespace("a");
  const std::string name = WorkersName(Job("exp1"), "text", options);
  EXPECT_EQ(name.size(), std::string("exp1-worker-01234567").size());
  EXPECT_EQ(WorkersName(Job("exp1"), "text", options), name);
  EXPECT_NE(WorkersName(Job("exp1"), "other text", options), name);
  JobSpec more = Job("exp1");
  more.rule.workers = 4;
  EXPECT_NE(WorkersName(more, "text", options), name);
  more = Job("exp1");
  more.server_count = 3;
  EXPECT_NE(WorkersName(more, "text", options), name);
  ManifestOptions other = options;
  other.image = "registry/thinwire:2";
  EXPECT_NE(WorkersName(Job("exp1"), "text", other), name);
  other = options;
  other.insecure = true;
  EXPECT_NE(WorkersName(Job("exp1"), "text", other), name);
  // The namespace is not in the template.
  EXPECT_EQ(WorkersName(Job("exp1"), "text", InNamespace("b")), name);
}

TEST(ManifestsTest, NamesThatKubernetesRefusesAreErrors) {
  EXPECT_TRUE(CheckNames(Job(std::string(40, 'a'))).ok());
  EXPECT_EQ(CheckNames(Job(std::string(41, 'a'))).message(),
            "not the name of a job in Kubernetes (expected at most 40 characters, and a letter "
            "first, got \"" +
                std::string(41, 'a') + "\")");
  EXPECT_FALSE(CheckNames(Job("1exp")).ok());
}

TEST(ManifestsTest, OptionsThatKubernetesRefusesAreErrors) {
  EXPECT_TRUE(InNamespace("team-a").Validate().ok());
  for (const char* name : {"", "Team", "-a", "a-", "a.b", "a b"}) {
    EXPECT_EQ(InNamespace(name).Validate().message(),
              "--namespace: not a DNS label (expected 1 to 63 of a-z, 0-9 and inner -, got \"" +
                  std::string(name) + "\")");
  }
  EXPECT_FALSE(InNamespace(std::string(64, 'a')).Validate().ok());
  ManifestOptions options;
  for (const char* queue : {"A", ".a", "a..b", "a-.b"}) {
    options.queue = queue;
    EXPECT_EQ(options.Validate().message(),
              "--queue: not the name of a queue (expected 1 to 63 of a-z, 0-9, inner - and inner "
              "., got \"" +
                  options.queue + "\")");
  }
  options.queue = "gpus.a";
  options.image = "registry.example.com:5000/thinwire:1@sha256:0f";
  EXPECT_TRUE(options.Validate().ok());
  options.image = "a b";
  EXPECT_EQ(options.Validate().message(),
            "--image: not an image (expected one such as registry/thinwire:1, got \"a b\")");
}

}  // namespace
}  // namespace thinwire
