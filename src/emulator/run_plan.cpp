// The launches of a plan: arrays, arguments, tensor maps, workspace.
#include "emulator/run_plan.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "codegen.hpp"
#include "emulator/host_kernel.hpp"
#include "emulator/run_grid.hpp"
#include "fusion.hpp"
#include "launch.hpp"
#include "planner.hpp"
#include "repack.hpp"
#include "tensor_map.hpp"

namespace fastgemm::emulated {
namespace {

struct alignas(64) EmulatedMap {
  TensorBox box;
  char rest[128 - sizeof(TensorBox)];
};
static_assert(sizeof(EmulatedMap) == sizeof(TensorMap));

EmulatedMap map_of(const fastgemm::TensorBox& from) {
  EmulatedMap map{};
  map.box.magic = TENSOR_BOX_MAGIC;
  map.box.data = static_cast<char*>(from.data);
  std::copy_n(from.extent, 4, map.box.extent);
  std::copy_n(from.stride_bytes, 3, map.box.stride_bytes);
  for (int i = 0; i < 4; ++i) map.box.box[i] = static_cast<int>(from.box[i]);
  map.box.element_bytes = static_cast<int>(size_of(from.dtype));
  map.box.swizzle_bytes = static_cast<int>(from.pitch) * map.box.element_bytes;
  return map;
}

// Memory of the length of a call, as the driver aligns it. What nothing writes to it is NaN.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes)
      : data_(bytes ? ::operator new(bytes, alignment) : nullptr) {
    if (data_) std::memset(data_, 0xff, bytes);
  }
  ~Workspace() { ::operator delete(data_, alignment); }
  Workspace(const Workspace&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  static constexpr std::align_val_t alignment{256};
  void* data_;
};

void add(GlobalMemory& memory, const std::string& name, const MatrixView& view, std::int64_t batch,
         std::int64_t rows, std::int64_t cols, Array::Use use) {
  memory.add(std::make_unique<Array>(name, view, matrices_of(view, batch), rows, cols, use));
}

// A copy is written in chunks of eight elements.
void add_copy(GlobalMemory& memory, const char* name, const MatrixView& view, std::int64_t batch,
              std::int64_t rows, std::int64_t cols) {
  std::int64_t& contiguous = view.col_stride == 1 ? cols : rows;
  contiguous = (contiguous + 7) / 8 * 8;
  add(memory, name, view, batch, rows, cols, Array::Use::write);
}

void add_inputs(GlobalMemory& memory, const GemmProblem& p) {
  if (p.k == 0) return;
  add(memory, "A", p.a, p.batch, p.m, p.k, Array::Use::read);
  add(memory, "B", p.b, p.batch, p.k, p.n, Array::Use::read);
}

void add_outputs(GlobalMemory& memory, const GemmProblem& p) {
  if (p.has_c()) add(memory, "C", p.c, p.batch, p.d_rows(), p.d_cols(), Array::Use::read);
  add(memory, "D", p.d, p.batch, p.d_rows(), p.d_cols(), Array::Use::write);
  if (!p.fusion) return;
  const Epilogue& epilogue = *p.fusion->epilogue;
  for (std::size_t i = 0; i < epilogue.arrays.size(); ++i) {
    const ArrayKind kind = fused_kind(epilogue, i, p.fusion_transposed);
    const bool has_rows = kind == ArrayKind::row || kind == ArrayKind::element;
    const bool has_cols = kind == ArrayKind::column || kind == ArrayKind::element;
    const Array::Use use = !epilogue.arrays[i].written  ? Array::Use::read
                           : kind == ArrayKind::element ? Array::Use::write
                                                        : Array::Use::raise;
    add(memory, epilogue.arrays[i].name, fused_array(p, i), p.batch, has_rows ? p.d_rows() : 1,
        has_cols ? p.d_cols() : 1, use);
  }
}

class Run {
 public:
  Run(const Plan& plan, const EmulatorOptions& options)
      : plan_(plan),
        config_(plan.kernel),
        options_(options),
        launchable_(launchable_of(plan)),
        kernel_(host_kernel(plan.kernel)) {}

