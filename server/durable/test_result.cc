#include "server/durable/test_result.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace thinwire {

std::string TestResult::Text() const {
  return absl::StrFormat("%s%.4f", is_loss ? "loss " : "", value);
}

std::optional<TestResult> TestResultOf(const ModelTest& test) {
  if (test.result_case() == ModelTest::RESULT_NOT_SET) return std::nullopt;
  const bool is_loss = test.has_loss();
  const TestResult result = {.step = Step{test.step()},
                             .value = is_loss ? test.loss() : test.accuracy(),
                             .is_loss = is_loss};
  return std::isfinite(result.value) ? std::optional(result) : std::nullopt;
}

ModelTest MessageOf(const TestResult& result) {
  ModelTest test;
  test.set_step(result.step.value);
  if (result.is_loss) {
    test.set_loss(result.value);
  } else {
    test.set_accuracy(result.value);
  }
  return test;
}

}  // namespace thinwire
