#include "kernels/cuda/ops/row_products.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/reductions.h"
#include "kernels/row_products.h"

namespace thinwire::kernels::cuda {
namespace {

struct RunOfValues {
  size_t columns, first_column, count;
};

// The runs include a single value, one row, one column, a part of a row, matrices with partial
// first and last rows, and dimensions around the number of parts of a Dot and the size of a block.
constexpr RunOfValues kRuns[] = {{1, 0, 1},      {1, 0, 300},     {300, 0, 300},
                                 {300, 20, 100}, {16, 5, 100},    {17, 16, 17},
                                 {15, 0, 4000},  {100, 99, 2102}, {257, 1, 5 * 257}};
constexpr size_t kRanks[] = {1, 2, 3, 32};

class RowProductsTwinTest : public CudaTest {
 protected:
  // A matrix M, which is a run, and the matrices P and Q.
  struct Case {
    ProductShape shape;
    std::vector<float> m, p, q;

    // Calls piece(row, column, values, n) for every row of M. The values of the row begin at index
    // `values` of M and in column `column`.
    template <typename Piece>
    void ForEachRow(const Piece& piece) const {
      size_t column = shape.first_column, i = 0;
      for (size_t row = 0; row < shape.rows; ++row) {
        const size_t n = std::min(shape.columns - column, m.size() - i);
        piece(row, column, i, n);
        i += n;
        column = 0;
      }
      ASSERT_EQ(i, m.size());
    }
  };

  template <typename Check>
  void ForEachProduct(const Check& check) {
    uint32_t seed = 0;
    for (const RunOfValues& run : kRuns) {
      for (const size_t rank : kRanks) {
        for (const Kind kind : {Kind::kRandom, Kind::kDenormal, Kind::kSpecial}) {
          SCOPED_TRACE(testing::Message()
                       << run.count << " values from column " << run.first_column << " of "
                       << run.columns << ", rank " << rank << ", kind " << static_cast<int>(kind));
          const size_t rows = (run.first_column + run.count + run.columns - 1) / run.columns;
          ++seed;
          check(Case{{rows, run.columns, run.first_column, rank},
                     ValuesOf(kind, run.count, seed),
                     ValuesOf(Kind::kRandom, rows * rank, seed + 1000),
                     ValuesOf(kind, run.columns * rank, seed + 2000)});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
};

TEST_F(RowProductsTwinTest, MultipliesRowsLikeTheCpu) {
  ForEachProduct([&](const Case& product) {
    const auto& [shape, m, p, q] = product;
    const float largest = LargestMagnitude(std::span(m));
    std::vector<float> scaled = q, want(p.size());
    for (float& value : scaled) value *= ReciprocalUnit(largest);
    product.ForEachRow([&](size_t row, size_t column, size_t i, size_t n) {
      for (size_t k = 0; k < shape.rank; ++k) {
        want[k * shape.rows + row] =
            Dot(std::span(m).subspan(i, n),
                std::span<const float>(scaled).subspan(k * shape.columns + column, n));
      }
    });
    DeviceArray<float> device_m(m, stream_, 1), device_q(q, stream_), got(p.size(), stream_);
    DeviceArray<float> device_largest(std::vector<float>{largest}, stream_);
    Expect(MultiplyRows(device_m.span(), shape, device_q.span(), device_largest.data(), got.span(),
                        stream_));
    ExpectSameBits(got.Read(), want);
  });
}

TEST_F(RowProductsTwinTest, MultipliesColumnsLikeTheCpu) {
  ForEachProduct([&](const Case& product) {
    const auto& [shape, m, p, q] = product;
    constexpr float kLimit = 1e8f;
    std::vector<float> want(q.size());
    product.ForEachRow([&](size_t row, size_t column, size_t i, size_t n) {
      for (size_t k = 0; k < shape.rank; ++k) {
        AddScaled(p[k * shape.rows + row], std::span(m).subspan(i, n),
                  std::span(want).subspan(k * shape.columns + column, n));
      }
    });
    for (float& value : want) value = std::clamp(value, -kLimit, kLimit);
    DeviceArray<float> device_m(m, stream_, 1), device_p(p, stream_), got(q.size(), stream_);
    Expect(MultiplyColumns(device_m.span(), shape, device_p.span(), kLimit, got.span(), stream_));
    ExpectSameBits(got.Read(), want);
  });
}

TEST_F(RowProductsTwinTest, SubtractsTheProductLikeTheCpu) {
  ForEachProduct([&](const Case& product) {
    const auto& [shape, m, p, q] = product;
    std::vector<float> values(m.size()), want = m;
    product.ForEachRow([&](size_t row, size_t column, size_t i, size_t n) {
      for (size_t k = 0; k < shape.rank; ++k) {
        AddScaled(p[k * shape.rows + row], std::span(q).subspan(k * shape.columns + column, n),
                  std::span(values).subspan(i, n));
      }
    });
    AddScaled(-1.0f, values, want);
    DeviceArray<float> device_m(m, stream_, 1), device_p(p, stream_), device_q(q, stream_);
    Expect(SubtractProduct(shape, device_p.span(), device_q.span(), device_m.span(), stream_));
    ExpectSameBits(device_m.Read(), want);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
