#include "experiments/aggregation.h"

#include <cmath>
#include <limits>

#include "common/codec/codec.h"
#include "common/codec/error_feedback.h"
#include "experiments/peer_tree.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/global_top_k.h"

namespace thinwire {
namespace {

class DenseAggregation final : public Aggregation {
 public:
  explicit DenseAggregation(size_t value_count) : value_count_(value_count) {}

  std::vector<float> Step(std::span<const std::vector<float>> gradients) override {
    std::vector<double> sum(value_count_);
    for (const auto& gradient : gradients) {
      for (size_t i = 0; i < value_count_; ++i) sum[i] += gradient[i];
    }
    std::vector<float> average;
    for (const double value : sum) {
      average.push_back(static_cast<float>(value / static_cast<double>(gradients.size())));
    }
    return average;
  }
  double selected() const override { return 0; }
  std::vector<double> Pending() const override { return std::vector<double>(value_count_); }

 private:
  const size_t value_count_;
};

// A gTop-k method that returns unselected values to the workers' residuals. Each worker selects k
// entries. MERGE combines the entries of all workers into the k entries to apply.
class ReturningAggregation final : public Aggregation {
 public:
  using Merge = Entries (*)(std::vector<Entries> selected, size_t k);

  ReturningAggregation(size_t value_count, size_t worker_count, size_t k, Merge merge)
      : value_count_(value_count),
        k_(k),
        merge_(merge),
        residuals_(worker_count, PeerResidual(value_count)) {}

  std::vector<float> Step(std::span<const std::vector<float>> gradients) override {
    std::vector<Entries> selected;
    selected_ = 0;
    for (size_t w = 0; w < gradients.size(); ++w) {
      selected.push_back(residuals_[w].Select(gradients[w], k_));
      for (const Entry& entry : selected.back()) selected_ += std::abs(entry.value);
    }
    const Entries merged = merge_(selected, k_);
    std::vector<float> average(value_count_);
    for (const Entry& entry : merged) {
      average[entry.index] = entry.value / static_cast<float>(gradients.size());
    }
    for (size_t w = 0; w < gradients.size(); ++w) residuals_[w].Return(selected[w], merged);
    return average;
  }

  double selected() const override { return selected_; }

  std::vector<double> Pending() const override {
    std::vector<double> pending(value_count_);
    for (const PeerResidual& residual : residuals_) {
      for (size_t i = 0; i < pending.size(); ++i) {
        pending[i] += residual.values()[i] / static_cast<double>(residuals_.size());
      }
    }
    return pending;
  }

 private:
  const size_t value_count_;
  const size_t k_;
  const Merge merge_;
  std::vector<PeerResidual> residuals_;
  double selected_ = 0;
};

// Adds the values that all workers selected, index by index, and returns the `k` sums of largest
// magnitude.
Entries ExactSum(std::vector<Entries> selected, size_t k) {
  Entries sum;
  for (const Entries& entries : selected) {
    sum = MergeLargest(sum, entries, std::numeric_limits<size_t>::max());
  }
  return MergeLargest(sum, {}, k);
}

// thinwire's own method, built from the classes that its workers and servers use.
class ServerAggregation final : public Aggregation {
 public:
  ServerAggregation(size_t value_count, size_t worker_count, size_t k)
      : value_count_(value_count),
        k_(k),
        codec_(MakeCodec({.id = CodecId::kTopK,
                          .density = static_cast<double>(k) / static_cast<double>(value_count)})
                   .value()),
        residuals_(worker_count, ErrorFeedback(value_count, true)),
        accumulator_(value_count, true),
        selection_(value_count) {}

  std::vector<float> Step(std::span<const std::vector<float>> gradients) override {
    selected_ = 0;
    for (size_t w = 0; w < gradients.size(); ++w) {
      std::vector<std::byte> bytes(codec_->MaxPayloadBytes(value_count_));
      bytes.resize(residuals_[w].Encode(*codec_, gradients[w], RandomKeys(), bytes));
      const CheckedPayload payload = EncodedPayload(ByteChain(std::move(bytes)), value_count_);
      ForEachPayloadEntry(payload, [&](auto, std::span<const float> values) {
        for (const float value : values) selected_ += std::abs(value);
      });
      accumulator_.Fold({WorkerId{static_cast<uint32_t>(w)}, 1, 0, payload});
    }
    selection_.Select(accumulator_, 1 / static_cast<float>(gradients.size()), k_);
    accumulator_.Clear();
    std::vector<float> average(value_count_);
    for (size_t j = 0; j < selection_.indices().size(); ++j) {
      average[selection_.indices()[j]] = selection_.values()[j];
    }
    return average;
  }

  double selected() const override { return selected_; }

  std::vector<double> Pending() const override {
    std::vector<double> pending(selection_.remainder().begin(), selection_.remainder().end());
    for (const ErrorFeedback& residual : residuals_) {
      for (size_t i = 0; i < residual.residual().size(); ++i) {
        pending[i] += residual.residual()[i] / static_cast<double>(residuals_.size());
      }
    }
    return pending;
  }

 private:
  const size_t value_count_;
  const size_t k_;
  const std::unique_ptr<const Codec> codec_;
  std::vector<ErrorFeedback> residuals_;
  Accumulator accumulator_;
  GlobalTopK selection_;
  double selected_ = 0;
};

}  // namespace

std::unique_ptr<Aggregation> MakeDenseAggregation(size_t value_count) {
  return std::make_unique<DenseAggregation>(value_count);
}

std::unique_ptr<Aggregation> MakeTreeAggregation(size_t value_count, size_t worker_count,
                                                 size_t k) {
  return std::make_unique<ReturningAggregation>(value_count, worker_count, k, PeerTree);
}

std::unique_ptr<Aggregation> MakeExactAggregation(size_t value_count, size_t worker_count,
                                                  size_t k) {
  return std::make_unique<ReturningAggregation>(value_count, worker_count, k, ExactSum);
}

std::unique_ptr<Aggregation> MakeServerAggregation(size_t value_count, size_t worker_count,
                                                   size_t k) {
  return std::make_unique<ServerAggregation>(value_count, worker_count, k);
}

}  // namespace thinwire
