// The Python extension fastgemm._core: what the package shows of the C++ library.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <variant>

#include "docstrings.hpp"
#include "emulate_call.hpp"
#include "errors.hpp"
#include "fastgemm/gemm.hpp"
#include "fused_call.hpp"
#include "gemm_call.hpp"
#include "module_parts.hpp"
#include "prepared_call.hpp"
#include "py_ref.hpp"
#include "repr.hpp"
#include "xla_call.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fastgemm::python {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Int = std::optional<int>;
using Text = std::optional<std::string>;

// A field of GemmConfig, and what a kernel was built with in its place.
template <class T>
struct Field {
  const char* name;
  std::optional<T> GemmConfig::* wish;
  T KernelConfig::* built;
};
template <class T>
Field(const char*, std::optional<T> GemmConfig::*, T KernelConfig::*) -> Field<T>;

// All but family and strategy; a new field is a line here, and one of the docstring.
#define FIELD(name) \
  Field { #name, &GemmConfig::name, &KernelConfig::name }
constexpr std::tuple fields = {
    FIELD(block_m),       FIELD(block_n),          FIELD(block_k),    FIELD(warp_m),
    FIELD(warp_n),        FIELD(split_k),          FIELD(num_stages), FIELD(swizzle),
    FIELD(swizzle_bytes), FIELD(raster_group),     FIELD(swap_ab),    FIELD(staged_stores),
    FIELD(repack_a),      FIELD(repack_b),         FIELD(shift_a),    FIELD(shift_b),
    FIELD(cluster_m),     FIELD(cluster_n),        FIELD(cluster_k),  FIELD(multicast),
    FIELD(tma_stores),    FIELD(dependent_launch), FIELD(prefetch),   FIELD(ping_pong),
    FIELD(persistent),
};
#undef FIELD

const Names config_fields = std::apply(
    [](const auto&... field) { return Names{"family", "strategy", field.name...}; }, fields);

nb::dict fields_of(nb::handle config) {
  nb::dict values;
  for (const char* name : config_fields) values[name] = config.attr(name);
  return values;
}

// All fields that a kernel was built with, so that gemm(config=...) gives the same kernel again.
GemmConfig resolved(const KernelConfig& kernel, const std::string& strategy) {
  GemmConfig config;
  config.family = kernel.family;
  config.strategy = strategy;
  std::apply([&](const auto&... field) { ((config.*field.wish = kernel.*field.built), ...); },
             fields);
  return config;
}

template <class... T>
void bind_config_fields(nb::class_<GemmConfig>& type, const Field<T>&... field) {
  type.def(
          "__init__",
          [](GemmConfig* self, const Text& family, Text strategy, std::optional<T>... values) {
            GemmConfig config;
            if (family) config.family = family_from_name(*family);
            config.strategy = std::move(strategy);
            std::apply([&](const Field<T>&... to) { ((config.*to.wish = values), ...); }, fields);
            new (self) GemmConfig(std::move(config));
          },
          nb::kw_only(), "family"_a = nb::none(), "strategy"_a = nb::none(),
          (nb::arg(field.name) = nb::none())...)
      .def_prop_ro("family",
                   [](const GemmConfig& c) { return c.family ? Text(name(*c.family)) : Text(); })
      .def_ro("strategy", &GemmConfig::strategy);
  (type.def_ro(field.name, field.wish), ...);
}

void bind_config(nb::module_& m) {
  nb::class_<GemmConfig> type(m, "GemmConfig", config_docstring);
  std::apply([&](const auto&... field) { bind_config_fields(type, field...); }, fields);
  type.def(
          "__eq__", [](const GemmConfig& a, const GemmConfig& b) { return a == b; },
          nb::is_operator())
      .def("__hash__", [](const GemmConfig& c) { return std::hash<std::string>()(c.str()); })
      .def(
          "replace",
          [](nb::handle_t<GemmConfig> self, const nb::kwargs& changes) {
            nb::dict values = fields_of(self);
            for (auto [name, value] : changes) values[name] = value;
            return self.type()(**values);
          },
          nb::sig("def replace(self, **changes) -> GemmConfig"),
          "A config with the given fields changed; None hands a field back to the planner.")
      .def("__reduce__", [](nb::handle_t<GemmConfig> self) {
        nb::object maker = nb::module_::import_("functools").attr("partial");
        return nb::make_tuple(maker(self.type(), **fields_of(self)), nb::make_tuple());
      });
  add_repr(type, config_fields);
}

void bind_hardware(nb::module_& m) {
  nb::class_<ArchSpec> arch(m, "ArchSpec",
                            "What every GPU of one compute capability has in common.");
  arch.def_prop_ro("name", [](const ArchSpec& a) { return arch_name(a.cc); })
      .def_ro("cc", &ArchSpec::cc)
      .def_ro("generation", &ArchSpec::generation)
      .def_ro("shared_per_sm", &ArchSpec::shared_per_sm)
      .def_ro("shared_per_block", &ArchSpec::shared_per_block)
      .def_ro("shared_reserved", &ArchSpec::shared_reserved)
      .def_ro("registers_per_sm", &ArchSpec::registers_per_sm)
      .def_ro("registers_per_thread", &ArchSpec::registers_per_thread)
      .def_ro("warps_per_sm", &ArchSpec::warps_per_sm)
      .def_ro("ctas_per_sm", &ArchSpec::ctas_per_sm)
      .def_ro("mma_flops_per_clock", &ArchSpec::mma_flops_per_clock)
      .def_ro("clock_ghz", &ArchSpec::clock_ghz)
      .def_ro("bf16", &ArchSpec::bf16)
      .def_ro("ldmatrix", &ArchSpec::ldmatrix)
      .def_ro("cp_async", &ArchSpec::cp_async)
      .def_ro("mma_m16n8k16", &ArchSpec::mma_m16n8k16)
      .def_ro("tma_wgmma", &ArchSpec::tma_wgmma);
  add_repr(arch, {"name", "generation", "shared_per_sm", "shared_per_block", "registers_per_sm",
                  "mma_flops_per_clock"});

  nb::class_<HardwareSpec> hardware_type(m, "HardwareSpec", hardware_spec_docstring);
  hardware_type.def_ro("arch", &HardwareSpec::arch)
      .def_ro("name", &HardwareSpec::name)
      .def_ro("sms", &HardwareSpec::sms)
      .def_ro("clock_ghz", &HardwareSpec::clock_ghz)
      .def_ro("l2_bytes", &HardwareSpec::l2_bytes)
      .def_ro("dram_gbps", &HardwareSpec::dram_gbps)
      .def_prop_ro("device",
                   [](const HardwareSpec& h) { return h.device < 0 ? Int() : Int(h.device); });
  add_repr(hardware_type, {"name", "arch", "sms", "clock_ghz", "l2_bytes", "dram_gbps", "device"});

  m.def(
      "hardware", [](const std::string& arch) { return hardware(arch); }, "arch"_a,
      hardware_docstring);
  m.def("arch_table", &arch_table, "The rows of the parameter table, one an architecture.");
  m.def("card_table", &card_table, "The cards of the parameter table.");
  m.def("devices", &devices, Unlocked(),
        "The GPUs that the driver shows, as HardwareSpec; empty with no driver or no GPU.");
}

nb::dict cost_dict(const Cost& cost) {
  nb::dict fields;
  fields["total_us"] = cost.total_us;
  fields["tensor_us"] = cost.tensor_us;
  fields["shared_us"] = cost.shared_us;
  fields["latency_us"] = cost.latency_us;
  fields["l2_us"] = cost.l2_us;
  fields["dram_us"] = cost.dram_us;
  fields["copy_us"] = cost.copy_us;
  fields["repack_us"] = cost.repack_us;
  fields["reduce_us"] = cost.reduce_us;
  fields["overhead_us"] = cost.overhead_us;
  fields["power_us"] = cost.power_us;
  fields["waves"] = cost.waves;
  return fields;
}

// Of the problem's A and B, which a kernel with swapped operands takes the other way round.
std::string layout_of(const KernelConfig& kernel) {
  const Major a = kernel.swap_ab ? kernel.b_major : kernel.a_major;
  const Major b = kernel.swap_ab ? kernel.a_major : kernel.b_major;
  return std::string(a == Major::k ? "n" : "t") + (b == Major::k ? "t" : "n");
}

HardwareSpec target(const std::optional<std::variant<std::string, HardwareSpec>>& arch,
                    Int device) {
  if (arch && device) throw InvalidValue("pass arch or device, not both");
  if (arch) {
    const auto* text = std::get_if<std::string>(&*arch);
    return text ? hardware(*text) : std::get<HardwareSpec>(*arch);
  }
  for (const HardwareSpec& live : devices())
    if (live.device == device.value_or(0)) return live;
  if (device)
    throw DeviceError("there is no GPU " + std::to_string(*device) + "; see fastgemm.devices()");
  return hardware("sm_90");
}

GemmProblem make_problem(std::int64_t m, std::int64_t n, std::int64_t k, const nb::object& dtype,
                         const std::string& layout, const nb::object& out_dtype, std::int64_t batch,
                         float beta) {
  const DType in = dtype_from(dtype.ptr());
  const DType out = out_dtype.is_none() ? in : dtype_from(out_dtype.ptr());
  GemmProblem problem = packed_problem(m, n, k, in, layout, batch, out, beta != 0.0f);
  problem.beta = beta;
  return problem;
}

Plan make_plan(std::int64_t m, std::int64_t n, std::int64_t k, nb::object dtype,
               const std::string& layout, nb::object out_dtype, std::int64_t batch, float beta,
               const std::optional<std::variant<std::string, HardwareSpec>>& arch, Int device,
               const std::optional<GemmConfig>& config, nb::object epilogue) {
  GemmProblem problem = make_problem(m, n, k, dtype, layout, out_dtype, batch, beta);
  if (!epilogue.is_none()) set_planned_fusion(epilogue.ptr(), problem);
  nb::gil_scoped_release release;
  return fastgemm::plan(problem, target(arch, device), config.value_or(GemmConfig()));
}

void bind_plan(nb::module_& m) {
  nb::class_<Candidate> candidate(m, "Candidate", "A kernel that the planner considered.");
  candidate.def_ro("strategy", &Candidate::strategy)
      .def_prop_ro("config", [](const Candidate& c) { return resolved(c.kernel, c.strategy); })
      .def_prop_ro("cost", [](const Candidate& c) { return cost_dict(c.cost); })
      .def_prop_ro("refused",
                   [](const Candidate& c) { return c.refused.empty() ? Text() : Text(c.refused); });
  add_repr(candidate, {"strategy", "config", "cost", "refused"});

  nb::class_<Plan>(m, "Plan", plan_class_docstring)
      .def_prop_ro("m", [](const Plan& p) { return p.problem.m; })
      .def_prop_ro("n", [](const Plan& p) { return p.problem.n; })
      .def_prop_ro("k", [](const Plan& p) { return p.problem.k; })
      .def_prop_ro("batch", [](const Plan& p) { return p.problem.batch; })
      .def_prop_ro("dtype", [](const Plan& p) { return name(p.problem.a.dtype); })
      .def_prop_ro("out_dtype", [](const Plan& p) { return name(p.problem.d.dtype); })
      .def_prop_ro("layout", [](const Plan& p) { return layout_of(p.kernel); })
      .def_prop_ro("arch", [](const Plan& p) { return arch_name(p.hardware.arch.cc); })
      .def_ro("hardware", &Plan::hardware)
      .def_ro("strategy", &Plan::strategy)
      .def_prop_ro("config", [](const Plan& p) { return resolved(p.kernel, p.strategy); })
      .def_prop_ro("cost", [](const Plan& p) { return cost_dict(p.cost); })
      .def_ro("threads", &Plan::threads)
      .def_ro("shared_bytes", &Plan::shared_bytes)
      .def_ro("ctas", &Plan::ctas)
      .def_ro("ctas_per_sm", &Plan::ctas_per_sm)
      .def_ro("considered", &Plan::considered)
      .def("explain", &Plan::explain, "The decision with its costs, and the runners-up.")
      .def("__str__", &Plan::str)
      .def("__repr__", [](const Plan& p) { return "<fastgemm.Plan " + p.str() + ">"; });

  m.def("plan", &make_plan, "m"_a, "n"_a, "k"_a, nb::kw_only(), "dtype"_a = "bfloat16",
        "layout"_a = "nt", "out_dtype"_a = nb::none(), "batch"_a = 1, "beta"_a = 0.0f,
        "arch"_a = nb::none(), "device"_a = nb::none(), "config"_a = nb::none(),
        "epilogue"_a = nb::none(), plan_docstring);
  m.def("strategies", &strategies,
        "The names of the tiling strategies, in the order in which they are tried.");
}

void bind_kernel(nb::module_& m) {
  nb::class_<CompiledKernel> kernel(m, "Kernel", kernel_docstring);
  kernel.def_ro("name", &CompiledKernel::name)
      .def_ro("source", &CompiledKernel::source)
      .def_prop_ro("ptx", &CompiledKernel::ptx, Unlocked())
      .def_prop_ro(
          "cubin",
          [](const CompiledKernel& k) { return nb::bytes(k.cubin.data(), k.cubin.size()); })
      .def_ro("target", &CompiledKernel::target)
      .def_ro("registers", &CompiledKernel::registers)
      .def_ro("spill_bytes", &CompiledKernel::spill_bytes)
      .def_ro("shared_bytes", &CompiledKernel::shared_bytes)
      .def_ro("compile_ms", &CompiledKernel::compile_ms)
      .def_ro("from_disk", &CompiledKernel::from_disk)
      .def_ro("nvrtc_version", &CompiledKernel::nvrtc_version);
  add_repr(kernel, {"name", "target", "registers", "spill_bytes", "shared_bytes", "compile_ms",
                    "from_disk", "nvrtc_version"});
  m.def(
      "compile",
      [](const Plan& plan) {
        offer_nvrtc_folders();
        nb::gil_scoped_release release;
        return std::const_pointer_cast<CompiledKernel>(compile(plan));
      },
      "plan"_a, compile_docstring);
}

void bind_runtime(nb::module_& m) {
  nb::class_<DriverInfo> driver(m, "DriverInfo",
                                "The CUDA driver: whether it is usable, and why not.");
  driver.def_ro("available", &DriverInfo::available)
      .def_ro("version", &DriverInfo::version)
      .def_ro("reason", &DriverInfo::reason);
  add_repr(driver, {"available", "version", "reason"});
  m.def("driver_info", &driver_info, Unlocked(),
        "The CUDA driver: whether it is usable, and why not.");

  nb::class_<NvrtcInfo> nvrtc(m, "NvrtcInfo", "The NVRTC that compiles kernels.");
  nvrtc.def_ro("path", &NvrtcInfo::path)
      .def_ro("version", &NvrtcInfo::version)
      .def_ro("archs", &NvrtcInfo::archs);
  add_repr(nvrtc, {"path", "version", "archs"});
  m.def(
      "nvrtc_info",
      [] {
        offer_nvrtc_folders();
        nb::gil_scoped_release release;
        return nvrtc_info();
      },
      "The NVRTC that compiles kernels. Raises CompileError where there is none.");

  m.def(
      "_warm_up",
      [](std::int64_t m, std::int64_t n, std::int64_t k, const nb::object& dtype,
         const std::string& layout, const nb::object& out_dtype, std::int64_t batch, float beta,
         int device, const std::optional<GemmConfig>& config) {
        const GemmProblem problem = make_problem(m, n, k, dtype, layout, out_dtype, batch, beta);
        offer_nvrtc_folders();
        nb::gil_scoped_release release;
        warm_up(problem, config.value_or(GemmConfig()), device);
      },
      "m"_a, "n"_a, "k"_a, "dtype"_a, "layout"_a, "out_dtype"_a.none(), "batch"_a, "beta"_a,
      "device"_a, "config"_a.none());

  nb::class_<CacheInfo> cache(m, "CacheInfo", cache_info_docstring);
  cache.def_ro("loaded", &CacheInfo::loaded)
      .def_ro("capacity", &CacheInfo::capacity)
      .def_ro("hits", &CacheInfo::hits)
      .def_ro("misses", &CacheInfo::misses)
      .def_ro("evictions", &CacheInfo::evictions)
      .def_ro("compiles", &CacheInfo::compiles)
      .def_ro("disk_hits", &CacheInfo::disk_hits)
      .def_ro("disk_path", &CacheInfo::disk_path)
      .def_ro("disk_files", &CacheInfo::disk_files)
      .def_ro("disk_bytes", &CacheInfo::disk_bytes);
  add_repr(cache, {"loaded", "capacity", "hits", "misses", "evictions", "compiles", "disk_hits",
                   "disk_path", "disk_files", "disk_bytes"});
  m.def("cache_info", &cache_info, Unlocked(),
        "Counts and sizes of the kernel caches, in memory and on disk.");
  m.def(
      "clear_cache", &clear_cache, "disk"_a = false, Unlocked(),
      "Unloads all kernels that nothing is running and, with disk=True, deletes the cached files.");

  m.def("set_strict", &set_strict, "on"_a = true, strict_docstring);
  m.def("set_verbose", &set_verbose, "on"_a = true,
        "Whether each compile, load and kernel from the disk cache is logged, through "
        "logging.getLogger('fastgemm').");
}

}  // namespace

