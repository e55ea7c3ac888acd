// MatrixRun: the position of consecutive values in the rows of a matrix. The values of a shard may
// begin and end within a row:
//
//   columns = 5, first_column = 3, 9 values     row 0   . . . 0 1
//                                               row 1   2 3 4 5 6
//                                               row 2   7 8 . . .
#ifndef THINWIRE_COMMON_MODEL_MATRIX_RUN_H_
#define THINWIRE_COMMON_MODEL_MATRIX_RUN_H_

#include <algorithm>
#include <cstddef>

namespace thinwire {

// A value type. The functions REQUIRE: columns > 0.
struct MatrixRun {
  size_t columns = 0;       // 0: the values are not known to belong to a matrix
  size_t first_column = 0;  // the column of the first value, less than `columns`

  // Returns the number of rows to which COUNT values belong.
  size_t RowCount(size_t count) const { return (first_column + count + columns - 1) / columns; }

  // Splits the COUNT values from index FIRST on into pieces that lie in one row each, and calls
  // piece(row, column, i, n) for each piece in order: value i of the COUNT values is in `row` and
  // `column`, and the piece has n values.
  template <typename Piece>
  void ForEachRow(size_t first, size_t count, const Piece& piece) const {
    size_t row = (first_column + first) / columns;
    size_t column = (first_column + first) % columns;
    for (size_t i = 0; i < count;) {
      const size_t n = std::min(columns - column, count - i);
      piece(row, column, i, n);
      i += n;
      ++row;
      column = 0;
    }
  }

  bool operator==(const MatrixRun&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MODEL_MATRIX_RUN_H_
