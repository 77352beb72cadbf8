// Refuses the problems that cannot be computed, in words that name the operands and say what to do.
#include <cstdio>
#include <initializer_list>

#include "fastgemm/error.hpp"
#include "fastgemm/problem.hpp"
#include "fusion.hpp"
#include "overlap.hpp"

namespace fastgemm {
namespace {

constexpr Int128 kMostBytes = Int128{1} << 62;  // from the first to the last byte of a view
constexpr Int128 kLastAddress = (Int128{1} << 63) - 1;

// An operand under its name, with its extents.
struct Operand {
  const char* name;
  const MatrixView& view;
  std::int64_t batch, rows, cols;

  Axes axes() const { return axes_of(view, batch, rows, cols); }
  int element() const { return static_cast<int>(size_of(view.dtype)); }
  std::int64_t address() const { return reinterpret_cast<std::intptr_t>(view.data); }
};

std::string text(std::int64_t n) { return std::to_string(n); }

std::string shape(const Operand& x) {
  const std::string batch = x.batch == 1 ? "" : text(x.batch) + ", ";
  return std::string(x.name) + "(" + batch + text(x.rows) + ", " + text(x.cols) + ")";
}

std::string strided(const Operand& x) {
  const std::string batch = x.batch == 1 ? "" : text(x.view.batch_stride) + ", ";
  return shape(x) + " with strides (" + batch + text(x.view.row_stride) + ", " +
         text(x.view.col_stride) + ")";
}

std::string range(const Operand& x) {
  const ByteRange bytes = byte_range(x.view, x.batch, x.rows, x.cols);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "[0x%llx, 0x%llx)",
                static_cast<unsigned long long>(bytes.begin),
                static_cast<unsigned long long>(bytes.end));
  return buffer;
}

std::string extents(const GemmProblem& p) {
  return "batch=" + text(p.batch) + ", m=" + text(p.m) + ", n=" + text(p.n) + ", k=" + text(p.k);
}

void check_dtypes(const GemmProblem& p) {
  const bool in = p.a.dtype == p.b.dtype && (p.a.dtype == DType::f16 || p.a.dtype == DType::bf16);
  const bool narrow =
      p.d.dtype == DType::i8 || p.d.dtype == DType::e4m3 || p.d.dtype == DType::e5m2;
  const bool out = p.d.dtype == p.a.dtype || p.d.dtype == DType::f32 || narrow;
  if (in && out && (!p.has_c() || (p.c.dtype == p.d.dtype && !narrow))) return;
  std::string got = "A " + std::string(name(p.a.dtype)) + ", B " + name(p.b.dtype);
  if (p.has_c()) got += ", C " + std::string(name(p.c.dtype));
  throw InvalidType(
      "unsupported dtypes: " + got + ", D " + name(p.d.dtype) +
      "; supported (A, B -> D) are float16, float16 -> float16 or float32 and "
      "bfloat16, bfloat16 -> bfloat16 or float32, with C of D's dtype, and without C also D of "
      "int8, float8_e4m3fn or float8_e5m2: convert the operands");
}

void check_extents(const GemmProblem& p) {
  for (const std::int64_t extent : {p.batch, p.m, p.n, p.k}) {
    if (extent < 0) throw InvalidValue("negative extent: " + extents(p));
    if (extent > kMostSteps)
      throw InvalidValue("extent too large: " + extents(p) + "; the limit of each is 2^40");
  }
  if (Int128{p.batch} * p.m * p.n * static_cast<int>(size_of(p.d.dtype)) > kMostBytes)
    throw InvalidValue("D has too many elements: " + extents(p) + "; the limit is 2^62 bytes");
}

void check_addresses(const Operand& x) {
  const std::int64_t strides[] = {x.view.batch_stride, x.view.row_stride, x.view.col_stride};
  const std::int64_t steps[] = {x.batch, x.rows, x.cols};
  Int128 reach = 0;
  for (int i = 0; i < 3; ++i)
    reach += (strides[i] < 0 ? -Int128{strides[i]} : Int128{strides[i]}) * (steps[i] - 1);
  if (reach * x.element() >= kMostBytes)
    throw InvalidValue(strided(x) + " reaches over more than the limit of 2^62 bytes");
  if (x.view.data == nullptr) return;
  if (x.address() % x.element() != 0)
    throw InvalidValue(std::string(x.name) + " starts at an address that is not a multiple of " +
                       text(x.element()) + ", the size of a " + name(x.view.dtype) +
                       ": copy it to aligned memory");
  const Span span = span_of(x.axes());
  if (x.address() + span.begin * x.element() < 0 ||
      x.address() + span.end * x.element() > kLastAddress)
    throw InvalidValue(strided(x) + " leaves the address space");
}

void check_disjoint(const Operand& d, const Operand& x) {
  if (proved_disjoint(d.axes(), d.address(), d.element(), x.axes(), x.address(), x.element()))
    return;
  const std::string name = d.name;
  throw InvalidValue(name + " overlaps " + x.name + ": " + name + " uses the bytes " + range(d) +
                     ", " + x.name + " the bytes " + range(x) + " (" + strided(d) + ", " +
                     strided(x) +
                     "), and they do not lie in different columns of one pitch: write " + name +
                     " to memory of its own");
}

// What the epilogue leaves besides D may share memory with nothing. `index`: its own.
void check_written(const GemmProblem& p, const Operand& x, std::size_t index) {
  const Epilogue& e = *p.fusion->epilogue;
  if (e.arrays[index].kind == ArrayKind::element && overlaps_itself(x.axes()))
    throw InvalidValue(strided(x) + " has two elements in one place: give it memory of its own");
  if (p.k > 0) {
    check_disjoint(x, {"A", p.a, p.batch, p.m, p.k});
    check_disjoint(x, {"B", p.b, p.batch, p.k, p.n});
  }
  for (std::size_t i = 0; i < e.arrays.size(); ++i) {
    const MatrixView other = fused_array(p, i);
    if (i != index)
      check_disjoint(x, {e.arrays[i].name.c_str(), other, p.batch, p.d_rows(), p.d_cols()});
  }
}

bool identical(const Operand& x, const Operand& y) {
  const Axes a = x.axes(), b = y.axes();
  for (int i = 0; i < 3; ++i)
    if (a[i].stride != b[i].stride) return false;
  return x.view.data == y.view.data;
}

}  // namespace

