// Expressions of epilogues: what they become, what is refused and where.
#include <clocale>

#include "fastgemm/epilogue.hpp"
#include "problems.hpp"

namespace fastgemm {
namespace {

std::string code_of(const std::string& expression, const std::vector<std::string>& arrays = {}) {
  return parse_epilogue(expression, arrays)->code;
}

// The error's words, and the column at which it points.
void expect_refused(const std::string& expression, std::size_t column, const std::string& words) {
  try {
    const std::string code = code_of(expression);
    ADD_FAILURE() << "not refused: " << expression << " became " << code;
  } catch (const InvalidValue& e) {
    const std::string text = e.what();
    expect_words(text, {"epilogue, column " + std::to_string(column) + ": ", words,
                        "\n  " + std::string(column - 1, ' ') + "^"});
  }
}

TEST(EpilogueParser, WritesWhatItReads) {
  EXPECT_EQ(code_of("acc"), "acc[i]");
  EXPECT_EQ(code_of(" acc*scale[m]+bias[ n ] "), "acc[i] * scale_[i] + bias_[i]");
  EXPECT_EQ(code_of("gelu(acc + bias[n]) + residual[m,n]"),
            "math::gelu(acc[i] + bias_[i]) + residual_[i]");
  EXPECT_EQ(code_of("slope * acc"), "slope_ * acc[i]");
  EXPECT_EQ(code_of("slope * acc", {"slope"}), "slope_[i] * acc[i]");
  EXPECT_EQ(code_of("(acc + 1) / (acc - 2) * 3"),
            "(acc[i] + 0x1p+0f) / (acc[i] - 0x1p+1f) * 0x1.8p+1f");
  EXPECT_EQ(code_of("--acc - -+1"), "-(-acc[i]) - -0x1p+0f");
  EXPECT_EQ(code_of("where(acc > 0 and not acc == 3 or acc != acc, acc, min(acc, .5e1))"),
            "(((acc[i] > 0x0p+0f && !(acc[i] == 0x1.8p+1f)) || acc[i] != acc[i]) ? acc[i] : "
            "math::min(acc[i], 0x1.4p+2f))");
  EXPECT_EQ(
      parse_epilogue("twice(acc) + sin(1)", {}, "FASTGEMM_DEVICE float twice(float x);")->code,
      "twice(acc[i]) + sin(0x1p+0f)");
}

TEST(EpilogueParser, NumbersDoNotDependOnTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
    if (!std::setlocale(LC_ALL, locale)) continue;
    EXPECT_EQ(code_of(std::string("acc * 1.5 + 0.25") + (locale[0] == 'C' ? " " : "")),
              "acc[i] * 0x1.8p+0f + 0x1p-2f");
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST(EpilogueParser, KnowsWhatAnExpressionNeeds) {
  const auto e =
      parse_epilogue("s * acc * r[m] + t * c[n] + e[m, n] * r[m] - u - t", {"s", "none"});
  ASSERT_EQ(e->arrays.size(), 4u);
  const ArrayKind kinds[] = {ArrayKind::tensor, ArrayKind::row, ArrayKind::column,
                             ArrayKind::element};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(e->arrays[i].name, std::string(1, "srce"[i]));
    EXPECT_EQ(e->arrays[i].kind, kinds[i]);
  }
  EXPECT_EQ(e->numbers, (std::vector<std::string>{"t", "u"}));
  const auto writes = parse_epilogue("amax(keep(acc) + b[n]) * s");
  ASSERT_EQ(writes->arrays.size(), 3u);
  EXPECT_EQ(writes->code, "amax.see((kept[i] = acc[i]) + b_[i], Columns::at(i) < valid) * s_");
  EXPECT_TRUE(writes->arrays[0].written && writes->arrays[0].kind == ArrayKind::element);
  EXPECT_FALSE(writes->arrays[1].written);
  EXPECT_TRUE(writes->arrays[2].written && writes->arrays[2].kind == ArrayKind::tensor);
  EXPECT_EQ(parse_epilogue("acc + b[n]"), parse_epilogue("acc + b[n]"));
  EXPECT_NE(parse_epilogue("acc + b[n]")->hash, parse_epilogue("acc + b[m]")->hash);
  EXPECT_NE(parse_epilogue("acc + b", {"b"})->hash, parse_epilogue("acc + b")->hash);
}

TEST(EpilogueParser, GatesHaveValuesOfTwoColumns) {
  const auto e = parse_epilogue("silu(gate * s[m] + b[gate]) * (up + b[up]) + r[n]");
  EXPECT_TRUE(e->gated);
  EXPECT_EQ(e->code, "math::silu(gate[i] * s_[i] + b_gate[i]) * (up[i] + b_up[i]) + r_[i]");
  ASSERT_EQ(e->arrays.size(), 4u);
  EXPECT_EQ(e->arrays[1].part, ArrayPart::gate);
  EXPECT_EQ(e->arrays[2].part, ArrayPart::up);
  EXPECT_EQ(e->arrays[2].name, "b");
  EXPECT_EQ(e->arrays[3].part, ArrayPart::result);
  EXPECT_FALSE(parse_epilogue("acc")->gated);
  EXPECT_NE(parse_epilogue("gate * up * b[gate]")->hash, parse_epilogue("gate * up * b[up]")->hash);
}

TEST(EpilogueParser, PointsAtWhatIsWrong) {
  expect_refused("", 1, "the expression ends where a value is needed");
  expect_refused("acc +", 6, "the expression ends where a value is needed");
  expect_refused("acc + $", 7, "unexpected character '$'");
  expect_refused("acc ** 2", 6, "expected a value, not '*'");
  expect_refused("acc % 2", 5, "unexpected character '%'");
  expect_refused("gelo(acc)", 1, "unknown function 'gelo'; there are where, keep, amax, abs");
  expect_refused("acc * gelu", 7, "'gelu' is a function: write gelu(...)");
  expect_refused("acc + m", 7, "'m' is no value");
  expect_refused("acc + bias[k]", 12, "expected the index of bias");
  expect_refused("acc + bias[n, m]", 12, "expected the index of bias");
  expect_refused("acc + bias[]", 12, "expected the index of bias");
  expect_refused("acc + bias[n", 12, "expected the index of bias");
  expect_refused("(acc + 1", 9, "expected ')'");
  expect_refused("acc acc", 5, "expected an operator or the end, not 'acc'");
  expect_refused("acc) + 1", 4, "expected an operator or the end, not ')'");
  expect_refused("min(acc)", 1, "min takes 2 arguments, not 1");
  expect_refused("gelu(acc, 1)", 1, "gelu takes 1 argument, not 2");
  expect_refused("where(acc > 0, acc)", 1, "where takes 3 arguments, not 2");
  expect_refused("where(acc, acc, 0)", 7, "a number where a condition is needed");
  expect_refused("acc > 0", 1, "a condition where a number is needed");
  expect_refused("1 + (acc > 0)", 5, "a condition where a number is needed");
  expect_refused("where(0 < acc < 1, 1, 2)", 15, "comparisons do not chain");
  expect_refused("where(acc and acc > 1, 1, 2)", 7, "a number where a condition is needed");
  expect_refused("acc * x[m] + x[n]", 14, "'x' is used with two different indices");
  expect_refused("acc * x[m] + x", 14, "'x' is used with two different indices");
  expect_refused("acc * 1e39", 7, "beyond float32");
  expect_refused("acc * 1x", 8, "unexpected character 'x' behind a number");
  expect_refused(std::string(100, '(') + "acc", 65, "nested more than 64 deep");
  expect_refused("keep(acc) + keep(acc)", 13, "keep() stands twice");
  expect_refused("silu(gate) * acc", 14, "acc and gate or up in one expression");
  expect_refused("acc + b[up]", 9, "acc and gate or up in one expression");
  expect_refused("gate * b[gate] + b[n]", 18, "'b' is used with two different indices");
  expect_refused("gate * b[n] + b[up]", 15, "'b' is used with two different indices");
  expect_refused("up(gate)", 1, "unknown function 'up'");
  expect_refused("keep(acc, 1)", 1, "keep takes 1 argument, not 2");
  expect_refused("acc * amax", 7, "'amax' is no value");
  expect_refused("a[n]+b[n]+c[n]+d[n]+e[n]+f[n]+g[n]+h[n]+i[n]", 41, "more than 8 arrays");
  expect_refused("acc+a+b+c+d+e+f+g+h+i", 21, "more than 8 numbers");
}

TEST(NamedEpilogue, IsAnExpression) {
  using As = NamedParts::As;
  NamedParts parts;
  EXPECT_EQ(named_expression(parts), "acc");
  parts.scale_a = As::row, parts.scale_b = As::tensor, parts.bias = As::column;
  parts.residual = parts.c = As::element, parts.activation = "gelu";
  EXPECT_EQ(named_expression(parts),
            "gelu(acc * scale_a[m] * scale_b + bias[n] + residual[m, n] + beta * c[m, n])");
  parts.keep = As::element, parts.amax = As::tensor, parts.out_scale = As::row;
  EXPECT_EQ(named_expression(parts),
            "amax(gelu(keep(acc * scale_a[m] * scale_b + bias[n] + residual[m, n] + beta * c[m, "
            "n]))) * (1 / out_scale[m])");
  NamedParts scaled;
  scaled.bias = As::column, scaled.out_scale = As::number;
  EXPECT_EQ(named_expression(scaled), "(acc + bias[n]) * (1 / out_scale)");
  NamedParts swiglu;
  swiglu.gated = true;
  EXPECT_THROW(named_expression(swiglu), InvalidValue);
  swiglu.activation = "silu";
  EXPECT_EQ(named_expression(swiglu), "silu(gate) * up");
  swiglu.scale_a = As::row, swiglu.scale_b = As::column, swiglu.bias = As::column;
  swiglu.amax = As::tensor, swiglu.out_scale = As::number;
  EXPECT_EQ(named_expression(swiglu),
            "amax(silu(gate * scale_a[m] * scale_b[gate] + bias[gate]) * (up * scale_a[m] * "
            "scale_b[up] + bias[up])) * (1 / out_scale)");
  swiglu.residual = As::element;
  EXPECT_THROW(named_expression(swiglu), InvalidValue);
  parts.activation = "swish";
  EXPECT_THROW(named_expression(parts), InvalidValue);
  for (const char* name : {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"}) {
    parts.activation = name;
    EXPECT_NO_THROW(parse_epilogue(named_expression(parts), {"scale_b"}));
  }
}

}  // namespace
}  // namespace fastgemm
