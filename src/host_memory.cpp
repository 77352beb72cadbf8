// gemm() over host memory: operands to the device, the product, D back.
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "driver.hpp"
#include "fastgemm/gemm.hpp"
#include "host_layout.hpp"

namespace fastgemm {
namespace {

class OwnStream {
 public:
  OwnStream() { check(driver().stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"); }
  ~OwnStream() { driver().stream_destroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  CUstream get() const { return stream_; }
  void synchronize() const { check(driver().stream_synchronize(stream_), "cuStreamSynchronize"); }

 private:
  CUstream stream_ = nullptr;
};

class Buffer {
 public:
  Buffer(std::size_t bytes, const DeviceContext& device) {
    if (bytes == 0) return;
    check(driver().mem_alloc(&memory_, bytes), "cuMemAlloc",
          std::to_string(bytes) + " bytes on device " + std::to_string(device.ordinal) + " (" +
              device.hardware.name + ")");
  }
  ~Buffer() {
    if (memory_) driver().mem_free(memory_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr get() const { return memory_; }

 private:
  CUdeviceptr memory_ = 0;
};

// Back to where the layout's host memory is; complete on return.
void download(const HostLayout& layout, CUdeviceptr from, const OwnStream& stream) {
  std::vector<char> packed(layout.dense() ? 0 : layout.bytes());
  check(driver().memcpy_dtoh_async(layout.dense() ? layout.begin() : packed.data(), from,
                                   layout.bytes(), stream.get()),
        "cuMemcpyDtoHAsync");
  stream.synchronize();
  if (!layout.dense()) layout.unpack(packed.data());
}

// An operand's copy on the device.
class Upload {
 public:
  Upload(const MatrixView& host, const Extents& extents, const DeviceContext& device,
         CUstream stream)
      : layout_(host, extents), buffer_(layout_.bytes(), device) {
    if (layout_.bytes() == 0) return;
    const char* from = layout_.begin();
    if (!layout_.dense()) {
      packed_.resize(layout_.bytes());
      layout_.pack(packed_.data());
      from = packed_.data();
    }
    check(driver().memcpy_htod_async(buffer_.get(), from, layout_.bytes(), stream),
          "cuMemcpyHtoDAsync");
  }

  MatrixView view() const { return layout_.at(buffer_.get()); }
  void bring_back(const OwnStream& stream) const { download(layout_, buffer_.get(), stream); }

 private:
  HostLayout layout_;
  Buffer buffer_;
  std::vector<char> packed_;  // until the copy is done
};

}  // namespace

void gemm_on_host_memory(const GemmProblem& problem, const GemmConfig& config, int device) {
  validate(problem);
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return;
  const DeviceContext& context = device_context(device);
  const ScopedContext scope(context);
  const OwnStream stream;

  const Extents d_extents{problem.batch, problem.d_rows(), problem.d_cols()};
  const Upload a(problem.a, {problem.batch, problem.m, problem.k}, context, stream.get());
  const Upload b(problem.b, {problem.batch, problem.k, problem.n}, context, stream.get());
  const Upload c(problem.has_c() ? problem.c : MatrixView{},
                 problem.has_c() ? d_extents : Extents{0, 0, 0}, context, stream.get());
  const HostLayout d_layout(problem.d, d_extents);
  const Buffer d(d_layout.bytes(), context);

  GemmProblem on_device = problem;
  on_device.a = a.view();
  on_device.b = b.view();
  if (problem.has_c()) on_device.c = c.view();
  on_device.d = d_layout.at(d.get());
  std::deque<Upload> arrays;
  if (problem.fusion) {
    auto fusion = std::make_shared<Fusion>(*problem.fusion);
    for (std::size_t i = 0; i < fusion->arrays.size(); ++i) {
      MatrixView& view = fusion->arrays[i];
      Extents extents = d_extents;
      if (fusion->epilogue->arrays[i].part != ArrayPart::result) extents.cols = problem.n;
      view = arrays.emplace_back(view, extents, context, stream.get()).view();
    }
    on_device.fusion = std::move(fusion);
  }
  gemm(on_device, stream.get(), config, device);
  stream.synchronize();

  download(d_layout, d.get(), stream);
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (problem.fusion->epilogue->arrays[i].written) arrays[i].bring_back(stream);
}

}  // namespace fastgemm
