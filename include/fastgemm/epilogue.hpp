// Epilogue: what becomes of the product before it is stored, in the same kernel, as an expression.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fastgemm/export.hpp"

namespace fastgemm {

// How an expression names an array of values: x (one for the whole result), x[m], x[n], x[m, n].
enum class ArrayKind : std::uint8_t { tensor, row, column, element };

// Of an array of a gated epilogue: of the column of the result, or of its gate's or its up's column
// of the product.
enum class ArrayPart : std::uint8_t { result, gate, up };

// Where the columns that a gated epilogue combines lie in the product of 2 n columns: column j of D
// is made of columns 2 j, the gate, and 2 j + 1, the up; or of columns j and n + j.
enum class GateOrder : std::uint8_t { interleaved, blocked };

// An expression that was parsed and checked; it knows what it needs, but no pointer and no number.
// Immutable, and shared by all products that use it.
struct Epilogue {
  struct Array {
    std::string name;
    ArrayKind kind;
    bool written = false;  // by keep() or amax(), whose name it has
    ArrayPart part = ArrayPart::result;
  };

  std::string expression;
  std::string device_code;           // functions that the expression calls, in CUDA C++
  std::string code;                  // the expression as the kernel has it, of element i
  std::vector<Array> arrays;         // in the order in which the expression names them
  std::vector<std::string> numbers;  // the same for what is passed by value
  bool gated = false;                // D has half of the product's columns
  std::uint64_t hash = 0;            // of all of this
};

// Reads an expression over
//
//   acc                        alpha * A * B, in float32
//   x[m], x[n], x[m, n], x     values of a row, a column, an element, of all (an array if `arrays`
//                              names it, a number otherwise)
//   gate, up                   instead of acc: of the two columns of the product that a column of
//                              D is made of; x[gate], x[up]: values of these columns
//   + - * / ( )  < <= > >= == !=  and or not  where(condition, then, otherwise)
//   abs exp log sqrt min max relu gelu gelu_tanh silu sigmoid tanh
//   keep(x)                    x, which is also left in the matrix `keep`
//   amax(x)                    x; the float32 `amax` is raised to the largest |x| of the result
//
// and the functions of `device_code`, such as "FASTGEMM_DEVICE float twice(float x) { return 2 * x;
// }". At most 8 arrays and 8 numbers. The same arguments give the same object while it is used.
// Throws InvalidValue that points at the column.
FASTGEMM_API std::shared_ptr<const Epilogue> parse_epilogue(
    const std::string& expression, const std::vector<std::string>& arrays = {},
    const std::string& device_code = {});

// The parts of an epilogue that have names, in the order in which they are applied.
struct NamedParts {
  // How a part is given: not at all, by value, or as an array.
  enum class As : std::uint8_t { absent, number, tensor, row, column, element };
  bool gated = false;  // activation(gate) * up, scaled and with a bias both
  As scale_a = As::absent, scale_b = As::absent;  // factors, such as those of quantised operands
  As bias = As::absent;                           // added
  As residual = As::absent;                       // added
  As c = As::absent;                              // added, times the number beta
  As keep = As::absent;                           // element: leaves the value so far in `keep`
  std::string activation;                         // a function of one argument; empty: none
  As amax = As::absent;       // tensor: raises `amax` to the largest magnitude so far
  As out_scale = As::absent;  // what one step of a quantised D is worth
};

// Their expression, with these names: "gelu(acc * scale_a[m] + bias[n])". Throws InvalidValue for
// an unknown activation.
FASTGEMM_API std::string named_expression(const NamedParts& parts);

}  // namespace fastgemm
