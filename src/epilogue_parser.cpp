// Reads the expression of an epilogue, checks it, and writes it as the kernel's C++.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "fastgemm/device/params.cuh"
#include "fastgemm/epilogue.hpp"
#include "fastgemm/error.hpp"
#include "hash.hpp"
#include "lru_cache.hpp"

namespace fastgemm {
namespace {

struct Function {
  const char* name;
  int arguments;
};
constexpr Function FUNCTIONS[] = {
    {"abs", 1},  {"exp", 1},  {"log", 1},       {"sqrt", 1}, {"min", 2},     {"max", 2},
    {"relu", 1}, {"gelu", 1}, {"gelu_tanh", 1}, {"silu", 1}, {"sigmoid", 1}, {"tanh", 1},
};
constexpr const char* RESERVED[] = {"acc",   "m",    "n",    "and",  "or", "not",
                                    "where", "keep", "amax", "gate", "up"};
constexpr std::size_t MOST_CHARACTERS = 4096;
constexpr int MOST_NESTING = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A part of the expression in C++: a number, or a condition that where() can take.
struct Value {
  std::string code;
  bool condition;
  std::size_t at;  // where it begins
};

class Parser {
 public:
  Parser(Epilogue& result, const std::vector<std::string>& arrays)
      : text_(result.expression), result_(result), array_names_(arrays) {}

