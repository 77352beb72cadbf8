// Marks what libfastgemm exports; everything else stays hidden.
#pragma once

#if defined(_WIN32)
#define FASTGEMM_API
#else
#define FASTGEMM_API __attribute__((visibility("default")))
#endif
