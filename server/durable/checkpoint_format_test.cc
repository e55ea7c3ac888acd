#include "server/durable/checkpoint_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "common/files/safetensors.h"
#include "common/memory/array_bytes.h"
#include "server/durable/testing/random_server.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

ByteChain Floats(std::vector<float> values) { return CopyArray(std::as_bytes(std::span(values))); }

// Returns CHAIN as one piece of memory.
ByteChain OnePiece(const ByteChain& chain) { return ByteChain(chain.ToVector()); }

SavedShard SmallShard() {
  SavedShard saved = {.shard = ShardId{7}};
  saved.state.store.version = Version{41};
  saved.state.store.masters = Floats({1, 2});
  saved.state.store.updater.slots = {Floats({3, 4}), Floats({5, 6})};
  saved.state.published = {.version = Version{40}, .publish_count = 3, .values = Floats({7, 8})};
  return saved;
}

TEST(CheckpointFormatTest, EveryKindOfStateSurvivesARoundTrip) {
  int shard_count = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Checkpoint checkpoint = RandomServer(seed, 3).Next(60);
    const auto manifest = ParseManifest(PrintManifest(ManifestOf(checkpoint)));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    absl::StatusOr<Checkpoint> read = CheckpointOf(*manifest);
    ASSERT_TRUE(read.ok()) << read.status();
    for (size_t i = 0; i < read->shards.size(); ++i) {
      const ByteChain file = OnePiece(EncodeShardFile(checkpoint.shards[i]));
      const absl::Status status = DecodeShardFile(file, read->shards[i]);
      ASSERT_TRUE(status.ok()) << status;
      ++shard_count;
    }
    EXPECT_EQ(*read, checkpoint) << "seed " << seed;
  }
  EXPECT_EQ(shard_count, 600);
}

TEST(CheckpointFormatTest, MeanSquaresAreAnArrayOfAShard) {
  SavedShard saved = SmallShard();
  saved.state.mean_squares = Floats({9, 10});
  for (const SavedShard& written : {saved, SmallShard()}) {
    SavedShard read = {.shard = saved.shard};
    read.state.store.version = saved.state.store.version;
    read.state.published = {.version = Version{40}, .publish_count = 3};
    ASSERT_TRUE(DecodeShardFile(OnePiece(EncodeShardFile(written)), read).ok());
    EXPECT_EQ(read.state, written.state);
  }
}

TEST(CheckpointFormatTest, AManifestIsReadableJson) {
  const Checkpoint checkpoint = RandomServer(1, 1).Next(60);
  const std::string text = PrintManifest(ManifestOf(checkpoint));
  EXPECT_THAT(text, HasSubstr("{\n \"format\": 1,\n \"server\": 1,\n"));
  EXPECT_THAT(text, HasSubstr(" \"run\": \"9223372036854775809\",\n"));
  EXPECT_THAT(text, HasSubstr("\"momentum\": 0.1\n"));
  EXPECT_THAT(text, HasSubstr(",\n \"manifest_crc32c\": \""));
}

TEST(CheckpointFormatTest, EveryDamagedByteOfAManifestIsFound) {
  const std::string text = PrintManifest(ManifestOf(RandomServer(1, 1).Next(60)));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_EQ(ParseManifest(damaged).status().message(), "wrong checksum") << "byte " << i;
    EXPECT_FALSE(ParseManifest(text.substr(0, i)).ok()) << i << " bytes";
  }
}

TEST(CheckpointFormatTest, AnotherFormatIsRefused) {
  CheckpointManifest manifest = ManifestOf(RandomServer(1, 1).Next(60));
  manifest.set_format(2);
  EXPECT_EQ(ParseManifest(PrintManifest(manifest)).status().message(),
            "unknown format (expected 1, got 2)");
}

TEST(CheckpointFormatTest, ListsThatAreNestedTooDeeplyAreRefused) {
  const std::string printed = PrintManifest(ManifestOf(RandomServer(1, 1).Next(60)));
  const std::string body = printed.substr(0, printed.size() - ManifestEnd("").size());
  // Brackets in strings of either kind are not nested lists.
  for (const std::string quote : {"\"", "'"}) {
    const std::string brackets(40, '[');
    const std::string name = quote + brackets + "\\" + quote + brackets + quote;
    const std::string named = body + " \"join\": {\"tensors\": [{\"name\": " + name + "}]},\n";
    EXPECT_TRUE(ParseManifest(named + ManifestEnd(named)).ok()) << named;
    const std::string nested = named + " \"shards\": " + brackets;
    EXPECT_EQ(ParseManifest(nested + ManifestEnd(nested)).status().message(),
              "nested too deeply (expected at most 32 levels, got more)");
  }
}

