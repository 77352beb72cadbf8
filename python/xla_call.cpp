// The product as a custom call of XLA programs, which is how jax.jit calls it.
#include "xla_call.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fastgemm/device_memory.hpp"
#include "fastgemm/epilogue.hpp"
#include "fastgemm/gemm.hpp"
#include "fastgemm/kernel.hpp"
#include "gemm_call.hpp"
#include "matmul.hpp"
#include "operand.hpp"
#include "xla_declarations.hpp"

namespace nb = nanobind;

namespace fastgemm::python {
namespace {

// Under their numbers. Handlers run without the GIL, on any thread.
struct Configs {
  std::mutex mutex;
  std::map<std::int64_t, GemmConfig> by_number;
};

Configs& configs() {
  static auto& configs = *new Configs;
  return configs;
}

GemmConfig config_numbered(std::int64_t number) {
  if (number == 0) return {};
  std::lock_guard<std::mutex> lock(configs().mutex);
  const auto found = configs().by_number.find(number);
  if (found == configs().by_number.end())
    throw InvalidValue(
        "this program was compiled in another process with a GemmConfig that this one has not "
        "seen; trace the function again");
  return found->second;
}

void read_array(const char* role, void* data, DType dtype, const std::int64_t* extents,
                std::size_t rank, bool transposed, Operand& x) {
  if (rank < 2 || rank > max_dims)
    throw InvalidValue(std::string(role) + " has " + std::to_string(rank) + " dimensions");
  x.role = role;
  x.data = data;
  x.dtype = dtype;
  x.ndim = static_cast<int>(rank);
  std::int64_t packed = 1;
  for (int i = x.ndim - 1; i >= 0; --i) {
    x.shape[i] = extents[i];
    x.strides[i] = packed;
    packed *= extents[i];
  }
  if (!transposed) return;
  std::swap(x.shape[x.ndim - 2], x.shape[x.ndim - 1]);
  std::swap(x.strides[x.ndim - 2], x.strides[x.ndim - 1]);
}

struct Parameters {
  float alpha = 1.0f, beta = 0.0f;
  std::int32_t transpose_a = 0, transpose_b = 0, bias = 0;
  std::int64_t config = 0;
  std::string_view activation;  // empty: none
};

// The epilogue of a third operand and an activation; parsed once for each kind.
std::shared_ptr<const Epilogue> epilogue_of(bool has_c, bool bias, const std::string& activation) {
  static auto& mutex = *new std::mutex;
  static auto& known =
      *new std::map<std::tuple<bool, bool, std::string>, std::shared_ptr<const Epilogue>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto& epilogue = known[{has_c, bias, activation}];
  if (!epilogue) {
    NamedParts parts;
    parts.activation = activation;
    if (has_c)
      (bias ? parts.bias : parts.c) = bias ? NamedParts::As::column : NamedParts::As::element;
    epilogue = parse_epilogue(named_expression(parts), {bias ? "bias" : "c"});
  }
  return epilogue;
}

struct Product {
  Operand a, b, c, out;  // c: C, or a bias
  bool has_c = false;
  Matmul matmul;