void validate(const GemmProblem& p) {
  check_dtypes(p);
  check_extents(p);
  check_fusion(p);
  if (p.batch == 0 || p.m == 0 || p.n == 0) return;

  const Operand a{"A", p.a, p.batch, p.m, p.k}, b{"B", p.b, p.batch, p.k, p.n};
  const Operand c{"C", p.c, p.batch, p.m, p.n}, d{"D", p.d, p.batch, p.d_rows(), p.d_cols()};
  const Operand* read[3];
  int n_read = 0;
  if (p.k > 0) read[n_read++] = &a, read[n_read++] = &b;
  if (p.has_c()) read[n_read++] = &c;

  check_addresses(d);
  bool undecided = false;
  if (overlaps_itself(d.axes(), &undecided))
    throw InvalidValue(strided(d) + (undecided ? " may have" : " has") +
                       " two elements in one place: give D memory of its own for every element");

  const auto check_read = [&](const Operand& x, bool may_be_d) {
    if ((x.view.data == nullptr) != (d.view.data == nullptr))
      throw InvalidValue(std::string(x.view.data == nullptr ? x.name : "D") +
                         " has no memory but " + (x.view.data == nullptr ? "D" : x.name) +
                         " has: give all operands a pointer, or (to plan only) none");
    check_addresses(x);
    if (d.view.data == nullptr || (may_be_d && identical(x, d))) return;
    check_disjoint(d, x);
  };
  for (int i = 0; i < n_read; ++i) check_read(*read[i], read[i] == &c);
  for (std::size_t i = 0; p.fusion && i < p.fusion->arrays.size(); ++i) {
    const MatrixView view = fused_array(p, i);
    const Epilogue::Array& array = p.fusion->epilogue->arrays[i];
    const Operand x{array.name.c_str(), view, p.batch, p.d_rows(), p.d_cols()};
    check_read(x, array.kind == ArrayKind::element && view.dtype == p.d.dtype && !array.written);
    if (array.written && view.data) check_written(p, x, i);
  }
}

}  // namespace fastgemm
