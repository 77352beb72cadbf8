// The steps of canonical(), each of which keeps the product as it is.
#pragma once

#include "fastgemm/problem.hpp"

namespace fastgemm {

// D^T = B^T A^T: the same memory, with rows and columns of everything exchanged.
GemmProblem transposed(GemmProblem p);

// A batch of products with one B whose As and Ds lie below each other is one taller product: [batch
// * m, k] x B. Does nothing where A, C or D does not allow it.
GemmProblem fold_batch_into_m(GemmProblem p);

// The strides of extents that have only one step (or none) are replaced by those of an aligned,
// packed view.
GemmProblem harmless_strides(GemmProblem p);

}  // namespace fastgemm