  // The order of launch() in launch.cpp.
  PlanResult all() {
    const GemmProblem& p = plan_.problem;
    const Repack which = repack_of(config_);
    const Workspace copies(repack_bytes(p, which));
    const GemmProblem q = repacked(p, which, copies.data());
    if (which.any()) repack(p, q, which);
    const GemmProblem computed = oriented(config_, q);
    GlobalMemory memory;
    add_inputs(memory, computed);
    if (!config_.finishes_apart()) {
      add_outputs(memory, computed);
      multiply(computed, std::move(memory));
      return std::move(result_);
    }
    const Workspace sums(workspace_bytes(computed, config_));
    const GemmProblem partial = partial_problem(computed, sums.data());
    // Straight from registers they are written in pairs: rows have room for the last one.
    const bool pairs = config_.family == Family::sm90 && !config_.staged_stores;
    add(memory, "the partial sums", partial.d, partial.batch * config_.split_k, partial.m,
        pairs ? ceil_div(partial.n, 2) * 2 : partial.n, Array::Use::write);
    multiply(partial, std::move(memory));
    reduce(partial, computed);
    return std::move(result_);
  }

 private:
  void repack(const GemmProblem& p, const GemmProblem& q, Repack which) {
    RepackParams params = repack_params(p, q, which);
    void* arguments[] = {&params};
    GlobalMemory memory;
    add_inputs(memory, p);
    if (which.a) add_copy(memory, "the copy of A", q.a, q.batch, q.m, q.k);
    if (which.b) add_copy(memory, "the copy of B", q.b, q.batch, q.k, q.n);
    launch(kernel_.repack, repack_kernel_name(config_),
           params.operand[0].ctas + params.operand[1].ctas, REPACK_THREADS, 0, 1, arguments,
           std::move(memory));
  }

  void multiply(const GemmProblem& p, GlobalMemory memory) {
    FusedParams params = params_of(launchable_, p);
    EmulatedMap a_maps[2]{}, b_maps[2]{}, d_map{};  // of whole tiles, of those at the edge
    void* arguments[] = {&params, a_maps, b_maps, &d_map};
    if (config_.family == Family::sm90) {
      const OperandBoxes a = tensor_boxes_a(p, config_), b = tensor_boxes_b(p, config_);
      if (!config_.shifts_rows_of_a()) a_maps[0] = map_of(a.whole), a_maps[1] = map_of(a.edge);
      if (!config_.shifts_rows_of_b()) b_maps[0] = map_of(b.whole), b_maps[1] = map_of(b.edge);
      if (config_.tma_stores) d_map = map_of(tensor_box_d(p, config_));
    }
    launch(kernel_.main, kernel_name(config_), launchable_.ctas, config_.threads(),
           plan_.shared_bytes, config_.cluster(), arguments, std::move(memory));
  }

  // Rows of partial sums are read whole, with what pads them.
  void reduce(const GemmProblem& partial, const GemmProblem& p) {
    Reduction reduction = reduction_of(partial, p, config_);
    FusedParams params = params_of(launchable_, p);
    void* arguments[] = {&reduction.partial, &params};
    GlobalMemory memory;
    add(memory, "the partial sums", partial.d, partial.batch * config_.split_k, partial.m,
        workspace_pitch(p), Array::Use::read);
    add_outputs(memory, p);
    launch(kernel_.reduce, reduce_kernel_name(config_), reduction.ctas, REDUCE_THREADS, 0, 1,
           arguments, std::move(memory));
  }

  void launch(const KernelEntry* entry, const std::string& name, std::uint32_t ctas, int threads,
              int shared_bytes, int cluster, void** arguments, GlobalMemory memory) {
    Launch l;
    l.kernel = name;
    l.entry = entry;
    l.ctas = ctas;
    l.threads = threads;
    l.shared_bytes = shared_bytes;
    l.cluster = cluster;
    l.early_start = config_.dependent_launch;
    l.arguments = arguments;
    l.memory = std::move(memory);
    l.seed = options_.seed;
    result_.kernels.push_back(name);
    result_.counters.add(run_grid(l, options_.workers));
    check_written(l);
  }

  static void check_written(const Launch& launch) {
    for (const auto& array : launch.memory.arrays()) {
      const std::string element = array->writable() ? array->first_unwritten() : "";
      if (element.empty()) continue;
      EmulatorError::Place place;
      place.kind = "unwritten";
      place.kernel = launch.kernel;
      throw EmulatorError("unwritten: " + launch.kernel + " ended and nothing was written to " +
                              array->name() + element,
                          place);
    }
  }

  const Plan& plan_;
  const KernelConfig& config_;
  const EmulatorOptions& options_;
  const Launchable launchable_;
  const HostKernel kernel_;
  PlanResult result_;
};

}  // namespace

PlanResult run_plan(const Plan& plan, const EmulatorOptions& options) {
  return Run(plan, options).all();
}

}  // namespace fastgemm::emulated
