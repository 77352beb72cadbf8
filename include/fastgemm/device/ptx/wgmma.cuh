// Asynchronous products of warpgroups out of shared memory (sm_90a): PTX ISA, "wgmma".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/wgmma.cuh"
#else

namespace fastgemm::ptx {

// Before the first wgmma, and after any other access to its accumulators.
FASTGEMM_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Closes the warpgroup's current group of products.
FASTGEMM_DEVICE void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most PENDING of the youngest groups are still under way.
template <int PENDING>
FASTGEMM_DEVICE void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// wgmma.m64nNk16: d[64 x N] = a * b + (accumulate ? d : 0). a and b are described in shared memory
// (wgmma_descriptor.cuh); A_MN and B_MN: the operand has m or n contiguous, not k. A thread holds N
// / 2 floats: of every 16 columns eight, in the order of two mma.m16n8 tiles. The instruction takes
// each register by name, so that there is one function for every N, written by the macros below.
template <int N>
struct Wgmma;

// The registers of 16 columns: their operands, and their names from %B.. on.
#define FASTGEMM_D16(i)                                                                     \
  "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]), "+f"(d[i][4]), "+f"(d[i][5]), \
      "+f"(d[i][6]), "+f"(d[i][7])

#define FASTGEMM_D_1 FASTGEMM_D16(0)
#define FASTGEMM_R_1 "%0, %1, %2, %3, %4, %5, %6, %7"
#define FASTGEMM_D_2 FASTGEMM_D_1, FASTGEMM_D16(1)
#define FASTGEMM_R_2 FASTGEMM_R_1 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FASTGEMM_D_3 FASTGEMM_D_2, FASTGEMM_D16(2)
#define FASTGEMM_R_3 FASTGEMM_R_2 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define FASTGEMM_D_4 FASTGEMM_D_3, FASTGEMM_D16(3)
#define FASTGEMM_R_4 FASTGEMM_R_3 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define FASTGEMM_D_5 FASTGEMM_D_4, FASTGEMM_D16(4)
#define FASTGEMM_R_5 FASTGEMM_R_4 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define FASTGEMM_D_6 FASTGEMM_D_5, FASTGEMM_D16(5)
#define FASTGEMM_R_6 FASTGEMM_R_5 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define FASTGEMM_D_7 FASTGEMM_D_6, FASTGEMM_D16(6)
#define FASTGEMM_R_7 FASTGEMM_R_6 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define FASTGEMM_D_8 FASTGEMM_D_7, FASTGEMM_D16(7)
#define FASTGEMM_R_8 FASTGEMM_R_7 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define FASTGEMM_D_9 FASTGEMM_D_8, FASTGEMM_D16(8)
#define FASTGEMM_R_9 FASTGEMM_R_8 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define FASTGEMM_D_10 FASTGEMM_D_9, FASTGEMM_D16(9)
#define FASTGEMM_R_10 FASTGEMM_R_9 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define FASTGEMM_D_11 FASTGEMM_D_10, FASTGEMM_D16(10)
#define FASTGEMM_R_11 FASTGEMM_R_10 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define FASTGEMM_D_12 FASTGEMM_D_11, FASTGEMM_D16(11)
#define FASTGEMM_R_12 FASTGEMM_R_11 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define FASTGEMM_D_13 FASTGEMM_D_12, FASTGEMM_D16(12)
#define FASTGEMM_R_13 FASTGEMM_R_12 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define FASTGEMM_D_14 FASTGEMM_D_13, FASTGEMM_D16(13)
#define FASTGEMM_R_14 FASTGEMM_R_13 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define FASTGEMM_D_15 FASTGEMM_D_14, FASTGEMM_D16(14)
#define FASTGEMM_R_15 FASTGEMM_R_14 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define FASTGEMM_D_16 FASTGEMM_D_15, FASTGEMM_D16(15)
#define FASTGEMM_R_16 FASTGEMM_R_15 ", %120, %121, %122, %123, %124, %125, %126, %127"

// TYPE: f16 or bf16; TILES: N / 16; A, B, S, TA, TB: the numbers of the operands behind the
// accumulators.
#define FASTGEMM_WGMMA(TAG, TYPE, TILES, N, A, B, S, TA, TB)                                      \
  template <bool A_MN, bool B_MN>                                                                 \
  FASTGEMM_DEVICE static void multiply(TAG, float (&d)[TILES][8], u64 a, u64 b, int accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #S                                          \
                 ", 0;\n"                                                                         \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #TYPE "." #TYPE                \
                 " {" FASTGEMM_R_##TILES "}, %" #A ", %" #B ", p, 1, 1, %" #TA ", %" #TB ";\n}"   \
                 : FASTGEMM_D_##TILES                                                             \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(A_MN ? 1 : 0), "n"(B_MN ? 1 : 0));        \
  }
#define FASTGEMM_WGMMA_N(TILES, N, A, B, S, TA, TB)           \
  template <>                                                 \
  struct Wgmma<N> {                                           \
    FASTGEMM_WGMMA(Float16, f16, TILES, N, A, B, S, TA, TB)   \
    FASTGEMM_WGMMA(Bfloat16, bf16, TILES, N, A, B, S, TA, TB) \
  };

FASTGEMM_WGMMA_N(1, 16, 8, 9, 10, 11, 12)
FASTGEMM_WGMMA_N(2, 32, 16, 17, 18, 19, 20)
FASTGEMM_WGMMA_N(3, 48, 24, 25, 26, 27, 28)
FASTGEMM_WGMMA_N(4, 64, 32, 33, 34, 35, 36)
FASTGEMM_WGMMA_N(5, 80, 40, 41, 42, 43, 44)
FASTGEMM_WGMMA_N(6, 96, 48, 49, 50, 51, 52)
FASTGEMM_WGMMA_N(7, 112, 56, 57, 58, 59, 60)
FASTGEMM_WGMMA_N(8, 128, 64, 65, 66, 67, 68)
FASTGEMM_WGMMA_N(9, 144, 72, 73, 74, 75, 76)
FASTGEMM_WGMMA_N(10, 160, 80, 81, 82, 83, 84)
FASTGEMM_WGMMA_N(11, 176, 88, 89, 90, 91, 92)
FASTGEMM_WGMMA_N(12, 192, 96, 97, 98, 99, 100)
FASTGEMM_WGMMA_N(13, 208, 104, 105, 106, 107, 108)
FASTGEMM_WGMMA_N(14, 224, 112, 113, 114, 115, 116)
FASTGEMM_WGMMA_N(15, 240, 120, 121, 122, 123, 124)
FASTGEMM_WGMMA_N(16, 256, 128, 129, 130, 131, 132)

#undef FASTGEMM_WGMMA_N
#undef FASTGEMM_WGMMA

}  // namespace fastgemm::ptx

#endif
