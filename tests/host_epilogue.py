"""Runs the epilogue of a generated source on the CPU: its struct, compiled by the host's C++."""

import ctypes
import shutil

import ml_dtypes
import numpy as np
from native import ROOT, need, run

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}

HARNESS = """
#include "fastgemm/device/emulated/prelude.cuh"
#include "fastgemm/device/activations.cuh"
#include "fastgemm/device/epilogue_operands.cuh"
#include "fastgemm/device/ptx/convert8.cuh"
using namespace fastgemm;
%s
extern "C" void run(const FusedParams* p, float* values, int rows, int cols, int first_row,
                    int first_col) {
  const Epilogue epilogue =
      epilogue_at<Epilogue>(*p, {0, static_cast<i64>(first_row), static_cast<i64>(first_col)});
  for (int row = 0; row + first_row < rows; ++row)
    for (int col = 0; col + first_col < cols; col += %d) {
      float acc[%d];
      const int left = cols - first_col - col;
      float* at = values + (row + first_row) * cols + first_col + col;
      for (int i = 0; i < %d; ++i) acc[i] = i < left ? at[i] : 0.0f;
      epilogue.apply<Neighbours<%d>>(acc, row, col, left);
      for (int i = 0; i < %d && i < left; ++i) at[i] = acc[i];
    }
}
extern "C" void quantise(const float* x, unsigned char* y, int count, int kind) {
  for (int i = 0; i < count; ++i)
    y[i] = kind == 0   ? ptx::from_float(Int8{}, x[i])
           : kind == 1 ? ptx::from_float(Float8E4M3{}, x[i])
                       : ptx::from_float(Float8E5M2{}, x[i]);
}
extern "C" float function_of(float x) {
  float acc[1] = {x};
  const FusedParams p = {};
  epilogue_at<Epilogue>(p, {0, 0, 0}).apply<Neighbours<1>>(acc, 0, 0, 1);
  return acc[0];
}
"""


class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("strides", ctypes.c_int64 * 3)]


class FusedParams(ctypes.Structure):
    """params.cuh: the arguments of the product, of which nothing is read, and the epilogue's."""

    _fields_ = [
        ("product", ctypes.c_char * 184),
        ("arrays", Array * 8),
        ("numbers", ctypes.c_float * 8),
    ]


def compiled(source, folder, count):
    """The library of the struct in `source`, which finishes `count` neighbours at once."""
    compiler = shutil.which("c++")
    need(compiler, "no C++ compiler: apt-get install g++")
    struct = source[source.index("struct Epilogue") : source.index("struct Config")]
    before = source[: source.index("struct Epilogue")].split("using namespace fastgemm;\n")[1]
    path = folder / f"epilogue_{count}.cpp"
    path.write_text(HARNESS % (before + struct, *(count,) * 5))
    includes = f"-I{ROOT / 'tests/host_ptx'}", f"-I{ROOT / 'include'}"
    options = "-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-fsanitize=undefined"
    library = folder / f"epilogue_{count}.so"
    run(compiler, *options, *includes, "-o", library, path)
    loaded = ctypes.CDLL(str(library))
    loaded.function_of.restype, loaded.function_of.argtypes = ctypes.c_float, [ctypes.c_float]
    return loaded


def finish(library, acc, arrays=(), numbers=(), first=(0, 0)):
    """What the epilogue makes of `acc`, from the element `first` on.

    arrays: (NumPy array, its strides along m and n in elements), in the epilogue's order.
    """
    params = FusedParams()
    for i, (array, strides) in enumerate(arrays):
        params.arrays[i].data = array.ctypes.data
        params.arrays[i].strides[:] = (0, *strides)
    params.numbers[: len(numbers)] = numbers
    values = np.ascontiguousarray(acc, np.float32).copy()
    pointer = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    library.run(ctypes.byref(params), pointer, *values.shape, *first)
    return values
