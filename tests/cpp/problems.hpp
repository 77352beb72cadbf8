// What the tests of problems share: problems in made-up memory, and how to write one down.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fastgemm/error.hpp"
#include "fastgemm/problem.hpp"

namespace fastgemm {

constexpr std::int64_t kBase = 1 << 20;

inline void* address(std::int64_t byte) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(byte));
}

// The packed problem with its operands in memory, far apart from each other.
inline GemmProblem placed(std::int64_t m, std::int64_t n, std::int64_t k, const char* layout = "nt",
                          std::int64_t batch = 1, bool has_c = false) {
  GemmProblem p = packed_problem(m, n, k, DType::f16, layout, batch, {}, has_c);
  std::int64_t at = kBase;
  for (MatrixView* view : {&p.a, &p.b, &p.c, &p.d})
    view->data = address(at += std::int64_t{1} << 45);
  return p;
}

template <class E>
std::string refusal(const GemmProblem& p) {
  try {
    validate(p);
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "not refused: " << describe(p);
  return "";
}

inline void expect_words(const std::string& text, const std::vector<std::string>& needed) {
  for (const std::string& word : needed)
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is missing in: " << text;
}

inline std::string dump(const GemmProblem& p) {
  std::string text = std::to_string(p.batch) + " of " + std::to_string(p.m) + "x" +
                     std::to_string(p.n) + "x" + std::to_string(p.k);
  for (const MatrixView* v : {&p.a, &p.b, &p.c, &p.d})
    text += " | " + std::to_string(reinterpret_cast<std::intptr_t>(v->data)) + ": " +
            std::to_string(v->batch_stride) + "," + std::to_string(v->row_stride) + "," +
            std::to_string(v->col_stride);
  return text;
}

}  // namespace fastgemm
