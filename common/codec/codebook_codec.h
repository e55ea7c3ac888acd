// CodebookCodec: encodes with a codebook (codebook.h). Two passes: one fits the numbers of a group
// to its values, one gives each value its code. A codec of this kind is how it fits, and where the
// nearest entry is not meant, how it gives codes.
//
// Immutable, thread-safe.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_CODEC_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/codebook.h"
#include "common/codec/codec.h"

namespace thinwire {

class CodebookCodec : public Codec {
 public:
  static constexpr size_t kMostAtOnce = 2048;  // values that are given codes: in the first cache

  CodecId id() const final { return id_; }
  bool lossless() const final { return false; }
  size_t MaxPayloadBytes(size_t count) const final { return 1 + book_.BodyBytes(count); }
  size_t Encode(std::span<const float> values, const Turn& turn,
                std::span<std::byte> out) const final;
  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const Turn& turn, CodecMemory& memory,
                        std::span<std::byte> out) const final;

 protected:
  // HEAD has the settings. REQUIRES: Codebook::Read(id, head) passes.
  CodebookCodec(CodecId id, const Codebook::Head& head);

  // What the codes of a group stand for.
  struct Fitted {
    const Codebook::Head& head;
    std::span<const float> numbers;
    std::span<const float> table;
  };

 private:
  // Sets the numbers of a group of VALUES, and what in HEAD depends on them.
  virtual void Fit(std::span<const float> values, Codebook::Head& head,
                   std::span<float> numbers) const = 0;
  // Fit after values += GRADIENT: two passes, unless a codec can do it in one.
  virtual void AddAndFit(std::span<const float> gradient, std::span<float> values,
                         Codebook::Head& head, std::span<float> numbers) const;
  // Gives the values from number FIRST, a multiple of 8, their codes, at most kMostAtOnce of them.
  // The nearest entry, unless a codec says otherwise.
  virtual void Code(std::span<const float> values, size_t first, const Turn& turn,
                    const Fitted& fitted, std::span<uint8_t> codes) const;

  // Encodes GRADIENT or, where RESIDUAL is not empty, their sum, and leaves there what was lost.
  size_t Encode(std::span<const float> gradient, std::span<float> residual, const Turn& turn,
                std::byte* out) const;
  // The codes of a group, from number FIRST, to PACKED; takes what was sent from RESIDUAL, which is
  // VALUES or empty.
  void EncodeGroup(std::span<const float> values, std::span<float> residual, size_t first,
                   const Turn& turn, const Fitted& fitted, std::byte* packed) const;

  const CodecId id_;
  const Codebook::Head head_;
  const Codebook book_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_CODEC_H_
