#include "cli/process_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <sstream>

#include "cli/temp_dir.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Long enough that only a hang meets it.
constexpr absl::Duration kPatience = absl::Seconds(60);

class ProcessSetTest : public testing::Test {
 protected:
  void SetUp() override {
    signals_ = std::move(*Signals::Block());
    dir_ = std::move(*TempDir::Make(testing::TempDir()));
    set_ = std::make_unique<ProcessSet>(*signals_, dir_->path());
  }

  void Shell(const std::string& name, const std::string& script) {
    const auto status = set_->Start(name, {"/bin/sh", "-c", script});
    EXPECT_TRUE(status.ok()) << status;
  }

  // All events of a kind until every child has ended.
  std::vector<ProcessEvent> AllOf(ProcessEvent::Kind kind) {
    std::vector<ProcessEvent> all;
    while (set_->running_count() > 0) {
      const auto events = set_->Wait(kPatience);
      if (events.empty()) continue;
      for (const auto& event : events) {
        if (event.kind == kind) all.push_back(event);
      }
    }
    return all;
  }

  // The next event of a kind.
  ProcessEvent Next(ProcessEvent::Kind kind) {
    while (true) {
      for (const auto& event : set_->Wait(kPatience)) {
        if (event.kind == kind) return event;
      }
    }
  }

  std::unique_ptr<Signals> signals_;
  std::unique_ptr<TempDir> dir_;
  std::unique_ptr<ProcessSet> set_;
};

TEST_F(ProcessSetTest, LinesComeBeforeTheExitAndNameTheirProcess) {
  Shell("worker 1", "echo one; printf two; exit 7");
  std::vector<ProcessEvent> events;
  while (set_->running_count() > 0) {
    for (auto& event : set_->Wait(kPatience)) events.push_back(event);
  }
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[0].text, "one");
  EXPECT_EQ(events[1].text, "two");
  EXPECT_EQ(events[2].kind, ProcessEvent::Kind::kExit);
  EXPECT_EQ(events[2].exit.code, 7);
  for (const auto& event : events) EXPECT_EQ(event.name, "worker 1");
}

TEST_F(ProcessSetTest, TheLogIsKeptInAFileAndItsTailInMemory) {
  Shell("server 0", "for i in $(seq 30); do echo line $i >&2; done");
  EXPECT_THAT(AllOf(ProcessEvent::Kind::kLog), SizeIs(30));
  EXPECT_THAT(set_->Tail("server 0"), SizeIs(ProcessSet::kTailLines));
  EXPECT_EQ(set_->Tail("server 0").back(), "line 30");
  std::ostringstream text;
  text << std::ifstream(dir_->PathOf("server 0.log")).rdbuf();
  EXPECT_THAT(text.str(), testing::StartsWith("line 1\nline 2\n"));
}

TEST_F(ProcessSetTest, ASignalToOneLeavesTheOthers) {
  Shell("a", "echo ready; exec sleep 1000");
  Shell("b", "echo ready; read line; exec sleep 1000");
  Next(ProcessEvent::Kind::kLine);
  set_->Signal("a", SIGKILL);
  const ProcessEvent exit = Next(ProcessEvent::Kind::kExit);
  EXPECT_EQ(exit.name, "a");
  EXPECT_EQ(exit.exit.signal, SIGKILL);
  EXPECT_FALSE(set_->running("a"));
  EXPECT_TRUE(set_->running("b"));
}

TEST_F(ProcessSetTest, AnInterruptOfThisProgramIsAnEvent) {
  raise(SIGINT);
  EXPECT_EQ(Next(ProcessEvent::Kind::kSignal).signal, SIGINT);
}

TEST_F(ProcessSetTest, AnExitWhosePipeAnotherHoldsIsStillSeen) {
  Shell("a", "sleep 1000 & exit 0");
  EXPECT_THAT(AllOf(ProcessEvent::Kind::kExit), SizeIs(1));
}

TEST(IsComplaintTest, WarningsAndErrorsAreNoNotes) {
  EXPECT_TRUE(IsComplaint("W1120 23:20:21.1 12 edge.cc:7] slow"));
  EXPECT_TRUE(IsComplaint("E1120 23:20:21.1 12 edge.cc:7] lost"));
  EXPECT_TRUE(IsComplaint("WARNING: slow"));
  EXPECT_TRUE(IsComplaint("worker: error: server 1 is silent"));
  EXPECT_FALSE(IsComplaint("I1120 23:20:21.1 12 edge.cc:7] worker 3 joined"));
  EXPECT_FALSE(IsComplaint("Waiting for 3 workers"));
  EXPECT_FALSE(IsComplaint(""));
}

}  // namespace
}  // namespace thinwire
