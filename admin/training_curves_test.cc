#include "admin/training_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace thinwire {
namespace {

using Point = Curve::Point;
using testing::ElementsAre;

constexpr absl::Time kStart = absl::UnixEpoch();

void AddWorker(uint32_t number, bool live, double loss, StatusReply& reply) {
  WorkerStatus& worker = *reply.add_workers();
  worker.set_worker(number);
  worker.set_live(live);
  (*reply.mutable_progress())[number].set_loss(loss);
}

StatusReply ReplyWithLoss(double loss) {
  StatusReply reply;
  AddWorker(0, true, loss, reply);
  return reply;
}

TEST(TrainingCurvesTest, WithoutNewsNothingIsKnown) {
  TrainingCurves curves;
  curves.Add(StatusReply(), 0, kStart);
  EXPECT_EQ(curves.steps_per_second(), std::nullopt);
  EXPECT_TRUE(curves.loss().points().empty());
  EXPECT_TRUE(curves.accuracy().points().empty());
}

TEST(TrainingCurvesTest, TheSpeedIsThatOfTheLastMinute) {
  TrainingCurves curves;
  for (int second = 0; second <= 120; ++second) {
    const uint64_t step = second < 60 ? 0 : (second - 60) * 2;
    curves.Add(StatusReply(), step, kStart + absl::Seconds(second));
    if (second == 60) {
      EXPECT_EQ(curves.steps_per_second(), std::nullopt);
    }
  }
  EXPECT_EQ(curves.steps_per_second(), 2);
  // The job goes back.
  curves.Add(StatusReply(), 50, kStart + absl::Seconds(121));
  EXPECT_EQ(curves.steps_per_second(), std::nullopt);
  curves.Add(StatusReply(), 80, kStart + absl::Seconds(131));
  EXPECT_EQ(curves.steps_per_second(), 3);
}

TEST(TrainingCurvesTest, TheLossIsTheMeanOfTheLiveWorkers) {
  StatusReply reply;
  AddWorker(0, true, 1, reply);
  AddWorker(1, true, 2, reply);
  AddWorker(2, false, 9, reply);
  reply.add_workers()->set_worker(3);  // states nothing
  TrainingCurves curves;
  curves.Add(reply, 7, kStart);
  EXPECT_THAT(curves.loss().points(), ElementsAre(Point{7, 1.5}));
}

TEST(TrainingCurvesTest, AStepHasOnePoint) {
  TrainingCurves curves;
  curves.Add(ReplyWithLoss(4), 10, kStart);
  curves.Add(ReplyWithLoss(3), 10, kStart);
  curves.Add(ReplyWithLoss(3), 20, kStart);
  curves.Add(ReplyWithLoss(2), 15, kStart);  // the job has gone back
  curves.Add(ReplyWithLoss(1), 30, kStart);
  EXPECT_THAT(curves.loss().points(), ElementsAre(Point{10, 4}, Point{20, 3}, Point{30, 1}));
}

TEST(TrainingCurvesTest, TheNewestTestCounts) {
  TrainingCurves curves;
  StatusReply reply;
  AddWorker(0, true, 1, reply);
  AddWorker(1, true, 1, reply);
  ModelTest& early = *(*reply.mutable_progress())[0].mutable_test();
  early.set_step(100);
  early.set_accuracy(0.5);
  curves.Add(reply, 110, kStart);
  ModelTest& late = *(*reply.mutable_progress())[1].mutable_test();
  late.set_step(200);
  late.set_accuracy(0.75);
  curves.Add(reply, 210, kStart);
  curves.Add(reply, 220, kStart);
  EXPECT_THAT(curves.accuracy().points(), ElementsAre(Point{100, 0.5}, Point{200, 0.75}));
  EXPECT_TRUE(curves.test_loss().points().empty());
  late.set_step(300);
  late.set_loss(2);
  curves.Add(reply, 310, kStart);
  EXPECT_THAT(curves.test_loss().points(), ElementsAre(Point{300, 2}));
}

TEST(TrainingCurvesTest, ALossThatIsNotFiniteIsNoPoint) {
  TrainingCurves curves;
  curves.Add(ReplyWithLoss(std::numeric_limits<double>::quiet_NaN()), 10, kStart);
  EXPECT_TRUE(curves.loss().points().empty());
}

}  // namespace
}  // namespace thinwire