TEST(CheckpointFormatTest, NumbersOutOfRangeAreRefused) {
  using Change = void (*)(CheckpointManifest&);
  const std::pair<Change, const char*> cases[] = {
      {[](CheckpointManifest& m) { m.mutable_members(1)->set_worker(0); },
       "members: worker: out of range (got 0)"},
      {[](CheckpointManifest& m) { m.mutable_shards(1)->set_shard(0); },
       "shards: shard: out of range (got 0)"},
      {[](CheckpointManifest& m) {
         m.mutable_shards(0)->mutable_workers(0)->set_last_push_step(1);
         m.mutable_shards(0)->mutable_workers(0)->set_last_push_verdict(8);
       },
       "last_push_verdict: out of range (got 8)"},
      {[](CheckpointManifest& m) {
         m.mutable_shards(0)->mutable_workers(0)->mutable_waiting()->set_read_codec(6);
       },
       "read_codec: out of range (got 6)"},
      {[](CheckpointManifest& m) {
         m.mutable_shards(0)->mutable_workers(0)->mutable_waiting()->set_read_codec(257);
       },
       "read_codec: out of range (got 257)"},
  };
  const CheckpointManifest manifest = ManifestOf(RandomServer(1, 2).Next(60));
  for (const auto& [change, message] : cases) {
    CheckpointManifest changed = manifest;
    change(changed);
    EXPECT_EQ(CheckpointOf(changed).status().message(), message);
  }
}

TEST(CheckpointFormatTest, AShardFileIsASafetensorsFile) {
  const std::vector<std::byte> bytes = EncodeShardFile(SmallShard()).ToVector();
  const auto index = ParseSafetensors(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "shard file");
  ASSERT_TRUE(index.ok()) << index.status();
  std::vector<std::string> names;
  for (const auto& [name, entry] : *index) {
    names.push_back(name);
    EXPECT_EQ(entry.dtype, "F32");
    EXPECT_EQ(entry.shape, std::vector<int64_t>{2});
  }
  EXPECT_THAT(names, testing::ElementsAre("masters", "published", "slot_0", "slot_1"));
}

TEST(CheckpointFormatTest, ArraysThatDoNotBelongToTheShardAreRefused) {
  const ByteChain file = OnePiece(EncodeShardFile(SmallShard()));
  SavedShard unpublished;
  EXPECT_EQ(DecodeShardFile(file, unpublished).message(),
            "tensor \"published\": not an array of this shard");
  std::string text(file.size(), '\0');
  file.CopyTo(std::as_writable_bytes(std::span(text)));
  const std::string renamed = absl::StrReplaceAll(text, {{"slot_0", "slot_2"}});
  SavedShard saved = {.state = {.published = PublishedSnapshot()}};
  EXPECT_EQ(DecodeShardFile(CopyArray(std::as_bytes(std::span(renamed))), saved).message(),
            "tensor \"slot_1\": not an array of this shard");
  const std::string retyped = absl::StrReplaceAll(text, {{"F32", "I32"}});
  saved = {.state = {.published = PublishedSnapshot()}};
  EXPECT_THAT(DecodeShardFile(CopyArray(std::as_bytes(std::span(retyped))), saved).message(),
              HasSubstr("wrong type (expected F32, got I32)"));
}

TEST(CheckpointFormatTest, AStateIsHealthyIfItIsFiniteAndNotSaturated) {
  ShardSnapshot state = SmallShard().state;
  EXPECT_TRUE(IsHealthy(state));
  state.store.saturated = true;
  EXPECT_FALSE(IsHealthy(state));
  state.store.saturated = false;
  std::vector<float> masters(10000, 1);
  state.store.masters = Floats(masters);
  EXPECT_TRUE(IsHealthy(state));
  masters.back() = std::numeric_limits<float>::quiet_NaN();
  state.store.masters = Floats(masters);
  EXPECT_FALSE(IsHealthy(state));
}

TEST(CheckpointFormatTest, FilesAreNamedAfterShardAndVersion) {
  EXPECT_EQ(ShardFileName(ShardId{12}, Version{345}), "shard-00012-v345.safetensors");
  EXPECT_EQ(HexCrc32c(Floats({})), "00000000");
}

}  // namespace
}  // namespace thinwire
