#include "server/core/publish/delta_publisher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "common/codec/codec_cases.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/model/value_hash.h"

namespace thinwire {
namespace {

using Floats = std::vector<float>;

Floats PublishedBy(const DeltaPublisher& publisher) {
  return {publisher.published().begin(), publisher.published().end()};
}

// A reader that applies deltas as docs/wire.md defines.
struct Reader {
  Floats values;
  std::optional<Version> held;

  void Take(const DeltaChain& chain) {
    ASSERT_FALSE(chain.empty());
    for (const auto& delta : chain) {
      Apply(*delta);
      held = delta->version;
      if (delta->hash == 0) continue;
      EXPECT_EQ(HashValues(values), delta->hash);
    }
  }

  void Apply(const PublishedDelta& delta) {
    if (delta.kind == PublishedDelta::Kind::kFull) {
      values.resize((delta.payload.size() - 1) / sizeof(float));
    } else {
      ASSERT_EQ(delta.base, held);
      if (delta.base == delta.version) {
        EXPECT_TRUE(delta.payload.empty());
        return;
      }
    }
    if (delta.kind == PublishedDelta::Kind::kUlpDelta) {
      const auto checked = UlpDelta::Check(delta.payload, values.size());
      ASSERT_TRUE(checked.ok()) << checked.status();
      return checked->Apply(values);
    }
    const auto checked = CheckPayload(delta.payload, values.size());
    ASSERT_TRUE(checked.ok()) << checked.status();
    if (delta.kind == PublishedDelta::Kind::kAdd) {
      DecodePayloadAdd(*checked, 1, values);
    } else {
      DecodePayload(*checked, values);
    }
  }
};

size_t Bytes(const DeltaChain& chain) {
  size_t bytes = 0;
  for (const auto& delta : chain) bytes += delta->payload.size();
  return bytes;
}

TEST(DeltaPublisherTest, ReadersHoldThePublishedValuesAfterAnyGaps) {
  std::vector<PublishOptions> settings = {{}, {.log_bytes = 0}, {.log_bytes = 300}};
  for (const CodecId codec : {CodecId::kFp32, CodecId::kFp8E5m2, CodecId::kFp8E4m3}) {
    settings.push_back({.codec = CodecSpec{.id = codec}});
  }
  settings.push_back({.codec = CodecSpec{.id = CodecId::kTopK, .density = .02}});
  settings.push_back(
      {.codec = CodecSpec{.id = CodecId::kTopK, .density = .1, .values = CodecId::kFp8E5m2}});
  settings.push_back({.codec = settings.back().codec, .log_bytes = 200});
  for (size_t i = 0; i < settings.size(); ++i) {
    SCOPED_TRACE(i);
    constexpr size_t kCount = 700;
    std::mt19937 bits(11 + i);
    Floats masters(kCount, 1);
    DeltaPublisher publisher(settings[i]);
    publisher.Start(Version{0}, masters);
    std::vector<Reader> readers(6);
    for (uint64_t version = 1; version < 200; version += 1 + bits() % 2) {
      const uint32_t rarity = 1 + bits() % 40;
      for (float& value : masters) {
        if (bits() % rarity == 0) value += std::sin(static_cast<float>(bits()));
      }
      publisher.Publish(Version{version}, masters);
      for (size_t r = 0; r < readers.size(); ++r) {
        if (bits() % (1 + 3 * r) == 0) readers[r].Take(publisher.DeltasSince(readers[r].held));
      }
    }
    for (Reader& reader : readers) {
      reader.Take(publisher.DeltasSince(reader.held));
      EXPECT_EQ(reader.values, PublishedBy(publisher));
      EXPECT_EQ(reader.held, publisher.version());
    }
    if (!settings[i].codec.has_value()) {
      EXPECT_EQ(PublishedBy(publisher), masters);
    }
  }
}

TEST(DeltaPublisherTest, FindsTheParametersOfAnEarlierVersionInItsLog) {
  constexpr size_t kCount = 700;
  std::vector<PublishOptions> settings = {{}};
  for (const CodecId codec : {CodecId::kFp16, CodecId::kFp8E5m2, CodecId::kTopK}) {
    settings.push_back({.codec = CodecSpec{.id = codec, .density = .02}});
  }
  for (const PublishOptions& options : settings) {
    SCOPED_TRACE(options);
    std::mt19937 bits(3);
    DeltaPublisher publisher(options);
    Floats masters(kCount, 1);
    publisher.Start(Version{0}, masters);
    std::map<Version, Floats> history = {{Version{0}, masters}};
    int found_count = 0;
    for (uint64_t version = 2; version < 60; version += 2) {
      for (float& value : masters) {
        if (bits() % 20 == 0) value += std::sin(static_cast<float>(bits()));
      }
      publisher.Publish(Version{version}, masters);
      history[Version{version}] = PublishedBy(publisher);
      for (const auto& [earlier, want] : history) {
        const std::optional<Floats> got = publisher.PublishedAt(earlier);
        EXPECT_EQ(got.has_value(), publisher.log()->Contains(earlier)) << earlier;
        if (!got.has_value()) continue;
        ++found_count;
        for (size_t i = 0; i < kCount; ++i) {
          ASSERT_NEAR((*got)[i], want[i], options.codec.has_value() ? 1e-5 : 0) << earlier;
        }
      }
      EXPECT_FALSE(publisher.PublishedAt(Version{version - 1}).has_value()) << "not published";
    }
    EXPECT_GT(found_count, 50);
  }
}

TEST(DeltaPublisherTest, TheNextDeltaContainsTheLossOfTheLast) {
  DeltaPublisher publisher({.codec = CodecSpec{.id = CodecId::kTopK, .density = .25}});
  publisher.Start(Version{0}, Floats{0, 0, 0, 0});
  const Floats masters = {1, 4, -3, 2};
  publisher.Publish(Version{1}, masters);
  EXPECT_EQ(PublishedBy(publisher), (Floats{0, 4, 0, 0}));
  publisher.Publish(Version{2}, masters);
  EXPECT_EQ(PublishedBy(publisher), (Floats{0, 4, -3, 0}));
}

TEST(DeltaPublisherTest, AnExactDeltaNamesOnlyChangedValues) {
  DeltaPublisher publisher({});
  Floats masters(10000, 1);
  publisher.Start(Version{0}, masters);
  masters[17] = 2;
  masters[9000] = -0.0f;
  publisher.Publish(Version{1}, masters);
  const DeltaChain chain = publisher.DeltasSince(Version{0});
  ASSERT_EQ(chain.size(), 1);
  EXPECT_EQ(chain[0]->kind, PublishedDelta::Kind::kUlpDelta);
  EXPECT_LT(Bytes(chain), 20);
  EXPECT_EQ(publisher.DeltasSince(Version{0})[0], chain[0]) << "one delta serves every reader";
}

TEST(DeltaPublisherTest, SendsAllValuesIfAllChanged) {
  DeltaPublisher publisher({});
  publisher.Start(Version{0}, Floats(100, 1));
  publisher.Publish(Version{1}, Floats(100, 2));
  const DeltaChain chain = publisher.DeltasSince(Version{0});
  ASSERT_EQ(chain.size(), 1);
  EXPECT_EQ(chain[0]->kind, PublishedDelta::Kind::kFull);
  EXPECT_EQ(Bytes(chain), 401);
  EXPECT_EQ(publisher.DeltasSince(std::nullopt)[0], chain[0]);
}

TEST(DeltaPublisherTest, AChainIsNeverLargerThanAllValues) {
  DeltaPublisher publisher({.codec = CodecSpec{.id = CodecId::kFp8E5m2}});
  Floats masters(100, 1);
  publisher.Start(Version{0}, masters);
  for (uint64_t version = 1; version <= 9; ++version) {
    for (float& value : masters) value += 1;
    publisher.Publish(Version{version}, masters);
  }
  EXPECT_EQ(publisher.DeltasSince(Version{6}).size(), 3);
  EXPECT_EQ(publisher.DeltasSince(Version{5})[0]->kind, PublishedDelta::Kind::kFull);
}

TEST(DeltaPublisherTest, AReaderOfTheNewestVersionGetsAnEmptyDelta) {
  DeltaPublisher publisher({});
  publisher.Start(Version{3}, Floats{1, 2});
  const DeltaChain chain = publisher.DeltasSince(Version{3});
  ASSERT_EQ(chain.size(), 1);
  EXPECT_EQ(chain[0]->base, Version{3});
  EXPECT_EQ(chain[0]->version, Version{3});
  EXPECT_EQ(Bytes(chain), 0);
}

TEST(DeltaPublisherTest, FullValuesAndEverySixteenthDeltaCarryTheirHash) {
  DeltaPublisher publisher({});
  Floats masters(100, 1);
  publisher.Start(Version{0}, masters);
  EXPECT_EQ(publisher.DeltasSince(std::nullopt)[0]->hash, HashValues(masters));
  for (uint64_t version = 1; version <= 40; ++version) {
    masters[version] = 2;
    publisher.Publish(Version{version}, masters);
    const uint64_t want = version % DeltaPublisher::kHashEvery == 0 ? HashValues(masters) : 0;
    EXPECT_EQ(publisher.DeltasSince(Version{version - 1})[0]->hash, want) << version;
  }
}

// Masters jump between the largest floats, so that differences and decoded sums would overflow.
TEST(DeltaPublisherTest, HugeMastersArePublishedFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr size_t kCount = 300;
  int delta_codecs = 0;
  for (const CodecSpec& codec : AllCodecSpecs()) {
    SCOPED_TRACE(SpecName(codec));
    ++delta_codecs;
    std::mt19937 bits(5);
    DeltaPublisher publisher({.codec = codec});
    publisher.Start(Version{0}, Floats(kCount, 1));
    Reader reader;
    reader.Take(publisher.DeltasSince(std::nullopt));
    for (uint64_t version = 1; version <= 12; ++version) {
      const float scale = version % 3 == 0 ? 1 : version % 3 == 1 ? kMax : kMax / 3;
      Floats masters(kCount);
      for (float& value : masters) value = bits() % 2 == 0 ? scale : -scale;
      publisher.Publish(Version{version}, masters);
      for (const float value : publisher.published()) ASSERT_TRUE(std::isfinite(value));
      reader.Take(publisher.DeltasSince(reader.held));
      ASSERT_EQ(reader.values, PublishedBy(publisher));
    }
  }
  EXPECT_GT(delta_codecs, 5);
}

}  // namespace
}  // namespace thinwire
