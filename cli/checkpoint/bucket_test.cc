#include "cli/checkpoint/bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

class BucketTest : public testing::Test {
 protected:
  BucketTest() { setenv("PATH", absl::StrCat(dir_->path(), ":/usr/bin:/bin").c_str(), 1); }

  // Makes a program rclone that runs SCRIPT.
  void WriteProgram(const std::string& script) {
    const std::string path = dir_->PathOf("rclone");
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  // Returns the error of a download with a program that prints LOG and ends with CODE.
  absl::Status ErrorWith(const std::string& log, int code) {
    WriteProgram(absl::StrCat("cat >&2 <<'END'\n", log, "\nEND\nexit ", code));
    return Bucket::Make("s3://models/run7", *signals_)->Download(dir_->path(), {});
  }

  const std::unique_ptr<Signals> signals_ = std::move(*Signals::Block());
  const std::unique_ptr<TempDir> dir_ = std::move(*TempDir::Make(testing::TempDir()));
};

TEST_F(BucketTest, AnUrlIsS3OrARemoteOrAFolder) {
  for (const char* url : {"s3://models", "s3://models/run7", "minio:models/run7", "/mnt/backup"}) {
    EXPECT_TRUE(Bucket::Make(url, *signals_).ok()) << url;
  }
  for (const char* url :
       {"", "s3://", "s3:///run7", "gs://models/run7", "state", "-v:x", ":s3:x", "./run:7"}) {
    EXPECT_EQ(Bucket::Make(url, *signals_).status(),
              absl::InvalidArgumentError(
                  absl::StrCat("URL: not a bucket (expected s3://BUCKET/PATH, NAME:PATH of "
                               "rclone's configuration or /PATH, got \"",
                               url, "\")")));
  }
}

TEST_F(BucketTest, RulesChooseTheFilesOfACopy) {
  const std::string from = dir_->PathOf("from"), store = dir_->PathOf("store:1");
  std::filesystem::create_directories(from + "/server-0/checkpoint-1");
  std::ofstream(from + "/server-0/LATEST") << "1";
  std::ofstream(from + "/server-0/checkpoint-1/manifest.json") << "{}";
  std::ofstream(from + "/other") << "x";
  auto bucket = Bucket::Make(store, *signals_);
  EXPECT_TRUE(absl::IsNotFound(bucket->Download(dir_->PathOf("to"), {"+ **"})));
  EXPECT_EQ(bucket->Upload(from, {"- /server-*/LATEST", "+ /server-*/**"}), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::exists(store + "/server-0/checkpoint-1/manifest.json"));
  EXPECT_FALSE(std::filesystem::exists(store + "/server-0/LATEST"));
  EXPECT_FALSE(std::filesystem::exists(store + "/other"));
  EXPECT_EQ(bucket->Upload(from, {"+ **"}), absl::OkStatus());
  EXPECT_EQ(bucket->Remove({"+ /server-*/checkpoint-*/**"}), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(store + "/server-0/checkpoint-1"));
  EXPECT_EQ(bucket->Download(dir_->PathOf("to"), {"+ /server-0/**"}), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::exists(dir_->PathOf("to/server-0/LATEST")));
  EXPECT_FALSE(std::filesystem::exists(dir_->PathOf("to/other")));
}

TEST_F(BucketTest, AnErrorHasTheLastMessageOfRcloneAndItsCause) {
  EXPECT_EQ(ErrorWith("2026/11/28 20:10:23 ERROR : a: Failed to copy: NoSuchBucket: none\n"
                      "\tstatus code: 404, request id: 7\n"
                      "2026/11/28 20:10:24 Failed to copy: NoSuchBucket: none\n"
                      "\tstatus code: 404, request id: 8",
                      1),
            absl::NotFoundError("s3://models/run7: rclone: Failed to copy: NoSuchBucket: none"));
  EXPECT_EQ(ErrorWith("2026/11/28 20:10:23 Failed to copy: send request failed\n"
                      "caused by: connection refused",
                      1),
            absl::UnavailableError("s3://models/run7: rclone: Failed to copy: send request failed "
                                   "(caused by: connection refused)"));
  EXPECT_EQ(ErrorWith("2026/11/28 20:10:23 ERROR : x: preallocate: file too big for remaining disk "
                      "space",
                      1),
            absl::ResourceExhaustedError("s3://models/run7: rclone: x: preallocate: file too big "
                                         "for remaining disk space"));
  EXPECT_EQ(ErrorWith("2026/11/28 20:10:23 AccessDenied: no", 1).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrorWith("directory not found", 3),
            absl::NotFoundError("s3://models/run7: rclone: directory not found"));
}

TEST_F(BucketTest, AMissingProgramIsNamed) {
  setenv("PATH", dir_->path().c_str(), 1);
  EXPECT_EQ(Bucket::Make("/mnt", *signals_)->Remove({}),
            absl::FailedPreconditionError("/mnt: the program rclone is missing (expected it on the "
                                          "PATH; Debian's package is rclone)"));
}

TEST_F(BucketTest, AStopSignalEndsRcloneAndWaits) {
  WriteProgram(absl::StrCat("kill -TERM ", getpid(), "\nexec sleep 300"));
  auto bucket = Bucket::Make("s3://models/run7", *signals_);
  EXPECT_EQ(bucket->Upload(dir_->path(), {}),
            absl::CancelledError("s3://models/run7: stopped by a signal"));
  EXPECT_EQ(bucket->signal(), SIGTERM);
  EXPECT_TRUE(absl::IsCancelled(bucket->WaitFor(absl::Milliseconds(1))));
  auto other = Bucket::Make("s3://models/run7", *signals_);
  EXPECT_EQ(other->WaitFor(absl::Milliseconds(1)), absl::OkStatus());
  kill(getpid(), SIGINT);
  EXPECT_TRUE(absl::IsCancelled(other->WaitFor(absl::Minutes(10))));
  EXPECT_EQ(other->signal(), SIGINT);
}

}  // namespace
}  // namespace thinwire
