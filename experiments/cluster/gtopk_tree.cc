#include "experiments/cluster/gtopk_tree.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "common/codec/sparse/sparse_payload.h"

namespace thinwire::lab {
namespace {

constexpr size_t kEntryBytes = 8;

}  // namespace

GtopkTree::GtopkTree(const Partition& partition, size_t worker_count, client::PushSchedule schedule,
                     const CorrectionOptions& correction, const CodecCosts& costs,
                     VirtualTime& queue, LinkModel& network,
                     std::function<void(size_t worker)> done)
    : schedule_(std::move(schedule)),
      costs_(costs),
      network_(network),
      done_(std::move(done)),
      processors_(worker_count, queue),
      workers_(worker_count),
      corrections_(worker_count, client::MomentumCorrection(correction)),
      residuals_(worker_count, PeerResidual(partition.value_count())) {
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const size_t size = partition.value_count(ShardId{s});
    if (partition.HoldsVectors(ShardId{s})) {
      vector_value_count_ += size;
    } else {
      matrix_shards_.push_back(size);
    }
  }
}

size_t GtopkTree::EntryCount(Step step) const {
  const CodecSpec spec = schedule_.At(step);
  size_t count = vector_value_count_;
  for (const size_t size : matrix_shards_) {
    count += SparseEntryCount(spec.density, size, spec.least_sent);
  }
  return count;
}

size_t GtopkTree::RoundCount(size_t worker) const {
  return static_cast<size_t>(std::countr_zero(worker == 0 ? workers_.size() : worker));
}

void GtopkTree::Begin(size_t worker) {
  processors_.Run(worker, costs_.Encode(CodecId::kTopK, residuals_[worker].values().size()),
                  [this, worker] {
                    workers_[worker].ready = true;
                    MergeNext(worker);
                  });
}

void GtopkTree::Send(size_t from, size_t to, Step step, Executor::Task delivered) {
  network_.Send(from, to, EntryCount(step) * kEntryBytes, std::move(delivered));
}

void GtopkTree::MergeNext(size_t worker) {
  Worker& state = workers_[worker];
  if (!state.ready || state.merging) return;
  const size_t round = state.merged_count;
  if (round < RoundCount(worker)) {
    if ((state.received >> round & 1) == 0) return;
    state.merging = true;
    state.received &= ~(size_t{1} << round);
    processors_.Run(worker, costs_.Decode(CodecId::kTopK, EntryCount(state.step)), [this, worker] {
      workers_[worker].merging = false;
      ++workers_[worker].merged_count;
      MergeNext(worker);
    });
    return;
  }
  // All entries below this worker are merged.
  state.ready = false;
  if (worker == 0) {
    Broadcast(worker, round, state.step);
    return Finish(worker);
  }
  const size_t parent = worker & (worker - 1);
  Send(worker, parent, state.step, [this, parent, round] {
    workers_[parent].received |= size_t{1} << round;
    MergeNext(parent);
  });
}

void GtopkTree::Broadcast(size_t worker, size_t round, Step step) {
  if (round == 0) return;
  const size_t receiver = worker + (size_t{1} << (round - 1));
  Send(worker, receiver, step, [this, worker, receiver, round, step] {
    Broadcast(worker, round - 1, step);
    Broadcast(receiver, round - 1, step);
    processors_.Run(receiver, costs_.Decode(CodecId::kTopK, EntryCount(step)),
                    [this, receiver] { Finish(receiver); });
  });
}

void GtopkTree::Finish(size_t worker) {
  ++workers_[worker].step;
  workers_[worker].merged_count = 0;
  done_(worker);
}

void GtopkTree::Sum(Step step, Gradients gradients, TaskPool& pool, std::span<float> sum) {
  const size_t entry_count = EntryCount(step);
  std::vector<Entries> selected(gradients.size());
  ForEach(pool, gradients.size(), [&](size_t worker) {
    client::MomentumCorrection& correction = corrections_[worker];
    std::vector<float> scratch;
    selected[worker] =
        residuals_[worker].Select(correction.Correct(gradients[worker], scratch), entry_count);
    std::vector<uint32_t> indices;
    for (const Entry& entry : selected[worker]) indices.push_back(entry.index);
    correction.Sent(indices);
  });
  const Entries applied = PeerTree(selected, entry_count);
  ForEach(pool, gradients.size(),
          [&](size_t worker) { residuals_[worker].Return(selected[worker], applied); });
  std::ranges::fill(sum, 0.0f);
  for (const Entry& entry : applied) sum[entry.index] = entry.value;
}

}  // namespace thinwire::lab
