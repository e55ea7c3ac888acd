#include "kernels/cuda/ops/normalize_columns.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/normalize_columns.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr size_t kRowCounts[] = {1, 31, 256, 257};
constexpr size_t kRanks[] = {1, 2, 5, 32};

class NormalizeColumnsTwinTest : public CudaTest {
 protected:
  // Calls check(rows, matrix) for matrices with values of every kind, and with columns that are
  // huge, tiny, zero, or multiples of another column.
  template <typename Check>
  void ForEachMatrix(const Check& check) {
    uint32_t seed = 0;
    for (const size_t rows : kRowCounts) {
      for (const size_t rank : kRanks) {
        for (const Kind kind : {Kind::kRandom, Kind::kEqual, Kind::kDenormal, Kind::kSpecial}) {
          SCOPED_TRACE(testing::Message()
                       << rows << " rows, rank " << rank << ", kind " << static_cast<int>(kind));
          check(rows, ValuesOf(kind, rows * rank, ++seed));
          if (HasFatalFailure()) return;
        }
        std::vector<float> matrix = ValuesOf(Kind::kRandom, rows * rank, ++seed);
        for (size_t i = 0; i < matrix.size(); ++i) {
          const size_t column = i / rows;
          if (column % 5 == 1) matrix[i] = 3 * matrix[i % rows];
          if (column % 5 == 2) matrix[i] = std::ldexp(matrix[i], 60);
          if (column % 5 == 3) matrix[i] = std::ldexp(matrix[i], -130);
          if (column % 5 == 4) matrix[i] = -0.0f;
        }
        SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank);
        check(rows, matrix);
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_F(NormalizeColumnsTwinTest, OrthonormalizesLikeTheCpu) {
  ForEachMatrix([&](size_t rows, std::vector<float> matrix) {
    DeviceArray<float> device_matrix(matrix, stream_);
    DeviceArray<double> column(rows, stream_);
    Expect(Orthonormalize(rows, device_matrix.span(), column.span(), stream_));
    kernels::Orthonormalize(rows, matrix);
    column.Read();
    ExpectSameBits(device_matrix.Read(), matrix);
  });
}

TEST_F(NormalizeColumnsTwinTest, ScalesAndDrawsLikeTheCpu) {
  ForEachMatrix([&](size_t rows, std::vector<float> matrix) {
    DeviceArray<float> device_matrix(matrix, stream_);
    Expect(ScaleColumns(rows, device_matrix.span(), stream_));
    kernels::ScaleColumns(rows, matrix);
    ExpectSameBits(device_matrix.Read(), matrix);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