  // Without an activation, C is the kernel's own.
  void place(const Parameters& parameters) {
    matmul.alpha = parameters.alpha;
    matmul.shape = matmul_shape(a, b);
    matmul.a = place_a(matmul.shape, a);
    matmul.b = place_b(matmul.shape, b);
    matmul.d = place_out(matmul.shape, out);
    if (parameters.bias || !parameters.activation.empty()) {
      matmul.epilogue = epilogue_of(has_c, parameters.bias, std::string(parameters.activation));
      for (const Epilogue::Array& array : matmul.epilogue->arrays)
        matmul.arrays.push_back(place_array(matmul.shape, c, array));
      if (!matmul.epilogue->numbers.empty()) matmul.numbers = {parameters.beta};
    } else if (has_c) {
      matmul.beta = parameters.beta;
      matmul.c = place_c(matmul.shape, c);
    }
  }
};

Parameters read_attributes(const xla::Attributes& attributes) {
  Parameters parameters;
  const auto take = [](const xla::Scalar* scalar, xla::DataType type, auto& into) {
    if (scalar->type != type) throw InvalidType("an attribute of a product has the wrong type");
    into = *static_cast<std::decay_t<decltype(into)>*>(scalar->value);
  };
  for (std::int64_t i = 0; i < attributes.count; ++i) {
    const std::string_view name(attributes.names[i]->data, attributes.names[i]->size);
    if (name == "activation" && attributes.types[i] == xla::AttributeType::string) {
      const auto* text = static_cast<const xla::ByteSpan*>(attributes.values[i]);
      parameters.activation = {text->data, text->size};
    }
    if (attributes.types[i] != xla::AttributeType::scalar) continue;
    const auto* scalar = static_cast<const xla::Scalar*>(attributes.values[i]);
    if (name == "alpha") take(scalar, xla::DataType::f32, parameters.alpha);
    if (name == "beta") take(scalar, xla::DataType::f32, parameters.beta);
    if (name == "transpose_a") take(scalar, xla::DataType::s32, parameters.transpose_a);
    if (name == "transpose_b") take(scalar, xla::DataType::s32, parameters.transpose_b);
    if (name == "bias") take(scalar, xla::DataType::s32, parameters.bias);
    if (name == "config") take(scalar, xla::DataType::s64, parameters.config);
  }
  return parameters;
}

void read_buffer(const char* role, const void* given, bool transposed, Operand& x) {
  const auto& buffer = *static_cast<const xla::Buffer*>(given);
  DType dtype = DType::f32;
  if (buffer.type == xla::DataType::f16) dtype = DType::f16;
  if (buffer.type == xla::DataType::bf16) dtype = DType::bf16;
  read_array(role, buffer.data, dtype, buffer.extents, static_cast<std::size_t>(buffer.rank),
             transposed, x);
}

// The stream to work on; nothing for programs of the host.
std::optional<Stream> stream_of(const xla::CallFrame& frame) {
  xla::StreamGetArgs get{sizeof get, nullptr, frame.context, nullptr};
  xla::Error* error = frame.api->stream_get(&get);
  if (!error) return static_cast<Stream>(get.stream);
  xla::ErrorDestroyArgs destroy{sizeof destroy, nullptr, error};
  frame.api->error_destroy(&destroy);
  return {};
}

// XLA captures on its own account, without a warm-up: a kernel that has been dropped since the
// program was lowered is loaded now. No user's graph depends on it.
void launch(const GemmProblem& problem, Stream stream, const GemmConfig& config, int device) {
  try {
    gemm(problem, stream, config, device);
  } catch (const ColdCallError&) {
    if (strict()) throw;
    warm_up(problem, config, device);
    gemm(problem, stream, config, device);
  }
}

void call(const xla::CallFrame& frame) {
  const xla::Buffers &given = frame.arguments, &results = frame.results;
  if (given.count < 2 || given.count > 3 || results.count != 1)
    throw InvalidValue("a product has two or three operands and one result");
  const Parameters parameters = read_attributes(frame.attributes);
  Product product;
  read_buffer("a", given.buffers[0], parameters.transpose_a, product.a);
  read_buffer("b", given.buffers[1], parameters.transpose_b, product.b);
  product.has_c = given.count == 3;
  if (product.has_c) read_buffer("c", given.buffers[2], false, product.c);
  read_buffer("out", results.buffers[0], false, product.out);
  product.place(parameters);

  const GemmConfig config = config_numbered(parameters.config);
  const std::optional<Stream> stream = stream_of(frame);
  const int device = stream ? device_of(*stream) : host_device;
  for_each_problem(product.matmul, [&](const GemmProblem& problem) {
    if (!stream)
      gemm_on_host_memory(problem, config);
    else
      launch(problem, *stream, config, device);
  });
}

xla::Error* make_error(const xla::Api& api, const char* message, xla::ErrorCode code) {
  xla::ErrorCreateArgs create{sizeof create, nullptr, message, code};
  return api.error_create(&create);
}

// XLA asks so before the first call. It takes every minor version up to its own.
bool answer_metadata(const xla::CallFrame& frame, bool capturable) {
  for (xla::Extension* one = frame.extensions; one; one = one->next) {
    if (one->type != xla::ExtensionType::metadata) continue;
    xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(one)->metadata;
    metadata.version.major = xla::major_version;
    metadata.version.minor =
        frame.api ? std::min(xla::minor_version, frame.api->version.minor) : xla::minor_version;
    metadata.traits = capturable ? xla::command_buffer_compatible : 0;
    return true;
  }
  return false;
}

template <bool capturable>
xla::Error* handle(xla::CallFrame* frame) noexcept {
  if (answer_metadata(*frame, capturable)) return nullptr;
  try {
    call(*frame);
    return nullptr;
  } catch (const InvalidValue& error) {
    return make_error(*frame->api, error.what(), xla::ErrorCode::invalid_argument);
  } catch (const InvalidType& error) {
    return make_error(*frame->api, error.what(), xla::ErrorCode::invalid_argument);
  } catch (const std::exception& error) {
    return make_error(*frame->api, error.what(), xla::ErrorCode::failed_precondition);
  }
}

// Without an initialize stage, which XLA enters in every run of a program, even where it replays a
// graph and does not execute the call.
nb::capsule make_handler(bool capturable) {
  offer_nvrtc_folders();
  xla::Handler* handler = capturable ? &handle<true> : &handle<false>;
  return nb::capsule(reinterpret_cast<void*>(handler), "xla._CUSTOM_CALL_TARGET");
}

std::int64_t remember_config(const GemmConfig& config) {
  if (config == GemmConfig{}) return 0;
  std::uint64_t number = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char byte : config.str()) number = (number ^ byte) * 0x100000001b3u;
  const auto signed_number = static_cast<std::int64_t>(number);
  std::lock_guard<std::mutex> lock(configs().mutex);
  configs().by_number.insert_or_assign(signed_number, config);
  return signed_number;
}

using Shape = std::vector<std::int64_t>;

bool compile_product(const Shape& a, const Shape& b, const std::optional<Shape>& c,
                     bool transpose_a, bool transpose_b, const std::string& in,
                     const std::string& out, const std::string& c_type, bool bias,
                     const std::string& activation, std::int64_t config_number,
                     const std::vector<int>& load_on) {
  offer_nvrtc_folders();
  const nb::gil_scoped_release release;
  const DType in_dtype = dtype_from_name(in), out_dtype = dtype_from_name(out);
  const DType c_dtype = dtype_from_name(c_type);
  const auto read = [](const char* role, const Shape& shape, bool transposed, DType dtype,
                       Operand& into) {
    read_array(role, nullptr, dtype, shape.data(), shape.size(), transposed, into);
  };
  Product product;
  read("a", a, transpose_a, in_dtype, product.a);
  read("b", b, transpose_b, in_dtype, product.b);
  product.has_c = c.has_value();
  if (c) read("c", *c, false, c_dtype, product.c);
  const MatmulShape shape = matmul_shape(product.a, product.b);
  Shape result(shape.result_ndim());
  shape.result_shape(result.data());
  read("out", result, false, out_dtype, product.out);
  Parameters parameters;
  parameters.beta = 1.0f;
  parameters.bias = bias;
  parameters.activation = activation;
  product.place(parameters);

  const GemmConfig config = config_numbered(config_number);
  const std::vector<HardwareSpec> gpus = devices();
  bool capturable = !gpus.empty();
  std::string last;
  for (const HardwareSpec& gpu : gpus) {
    if (std::exchange(last, gpu.name) == gpu.name) continue;
    for_each_problem(product.matmul, [&](const GemmProblem& problem) {
      const Plan chosen = plan(problem, gpu, config);
      const KernelConfig& kernel = chosen.kernel;
      if (kernel.split_k > 1 || kernel.repack_a || kernel.repack_b) capturable = false;
      compile(chosen);
    });
  }
  for (const int device : load_on)
    for_each_problem(product.matmul,
                     [&](const GemmProblem& problem) { warm_up(problem, config, device); });
  return capturable;
}

}  // namespace

void bind_xla(nb::module_& m) {
  m.def("_xla_handler", &make_handler);
  m.def("_remember_config", &remember_config);
  m.def("_compile_product", &compile_product);
}

}  // namespace fastgemm::python
