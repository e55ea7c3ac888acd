// PublishNewest stores a shard's newest parameters where the streams to its readers find them.
#ifndef THINWIRE_SERVER_SHARDS_STREAM_PUBLISH_NEWEST_H_
#define THINWIRE_SERVER_SHARDS_STREAM_PUBLISH_NEWEST_H_

#include <memory>

#include "server/core/read_form.h"
#include "server/core/shard.h"
#include "server/shards/stream/published_slots.h"

namespace thinwire {

// Stores the newest parameters of SHARD in SLOTS, in the form that a reader has requested. Every
// unsent answer of the shard shares ownership of SLOTS; deltas that these answers need stay in
// SLOTS. Call this on the shard's strand. REQUIRES: SHARD is seeded.
void PublishNewest(Shard& shard, const ReadForm& form,
                   const std::shared_ptr<PublishedSlots>& slots);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_STREAM_PUBLISH_NEWEST_H_
