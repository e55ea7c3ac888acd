#include "server/protocols/state/job_match.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

JobConfig Parsed(const std::string& text) {
  JobConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

JoinRequest Request(uint32_t worker, const std::string& config, uint64_t data_hash = 0,
                    uint64_t model_file_hash = 0) {
  JoinRequest request;
  request.set_worker(worker);
  *request.mutable_config() = Parsed(config);
  request.set_data_hash(data_hash);
  request.set_model_file_hash(model_file_hash);
  return request;
}

TEST(JobMatchTest, AnEqualJobMayJoin) {
  const JobMatch match(Parsed("servers: 2 optimization { optimizer: adam }"));
  EXPECT_EQ(match.Check(Request(0, "servers: 2 optimization { optimizer: adam } task {}")),
            absl::OkStatus());
}

TEST(JobMatchTest, ADifferenceFromTheServersJobIsRefusedWithBothValues) {
  const JobMatch match(Parsed("optimization { learning_rate: 0.05 } consistency { workers: 4 }"));
  EXPECT_EQ(match.Check(Request(3, "optimization { learning_rate: 0.5 }")),
            absl::FailedPreconditionError(
                "worker 3: consistency.workers differs from the job's (expected 4, got 1); "
                "optimization.learning_rate differs from the job's (expected 0.05, got 0.5)"));
}

TEST(JobMatchTest, TasksAreComparedWithTheFirstWorkers) {
  JobMatch match(Parsed("task { seed: 9 }"));
  const JoinRequest first = Request(0, "task { seed: 1 }");
  EXPECT_EQ(match.Check(first), absl::OkStatus());
  match.Keep(first);
  const JoinRequest other = Request(1, "task { seed: 2 batch_size: 64 }");
  EXPECT_EQ(match.Check(other),
            absl::FailedPreconditionError(
                "worker 1: task.batch_size differs from the job's (expected 32, got 64); task.seed "
                "differs from the job's (expected 1, got 2)"));
  EXPECT_EQ(match.Check(Request(2, "task {}")), absl::OkStatus());
}

TEST(JobMatchTest, AProgramWithoutTaskIsNotComparedAndNotKept) {
  JobMatch match(JobConfig{});
  match.Keep(Request(0, ""));
  const JoinRequest with_task = Request(1, "task { seed: 5 }");
  EXPECT_EQ(match.Check(with_task), absl::OkStatus());
  match.Keep(with_task);
  EXPECT_EQ(match.Check(Request(2, "")), absl::OkStatus());
  EXPECT_FALSE(match.Check(Request(2, "task { seed: 6 }")).ok());
}

TEST(JobMatchTest, ARequestWithoutConfigIsNotCompared) {
  const JobMatch match(Parsed("servers: 2"));
  EXPECT_EQ(match.Check(JoinRequest()), absl::OkStatus());
}

TEST(JobMatchTest, WithoutAServersJobOnlyTasksAreCompared) {
  JobMatch match(std::nullopt);
  match.Keep(Request(0, "servers: 2 task {}"));
  EXPECT_EQ(match.Check(Request(1, "servers: 3 task {}")), absl::OkStatus());
  EXPECT_FALSE(match.Check(Request(1, "task { seed: 6 }")).ok());
}

TEST(JobMatchTest, TheContentOfDataAndModelFilesIsCompared) {
  JobMatch match(JobConfig{});
  match.Keep(Request(0, "task {}", 7, 8));
  EXPECT_EQ(match.Check(Request(1, "task { data_dir: '/other' }", 7, 8)), absl::OkStatus());
  EXPECT_EQ(match.Check(Request(1, "task {}", 0, 0)), absl::OkStatus());
  EXPECT_EQ(
      match.Check(Request(1, "task {}", 9, 8)),
      absl::FailedPreconditionError("worker 1: the content of the data differs from the job's "
                                    "(expected hash 0000000000000007, got 0000000000000009)"));
  EXPECT_FALSE(match.Check(Request(1, "task {}", 7, 9)).ok());
}

TEST(JobMatchTest, FirstValuesAreComparedAlsoWithoutATask) {
  JobMatch match(std::nullopt);
  const auto request = [](uint32_t worker, uint64_t hash) {
    JoinRequest with_hash;
    with_hash.set_worker(worker);
    with_hash.set_initial_hash(hash);
    return with_hash;
  };
  match.Keep(request(0, 0));
  match.Keep(request(1, 7));
  match.Keep(request(2, 8));
  EXPECT_EQ(match.Check(request(3, 7)), absl::OkStatus());
  EXPECT_EQ(match.Check(request(3, 0)), absl::OkStatus());
  EXPECT_EQ(match.Check(request(3, 8)),
            absl::FailedPreconditionError(
                "worker 3: the content of the first values differs from the job's (expected hash "
                "0000000000000007, got 0000000000000008)"));
}

}  // namespace
}  // namespace thinwire
