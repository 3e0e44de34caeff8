// Elementary functions of float and double for kernels, alike on AMD GPUs and the CPU emulation.
//
// They need no device library. Errors are at most, in units in the last place of the result, what
// stands beside each name (float, double); a test holds this over the whole range:
//
//   sqrt 0.5  reciprocal 0.5  floor ceil trunc round fmod float32_of exact
//   exp 1.5  exp2 1.5  expm1 2  log 1.5  log2 2  log10 2  log1p 2  rsqrt 1.5  sigmoid 3
//   sin cos 1.5  tan 3  asin acos atan 3  atan2 3  sinh cosh tanh 3  asinh acosh atanh 4
//   erf 1.5  erfc 5  erfinv 2.5  hypot 2  pow 1.5
//   erfcx 6  ndtri 6  i0 4  i0e 4  i1 4  i1e 4
//
// Of those with roots it is the places of the larger of the result and 1, and below 0, where they
// are a difference, of its largest part:
//
//   lgamma 6  digamma 10
//
// Special values are those of C's <math.h>. Denormal numbers are kept.
#pragma once

#include <kiln/complex_functions.h>
#include <kiln/elementary.h>
#include <kiln/error_functions.h>
#include <kiln/special_functions.h>
#include <kiln/trigonometry.h>
