// A new torch tensor without torch's Python: a tenth of what a.new_empty() takes.
#pragma once

#include <cstdint>

#include "operand.hpp"
#include "py_ref.hpp"

namespace fastgemm::python {

// An uninitialised, packed tensor on the device of `like`, with its memory in `data`. Empty where
// torch lacks what this needs or refuses: then new_empty() says why.
Ref torch_allocate(const Operand& like, int ndim, const std::int64_t* shape, DType dtype,
                   void** data);

}  // namespace fastgemm::python
