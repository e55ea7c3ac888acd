// TestResult: the result of a test of the model, which decides how long a checkpoint is kept
// (docs/checkpoint.md#writing).
#ifndef THINWIRE_SERVER_DURABLE_TEST_RESULT_H_
#define THINWIRE_SERVER_DURABLE_TEST_RESULT_H_

#include <optional>
#include <string>

#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

struct TestResult {
  Step step;             // the step whose parameters were tested
  double value = 0;      // the accuracy, or the mean loss; finite
  bool is_loss = false;  // the model computes no accuracy

  // Returns whether the accuracy is higher than that of OTHER, or the loss smaller. An accuracy is
  // better than a loss.
  bool IsBetterThan(const TestResult& other) const {
    if (is_loss != other.is_loss) return !is_loss;
    return is_loss ? value < other.value : value > other.value;
  }
  // Returns "0.8944", or "loss 0.2910".
  std::string Text() const;

  bool operator==(const TestResult&) const = default;
};

// Returns nullopt if TEST has no result, or one that is not finite.
std::optional<TestResult> TestResultOf(const ModelTest& test);
ModelTest MessageOf(const TestResult& result);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_TEST_RESULT_H_