  void parse() {
    if (text_.size() > MOST_CHARACTERS)
      fail(MOST_CHARACTERS,
           "the expression is longer than " + std::to_string(MOST_CHARACTERS) + " characters");
    advance();
    const Value value = number(disjunction());
    if (!token_.empty()) fail(at_, "expected an operator or the end, not '" + token_ + "'");
    result_.code = value.code;
    result_.gated = gated_at_ != NOWHERE;
    if (result_.gated && acc_at_ != NOWHERE)
      fail(std::max(gated_at_, acc_at_), "acc and gate or up in one expression");
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    std::string shown = text_;
    std::replace_if(shown.begin(), shown.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    throw InvalidValue("epilogue, column " + std::to_string(at + 1) + ": " + what + "\n  " + shown +
                       "\n  " + std::string(at, ' ') + "^");
  }

  // The next token: a name, a number, an operator; empty at the end.
  void advance() {
    const auto peek = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    while (end_ < text_.size() &&
           (text_[end_] == ' ' || text_[end_] == '\n' || text_[end_] == '\t'))
      ++end_;
    at_ = end_;
    const char c = peek(end_);
    if (is_letter(c)) {
      while (is_letter(peek(end_)) || is_digit(peek(end_))) ++end_;
    } else if (is_digit(c) || (c == '.' && is_digit(peek(end_ + 1)))) {
      read_number();
    } else if (c != '\0' || end_ < text_.size()) {
      ++end_;
      const bool two = (c == '<' || c == '>' || c == '=' || c == '!') && peek(end_) == '=';
      if (two) ++end_;
      if (!two && std::string("+-*/()[],<>").find(c) == std::string::npos)
        fail(at_, std::string("unexpected character '") + c + "'");
    }
    token_ = text_.substr(at_, end_ - at_);
  }

  // With a point, whatever the locale says.
  void read_number() {
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    end_ = static_cast<std::size_t>(stop - text_.data());
    if (error != std::errc() || std::isinf(static_cast<float>(value)))
      fail(at_, "this number is beyond float32");
    if (end_ < text_.size() && is_letter(text_[end_]))
      fail(end_, std::string("unexpected character '") + text_[end_] + "' behind a number");
    number_ = static_cast<float>(value);
  }

  bool take(const char* token) {
    if (token_ != token) return false;
    advance();
    return true;
  }
  void expect(const char* token, const std::string& where) {
    if (!take(token))
      fail(at_, std::string("expected '") + token + "' " + where +
                    (token_.empty() ? "" : ", not '" + token_ + "'"));
  }

  Value number(Value v) const {
    if (v.condition) fail(v.at, "a condition where a number is needed; see where(condition, x, y)");
    return v;
  }
  Value condition(Value v) const {
    if (!v.condition) fail(v.at, "a number where a condition is needed, such as acc > 0");
    return v;
  }

  // From the weakest operator to the strongest, as in Python.
  Value disjunction() {
    Value left = conjunction();
    while (token_ == "or") {
      condition(left);
      advance();
      left.code = "(" + left.code + " || " + condition(conjunction()).code + ")";
    }
    return left;
  }
  Value conjunction() {
    Value left = negation();
    while (token_ == "and") {
      condition(left);
      advance();
      left.code = "(" + left.code + " && " + condition(negation()).code + ")";
    }
    return left;
  }
  Value negation() {
    const std::size_t at = at_;
    if (!take("not")) return comparison();
    const Nested nested(*this);
    return {"!(" + condition(negation()).code + ")", true, at};
  }
  bool compares() const {
    for (const char* op : {"<", "<=", ">", ">=", "==", "!="})
      if (token_ == op) return true;
    return false;
  }
  Value comparison() {
    Value left = sum();
    if (!compares()) return left;
    const std::string op = token_;
    number(left);
    advance();
    left.code += " " + op + " " + number(sum()).code;
    left.condition = true;
    if (compares()) fail(at_, "comparisons do not chain: write a < b and b < c");
    return left;
  }
  Value sum() {
    Value left = product();
    while (token_ == "+" || token_ == "-") {
      const std::string op = token_;
      number(left);
      advance();
      left.code += " " + op + " " + number(product()).code;
    }
    return left;
  }
  Value product() {
    Value left = sign();
    while (token_ == "*" || token_ == "/") {
      const std::string op = token_;
      number(left);
      advance();
      left.code += " " + op + " " + number(sign()).code;
    }
    return left;
  }
  Value sign() {
    const std::size_t at = at_;
    if (take("+")) return number(sign());
    if (!take("-")) return primary();
    const Nested nested(*this);
    const std::string code = number(sign()).code;
    return {code[0] == '-' ? "-(" + code + ")" : "-" + code, false, at};
  }

  Value primary() {
    const std::size_t at = at_;
    const std::string token = token_;
    if (token.empty()) fail(at, "the expression ends where a value is needed");
    if (is_digit(token[0]) || token[0] == '.') {
      char digits[32];
      const auto end = std::to_chars(digits, std::end(digits), number_, std::chars_format::hex).ptr;
      advance();
      return {"0x" + std::string(digits, end) + "f", false, at};
    }
    const Nested nested(*this);
    if (take("(")) {
      Value inner = disjunction();
      expect(")", "here");
      return {"(" + inner.code + ")", inner.condition, at};
    }
    if (!is_letter(token[0])) fail(at, "expected a value, not '" + token + "'");
    advance();
    if (token_ == "(") return call(token, at);
    if (token == "acc") return acc_at_ = at, Value{"acc[i]", false, at};
    if (token == "gate" || token == "up") return gated_at_ = at, Value{token + "[i]", false, at};
    for (const char* reserved : RESERVED)
      if (token == reserved)
        fail(at, "'" + token +
                     "' is no value; rows and columns are the index of an array, as in "
                     "scale[m] and bias[n]");
    if (is_function(token)) fail(at, "'" + token + "' is a function: write " + token + "(...)");
    return {named(token, at), false, at};
  }

  static bool is_function(const std::string& name) {
    return std::any_of(std::begin(FUNCTIONS), std::end(FUNCTIONS),
                       [&](const Function& f) { return name == f.name; });
  }

  Value call(const std::string& name, std::size_t at) {
    const auto known = std::find_if(std::begin(FUNCTIONS), std::end(FUNCTIONS),
                                    [&](const Function& f) { return name == f.name; });
    const bool where = name == "where", writes = name == "keep" || name == "amax";
    if (!where && !writes && known == std::end(FUNCTIONS) && result_.device_code.empty()) {
      std::string names = "where, keep, amax";
      for (const Function& f : FUNCTIONS) names += std::string(", ") + f.name;
      fail(at, "unknown function '" + name + "'; there are " + names);
    }
    std::vector<std::string> arguments;
    do {
      advance();  // over the parenthesis, or the comma
      const bool first = arguments.empty();
      const Value value = disjunction();
      arguments.push_back(where && first ? condition(value).code : number(value).code);
    } while (token_ == ",");
    expect(")", "after the arguments of " + name);
    const int needed = where                          ? 3
                       : writes                       ? 1
                       : known != std::end(FUNCTIONS) ? known->arguments
                                                      : -1;
    if (needed >= 0 && arguments.size() != static_cast<std::size_t>(needed))
      fail(at, name + " takes " + std::to_string(needed) +
                   (needed == 1 ? " argument, not " : " arguments, not ") +
                   std::to_string(arguments.size()));
    if (where)
      return {"(" + arguments[0] + " ? " + arguments[1] + " : " + arguments[2] + ")", false, at};
    if (writes) return {written(name, arguments[0], at), false, at};
    std::string code = (known != std::end(FUNCTIONS) ? "math::" : "") + name + "(";
    for (std::size_t i = 0; i < arguments.size(); ++i) code += (i ? ", " : "") + arguments[i];
    return {code + ")", false, at};
  }

  ArrayKind index(const std::string& name, ArrayPart& part) {
    const std::size_t at = at_;
    if (token_ == "gate" || token_ == "up") {
      part = token_ == "gate" ? ArrayPart::gate : ArrayPart::up;
      gated_at_ = at;
      advance();
      expect("]", "after the index of " + name);
      return ArrayKind::column;
    }
    const bool m = take("m");
    const bool n = (!m || take(",")) && take("n");
    if (token_ != "]" || (!m && !n))
      fail(at, "expected the index of " + name +
                   ": [m] for a value of each row, [n] of each "
                   "column, [m, n] of each element");
    advance();
    return m && n ? ArrayKind::element : m ? ArrayKind::row : ArrayKind::column;
  }

  // The call of what leaves its argument in memory: once in an expression.
  std::string written(const std::string& name, const std::string& argument, std::size_t at) {
    for (const Epilogue::Array& array : result_.arrays)
      if (array.name == name) fail(at, name + "() stands twice in the expression");
    const bool keep = name == "keep";
    result_.arrays.push_back({name, keep ? ArrayKind::element : ArrayKind::tensor, true});
    check_counts(at);
    return keep ? "(kept[i] = " + argument + ")"
                : "amax.see(" + argument + ", Columns::at(i) < valid)";
  }

  void check_counts(std::size_t at) const {
    const bool arrays = result_.arrays.size() > EPILOGUE_ARRAYS;
    if (arrays || result_.numbers.size() > EPILOGUE_NUMBERS)
      fail(at, "more than " + std::to_string(arrays ? EPILOGUE_ARRAYS : EPILOGUE_NUMBERS) +
                   (arrays ? " arrays" : " numbers") + " in one expression");
  }

  std::string named(const std::string& name, std::size_t at) {
    const bool indexed = take("[");
    const auto is = [&](const std::string& other) { return other == name; };
    const bool array = indexed || std::any_of(array_names_.begin(), array_names_.end(), is);
    ArrayPart part = ArrayPart::result;
    const ArrayKind kind = indexed ? index(name, part) : ArrayKind::tensor;
    // A gate's and its up's value of one array are read as two.
    const bool of_product = part != ArrayPart::result;
    const auto found =
        std::find_if(result_.arrays.begin(), result_.arrays.end(), [&](const Epilogue::Array& a) {
          const bool other = of_product && a.part != ArrayPart::result && a.part != part;
          return is(a.name) && !other;
        });
    const auto number = std::find_if(result_.numbers.begin(), result_.numbers.end(), is);
    if ((array && number != result_.numbers.end()) ||
        (found != result_.arrays.end() && (!array || found->kind != kind || found->part != part)))
      fail(at, "'" + name + "' is used with two different indices");
    if (array && found == result_.arrays.end()) result_.arrays.push_back({name, kind, false, part});
    if (!array && number == result_.numbers.end()) result_.numbers.push_back(name);
    check_counts(at);
    if (of_product) return name + (part == ArrayPart::gate ? "_gate[i]" : "_up[i]");
    return name + (array ? "_[i]" : "_");
  }

  // Counts how deep the parser is, so that no expression exhausts the stack.
  struct Nested {
    explicit Nested(Parser& p) : parser(p) {
      if (++parser.depth_ > MOST_NESTING)
        parser.fail(parser.at_, "nested more than " + std::to_string(MOST_NESTING) + " deep");
    }
    ~Nested() { --parser.depth_; }
    Parser& parser;
  };

  const std::string text_;
  Epilogue& result_;
  const std::vector<std::string>& array_names_;
  std::string token_;
  std::size_t at_ = 0, end_ = 0;  // of the token
  float number_ = 0;              // the token's value
  int depth_ = 0;
  static constexpr std::size_t NOWHERE = ~std::size_t{0};
  std::size_t acc_at_ = NOWHERE, gated_at_ = NOWHERE;  // where they stand
};

}  // namespace

std::shared_ptr<const Epilogue> parse_epilogue(const std::string& expression,
                                               const std::vector<std::string>& arrays,
                                               const std::string& device_code) {
  static auto& known = *new LruCache<std::string, const Epilogue>(1024);
  std::string key = expression + '\0' + device_code;
  for (const std::string& name : arrays) key += '\0' + name;
  return known.get_or_create(key, [&] {
    auto epilogue = std::make_shared<Epilogue>();
    epilogue->expression = expression;
    epilogue->device_code = device_code;
    Parser(*epilogue, arrays).parse();
    Hasher hasher;
    hasher.add_field(expression).add_field(device_code);
    for (const Epilogue::Array& array : epilogue->arrays)
      hasher.add_field(array.name + static_cast<char>('0' + static_cast<int>(array.kind)));
    epilogue->hash = hasher.value().low;
    return std::shared_ptr<const Epilogue>(std::move(epilogue));
  });
}

}  // namespace fastgemm
