// A new torch tensor without torch's Python: a tenth of what a.new_empty() takes.
//
// By the C interface that torch keeps stable for compiled models (AOTInductor's shim), and the
// function that makes a Python object of a tensor. DLPack's allocator would do as well, but what it
// gives does not belong to torch's caching allocator: record_stream() would be ignored.
#include "torch_allocation.hpp"

#include <dlfcn.h>

namespace fastgemm::python {
namespace {

using Handle = void*;  // an at::Tensor*

struct Torch {
  std::int32_t (*empty_strided)(std::int64_t ndim, const std::int64_t* shape,
                                const std::int64_t* strides, std::int32_t dtype,
                                std::int32_t device_type, std::int32_t device, Handle* out);
  std::int32_t (*get_data_ptr)(Handle, void** data);
  std::int32_t (*delete_tensor)(Handle);
  PyObject* (*wrap)(const void* tensor);
  std::int32_t cpu, cuda;
  std::int32_t dtypes[6];  // in the order of DType
};

template <class Function>
bool find(void* library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
  return function != nullptr;
}

bool ask(void* library, const char* symbol, std::int32_t& code) {
  std::int32_t (*function)() = nullptr;
  if (!find(library, symbol, function)) return false;
  code = function();
  return true;
}

// Null where a symbol is missing. The last one's name holds its C++ signature.
const Torch* open_torch() {
  void* library = dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  static Torch torch;
  static constexpr const char* dtypes[] = {
      "aoti_torch_dtype_float16", "aoti_torch_dtype_bfloat16",      "aoti_torch_dtype_float32",
      "aoti_torch_dtype_int8",    "aoti_torch_dtype_float8_e4m3fn", "aoti_torch_dtype_float8_e5m2"};
  bool found = find(library, "aoti_torch_empty_strided", torch.empty_strided) &&
               find(library, "aoti_torch_get_data_ptr", torch.get_data_ptr) &&
               find(library, "aoti_torch_delete_tensor_object", torch.delete_tensor) &&
               ask(library, "aoti_torch_device_type_cpu", torch.cpu) &&
               ask(library, "aoti_torch_device_type_cuda", torch.cuda) &&
               find(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE", torch.wrap);
  for (int i = 0; i < 6; ++i) found = found && ask(library, dtypes[i], torch.dtypes[i]);
  return found ? &torch : nullptr;
}

}  // namespace

Ref torch_allocate(const Operand& like, int ndim, const std::int64_t* shape, DType dtype,
                   void** data) {
  static const Torch* const torch = open_torch();
  if (!torch) return {};
  std::int64_t strides[max_dims];
  std::int64_t packed = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    strides[i] = packed;
    packed *= shape[i] > 1 ? shape[i] : 1;
  }
  Handle tensor = nullptr;
  if (torch->empty_strided(ndim, shape, strides, torch->dtypes[static_cast<int>(dtype)],
                           like.on_host() ? torch->cpu : torch->cuda,
                           like.on_host() ? 0 : like.device, &tensor) != 0)
    return {};
  PyObject* object = torch->get_data_ptr(tensor, data) == 0 ? torch->wrap(tensor) : nullptr;
  torch->delete_tensor(tensor);
  return object ? Ref::steal(object) : Ref();
}

}  // namespace fastgemm::python