const GemmConfig* config_in(PyObject* object) {
  return nb::isinstance<GemmConfig>(object) ? nb::inst_ptr<GemmConfig>(object) : nullptr;
}

HardwareSpec hardware_in(PyObject* object) {
  if (!object) return hardware("sm_80");
  if (PyUnicode_Check(object)) return hardware(to_string(object));
  if (nb::isinstance<HardwareSpec>(object)) return *nb::inst_ptr<HardwareSpec>(object);
  throw InvalidType("arch is neither a name such as 'sm_80' nor a fastgemm.HardwareSpec");
}

PyObject* report_object(const EmulatorReport& report) { return nb::cast(report).release().ptr(); }

}  // namespace fastgemm::python

NB_MODULE(_core, m) {
  using namespace fastgemm::python;
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const PythonError&) {
      set_python_error(error);
    } catch (const fastgemm::Error&) {
      set_python_error(error);
    }
  });
  m.attr("__version__") = FASTGEMM_VERSION;
  m.attr("CompileError") = nb::borrow(compile_error_type());
  m.attr("DeviceError") = nb::borrow(device_error_type());
  m.attr("EmulatorError") = nb::borrow(emulator_error_type());
  m.attr("ColdCallError") = nb::borrow(cold_call_error_type());
  bind_config(m);
  add_epilogue_class(m.ptr());
  bind_hardware(m);
  bind_plan(m);
  bind_kernel(m);
  bind_runtime(m);
  add_emulator_classes(m.ptr());
  bind_xla(m);
  add_gemm_functions(m.ptr());
  m.attr("prepare") = nb::steal(make_prepare_function(m.ptr()));
  m.attr("emulate") = nb::steal(make_emulate_function(m.ptr()));
  connect_log();
}
