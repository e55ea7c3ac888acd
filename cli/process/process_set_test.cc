#include "cli/process/process_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <sstream>

#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Tests reach this timeout only if they hang.
constexpr absl::Duration kTimeout = absl::Seconds(60);

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

  // Waits until every child has ended. Returns all events of the given kind that happened until
  // then.
  std::vector<ProcessEvent> AllOf(ProcessEvent::Kind kind) {
    std::vector<ProcessEvent> all;
    while (set_->running_count() > 0) {
      const auto events = set_->Wait(kTimeout);
      if (events.empty()) continue;
      for (const auto& event : events) {
        if (event.kind == kind) all.push_back(event);
      }
    }
    return all;
  }

  // Blocks until the next event of the given kind, and returns the event.
  ProcessEvent Next(ProcessEvent::Kind kind) {
    while (true) {
      for (const auto& event : set_->Wait(kTimeout)) {
        if (event.kind == kind) return event;
      }
    }
  }

  std::unique_ptr<Signals> signals_;
  std::unique_ptr<TempDir> dir_;
  std::unique_ptr<ProcessSet> set_;
};

TEST_F(ProcessSetTest, LinesPrecedeTheExitAndNameTheirProcess) {
  Shell("worker 1", "echo one; printf two; exit 7");
  std::vector<ProcessEvent> events;
  while (set_->running_count() > 0) {
    for (auto& event : set_->Wait(kTimeout)) events.push_back(event);
  }
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[0].text, "one");
  EXPECT_EQ(events[1].text, "two");
  EXPECT_EQ(events[2].kind, ProcessEvent::Kind::kExit);
  EXPECT_EQ(events[2].exit.code, 7);
  for (const auto& event : events) EXPECT_EQ(event.name, "worker 1");
}

TEST_F(ProcessSetTest, TheLogIsKeptInAFileAndItsLastLineInMemory) {
  Shell("server 0", "for i in $(seq 30); do echo line $i >&2; done; echo >&2");
  EXPECT_THAT(AllOf(ProcessEvent::Kind::kLog), SizeIs(31));
  EXPECT_EQ(set_->LastLogLine("server 0"), "line 30");
  EXPECT_EQ(set_->LastLogLine("server 1"), "");
  std::ostringstream text;
  text << std::ifstream(dir_->PathOf("server 0.log")).rdbuf();
  EXPECT_THAT(text.str(), testing::StartsWith("line 1\nline 2\n"));
}

TEST_F(ProcessSetTest, ANewChildHasTheNameOfAnEndedOneButNotItsLastLogLine) {
  Shell("server 0", "echo first >&2");
  EXPECT_THAT(AllOf(ProcessEvent::Kind::kExit), SizeIs(1));
  EXPECT_EQ(set_->LastLogLine("server 0"), "first");
  Shell("server 0", "exit 3");
  EXPECT_THAT(AllOf(ProcessEvent::Kind::kExit), SizeIs(1));
  EXPECT_EQ(set_->LastLogLine("server 0"), "");
}

TEST_F(ProcessSetTest, OutputPrecedesTheLogThatWasWrittenAfterIt) {
  Shell("a", "for i in $(seq 200); do echo out $i; echo log $i >&2; done");
  int lines = 0, logs = 0;
  while (set_->running_count() > 0) {
    for (const auto& event : set_->Wait(kTimeout)) {
      lines += event.kind == ProcessEvent::Kind::kLine ? 1 : 0;
      logs += event.kind == ProcessEvent::Kind::kLog ? 1 : 0;
      EXPECT_LE(logs, lines);
    }
  }
  EXPECT_EQ(logs, 200);
}

TEST_F(ProcessSetTest, ASignalToOneChildDoesNotAffectTheOthers) {
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

TEST_F(ProcessSetTest, AnInterruptOfThisProcessIsAnEvent) {
  raise(SIGINT);
  EXPECT_EQ(Next(ProcessEvent::Kind::kSignal).signal, SIGINT);
}

TEST_F(ProcessSetTest, AnExitIsReportedEvenIfAGrandchildHoldsThePipes) {
  Shell("a", "sleep 1000 & exit 0");
  EXPECT_THAT(AllOf(ProcessEvent::Kind::kExit), SizeIs(1));
}

TEST(LineSplitterTest, ALineMayArriveInPieces) {
  LineSplitter splitter;
  EXPECT_THAT(splitter.Take("listening 127"), IsEmpty());
  EXPECT_THAT(splitter.Take(".0.0.1:4\n\nsecond\nth"),
              ElementsAre("listening 127.0.0.1:4", "", "second"));
  EXPECT_THAT(splitter.TakeUnterminated(), ElementsAre("th"));
  EXPECT_THAT(splitter.TakeUnterminated(), IsEmpty());
}

TEST(LineSplitterTest, AnEndlessLineIsSplit) {
  LineSplitter splitter;
  const std::string bytes(LineSplitter::kMaxLineBytes + 10, 'x');
  EXPECT_THAT(splitter.Take(bytes), ElementsAre(SizeIs(LineSplitter::kMaxLineBytes)));
  EXPECT_THAT(splitter.TakeUnterminated(), ElementsAre(SizeIs(10)));
}

TEST(IsWarningOrErrorTest, GlogAndPlainMessagesAreRecognized) {
  EXPECT_TRUE(IsWarningOrError("W1120 23:20:21.1 12 edge.cc:7] slow"));
  EXPECT_TRUE(IsWarningOrError("E1120 23:20:21.1 12 edge.cc:7] lost"));
  EXPECT_TRUE(IsWarningOrError("WARNING: slow"));
  EXPECT_TRUE(IsWarningOrError("worker: error: server 1 is silent"));
  EXPECT_FALSE(IsWarningOrError("I1120 23:20:21.1 12 edge.cc:7] worker 3 joined"));
  EXPECT_FALSE(IsWarningOrError("Waiting for 3 workers"));
  EXPECT_FALSE(IsWarningOrError(""));
}

}  // namespace
}  // namespace thinwire
