// TrainRunTest runs a TrainRun whose servers and workers are shell scripts: real processes, but
// without the gRPC service that TrainRun calls.
#ifndef THINWIRE_CLI_TRAIN_TESTING_TRAIN_RUN_FIXTURE_H_
#define THINWIRE_CLI_TRAIN_TESTING_TRAIN_RUN_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/terminal/console.h"
#include "cli/train/run_record.h"
#include "cli/train/train_run.h"
#include "cli/train/train_setting.h"
#include "common/base/exit_code.h"
#include "common/time/clock.h"

namespace thinwire {

class TrainRunTest : public testing::Test {
 protected:
  static constexpr char kServer[] = "echo listening 127.0.0.1:1; exec sleep 1000";
  // Reads the worker's number. The arguments of a worker are --config FILE --worker NUMBER
  // --addresses LIST, so the number is argument $4.
  static constexpr char kNumber[] = "n=$4; ";
  static constexpr char kDone[] =
      "echo "
      "'{\"worker\":'${n:-0}',\"done\":{\"steps\":\"5\",\"seconds\":1,\"final_train_loss\":0.5}}';"
      " ";

  void SetUp() override {
    signals_ = std::move(*Signals::Block());
    dir_ = std::move(*TempDir::Make(testing::TempDir()));
    setting_.config.set_servers(2);
    setting_.config.mutable_consistency()->set_workers(2);
  }

  std::string Script(const std::string& name, const std::string& text) {
    EXPECT_TRUE(dir_->WriteFile(name, "#!/bin/sh\n" + text + "\n").ok());
    std::filesystem::permissions(dir_->PathOf(name), std::filesystem::perms::owner_all);
    return dir_->PathOf(name);
  }

  ExitCode Run(const std::string& server, const std::string& worker) {
    setting_.programs = {Script("server", server), Script("worker", kNumber + worker)};
    Console console(messages_, {});
    run_ = std::make_unique<TrainRun>(setting_, *signals_, *dir_, console, clock_);
    return run_->Run();
  }

  WorkerRow::State StateOf(uint32_t worker) const {
    return run_->result().record.workers()[worker].state;
  }

  TrainSetting setting_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<TempDir> dir_;
  SteadyClock clock_;
  std::ostringstream messages_;
  std::unique_ptr<TrainRun> run_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_TESTING_TRAIN_RUN_FIXTURE_H_
