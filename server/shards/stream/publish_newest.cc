#include "server/shards/stream/publish_newest.h"

#include <optional>
#include <utility>

#include "common/base/ids.h"

namespace thinwire {
namespace {

// Stores the deltas for readers that hold published version HELD, and for unsent answers.
void PublishDeltas(Shard& shard, std::optional<Version> held,
                   const std::shared_ptr<PublishedSlots>& slots) {
  const PublishedState last = slots->published();
  PublishedState next = {
      .log = shard.log(), .frontier = shard.frontier(), .selected_list = shard.selected_list()};
  bool needs_full = !held.has_value() || !next.log->Contains(*held);
  const bool has_unsent_answers = slots.use_count() > 1;
  if (has_unsent_answers && last.log != nullptr) {
    // Readers of unsent answers hold versions in the last log, or need its full copy.
    if (last.full != nullptr && next.log->Contains(last.full->version)) {
      next.full = last.full;
    } else {
      needs_full = needs_full || !next.log->Contains(last.log->oldest());
    }
  }
  if (needs_full) next.full = shard.Deltas(std::nullopt).front();
  slots->PutPublished(std::move(next));
}

}  // namespace

void PublishNewest(Shard& shard, const ReadForm& form,
                   const std::shared_ptr<PublishedSlots>& slots) {
  if (form.published) return PublishDeltas(shard, form.held, slots);
  slots->Put(form.codec,
             {shard.version(), shard.frontier(), shard.Encoded(form.codec), shard.selected_list()});
}

}  // namespace thinwire
