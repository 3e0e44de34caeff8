"""Argument names and defaults of the ops that exported models use, as torch's schemas have them.

One line a signature, the ops that share it before the colon (``name`` means ``name.default``).
Only what binding needs is here: names, order, which are by keyword only, defaults. In-place forms
(``add_``) have the signature of the form without the underscore. Enumerations that do not matter
here (layout, memory format, device) default to None.
"""

from __future__ import annotations

# torch/include/ATen/native_functions.yaml, 2.13
ATEN = """
mm bmm: self, mat2
addmm: self, mat1, mat2, *, beta=1, alpha=1
baddbmm: self, batch1, batch2, *, beta=1, alpha=1
linear: input, weight, bias=None
matmul mul.Tensor mul.Scalar div.Tensor div.Scalar: self, other
true_divide.Tensor true_divide.Scalar: self, other
dot: self, tensor
mv: self, vec
addmv: self, mat, vec, *, beta=1, alpha=1
outer: self, vec2
einsum: equation, tensors, *, path=None
conv1d: input, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), groups=1
conv2d: input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1
conv3d: input, weight, bias=None, stride=(1,1,1), padding=(0,0,0), dilation=(1,1,1), groups=1
conv1d.padding: input, weight, bias=None, stride=(1,), padding='valid', dilation=(1,), groups=1
conv2d.padding: input, weight, bias=None, stride=(1, 1), padding='valid', dilation=(1, 1), groups=1
conv3d.padding: input, weight, bias=None, stride=(1,1,1), padding='valid', dilation=(1,1,1), \
groups=1
convolution: input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
scaled_dot_product_attention: query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, \
*, scale=None, enable_gqa=False

layer_norm: input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True
native_layer_norm: input, normalized_shape, weight, bias, eps
rms_norm: input, normalized_shape, weight=None, eps=None
group_norm: input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True
native_group_norm: input, weight, bias, N, C, HxW, group, eps
batch_norm: input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
native_batch_norm: input, weight, bias, running_mean, running_var, training, momentum, eps
_native_batch_norm_legit_no_training: input, weight, bias, running_mean, running_var, momentum, eps
_native_batch_norm_legit.no_stats: input, weight, bias, training, momentum, eps
instance_norm: input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, \
cudnn_enabled
softmax.int log_softmax.int: self, dim, dtype=None
_softmax _log_softmax: self, dim, half_to_float

sum mean prod: self, *, dtype=None
sum.dim_IntList mean.dim prod.dim_int: self, dim, keepdim=False, *, dtype=None
amax amin: self, dim=(), keepdim=False
max min any all: self
max.other min.other: self, other
max.dim min.dim any.dim all.dim: self, dim, keepdim=False
any.dims all.dims argmax argmin: self, dim=None, keepdim=False
var std var_mean std_mean: self, unbiased=True
var.dim std.dim var_mean.dim std_mean.dim: self, dim, unbiased=True, keepdim=False
var.correction std.correction var_mean.correction std_mean.correction: self, dim=None, *, \
correction=None, keepdim=False
cumsum cumprod: self, dim, *, dtype=None
logsumexp: self, dim, keepdim=False
norm.Scalar: self, p=2
norm.ScalarOpt_dim: self, p, dim, keepdim=False
linalg_vector_norm: self, ord=2, dim=None, keepdim=False, *, dtype=None
topk: self, k, dim=-1, largest=True, sorted=True
sort: self, dim=-1, descending=False
sort.stable: self, *, stable, dim=-1, descending=False

max_pool1d: self, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False
max_pool2d max_pool2d_with_indices: self, kernel_size, stride=(), padding=(0, 0), \
dilation=(1, 1), ceil_mode=False
avg_pool1d: self, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True
avg_pool2d: self, kernel_size, stride=(), padding=(0, 0), ceil_mode=False, \
count_include_pad=True, divisor_override=None
adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_max_pool2d: self, output_size

add.Tensor sub.Tensor rsub.Tensor: self, other, *, alpha=1
add.Scalar sub.Scalar rsub.Scalar: self, other, alpha=1
div.Tensor_mode div.Scalar_mode: self, other, *, rounding_mode
floor_divide floor_divide.Scalar remainder.Tensor remainder.Scalar remainder.Scalar_Tensor \
fmod.Tensor fmod.Scalar atan2 maximum minimum logaddexp: self, other
pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar: self, exponent
neg abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square: self
sin cos tan tanh sinh cosh asin acos atan erf erfc sigmoid relu relu6 silu: self
hardswish hardsigmoid mish log_sigmoid selu: self
sign floor ceil round trunc frac isnan isinf isfinite logical_not bitwise_not: self
round.decimals: self, *, decimals
gelu: self, *, approximate='none'
elu: self, alpha=1, scale=1, input_scale=1
leaky_relu: self, negative_slope=0.01
hardtanh: self, min_val=-1, max_val=1
softplus: self, beta=1, threshold=20
threshold: self, threshold, value
hardshrink softshrink: self, lambd=0.5
celu: self, alpha=1.0
prelu: self, weight
glu: self, dim=-1
clamp clamp.Tensor clip clip.Tensor: self, min=None, max=None
clamp_min clamp_min.Tensor: self, min
clamp_max clamp_max.Tensor: self, max
nan_to_num: self, nan=None, posinf=None, neginf=None
eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar: self, other
gt.Tensor gt.Scalar ge.Tensor ge.Scalar logical_and logical_or logical_xor: self, other
bitwise_and.Tensor bitwise_and.Scalar bitwise_or.Tensor bitwise_or.Scalar bitwise_xor.Tensor \
bitwise_xor.Scalar __and__.Tensor __and__.Scalar __or__.Tensor __or__.Scalar __xor__.Tensor \
__xor__.Scalar __lshift__.Tensor __lshift__.Scalar __rshift__.Tensor __rshift__.Scalar: self, other
where.self where.ScalarOther where.ScalarSelf where.Scalar: condition, self, other
masked_fill.Scalar masked_fill.Tensor: self, mask, value
lerp.Scalar lerp.Tensor: self, end, weight
addcmul addcdiv: self, tensor1, tensor2, *, value=1

embedding: weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False
gather: self, dim, index, *, sparse_grad=False
take_along_dim: self, indices, dim=None
index.Tensor: self, indices
index_select: self, dim, index
index_put: self, indices, values, accumulate=False
scatter.src scatter_add: self, dim, index, src
scatter.value: self, dim, index, value
slice.Tensor: self, dim=0, start=None, end=None, step=1
slice_scatter: self, src, dim=0, start=None, end=None, step=1
select.int: self, dim, index
select_scatter: self, src, dim, index
narrow: self, dim, start, length
cat concat stack: tensors, dim=0
split.Tensor split.sizes: self, split_size, dim=0
split split_with_sizes: self, split_sizes, dim=0
chunk: self, chunks, dim=0
unbind.int: self, dim=0
pad: self, pad, mode='constant', value=None
constant_pad_nd: self, pad, value=0
flip: self, dims
roll: self, shifts, dims=()
repeat: self, repeats
tile: self, dims
repeat_interleave.self_int: self, repeats, dim=None, *, output_size=None
diff: self, n=1, dim=-1, prepend=None, append=None
tril triu: self, diagonal=0
one_hot: self, num_classes=-1
meshgrid: tensors
meshgrid.indexing: tensors, *, indexing
broadcast_tensors: tensors
pixel_shuffle: self, upscale_factor
upsample_nearest2d: self, output_size, scales_h=None, scales_w=None
upsample_nearest2d.vec: input, output_size, scale_factors

arange: end, *, dtype=None, layout=None, device=None, pin_memory=None
arange.start: start, end, *, dtype=None, layout=None, device=None, pin_memory=None
arange.start_step: start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None
linspace: start, end, steps, *, dtype=None, layout=None, device=None, pin_memory=None
full: size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None
full_like: self, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None, \
memory_format=None
zeros ones: size, *, dtype=None, layout=None, device=None, pin_memory=None
empty.memory_format: size, *, dtype=None, layout=None, device=None, pin_memory=None, \
memory_format=None
zeros_like ones_like empty_like: self, *, dtype=None, layout=None, device=None, pin_memory=None, \
memory_format=None
new_ones new_zeros new_empty: self, size, *, dtype=None, layout=None, device=None, pin_memory=None
new_full: self, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None
scalar_tensor: s, *, dtype=None, layout=None, device=None, pin_memory=None
eye: n, *, dtype=None, layout=None, device=None, pin_memory=None
eye.m: n, m, *, dtype=None, layout=None, device=None, pin_memory=None
fill.Scalar fill.Tensor: self, value
copy: self, src, non_blocking=False
zero: self

expand: self, size, *, implicit=False
view _unsafe_view broadcast_to: self, size
reshape: self, shape
expand_as view_as reshape_as type_as: self, other
permute: self, dims
transpose.int: self, dim0, dim1
swapaxes: self, axis0, axis1
movedim.int movedim.intlist: self, source, destination
t mT numpy_T squeeze alias detach lift_fresh lift_fresh_copy: self
flatten.using_ints: self, start_dim=0, end_dim=-1
unflatten.int: self, dim, sizes
squeeze.dim squeeze.dims unsqueeze: self, dim
diagonal: self, offset=0, dim1=0, dim2=1
unfold: self, dimension, size, step
contiguous clone: self, *, memory_format=None
dropout feature_dropout alpha_dropout: input, p, train
to.device: self, device, dtype, non_blocking=False, copy=False, memory_format=None
to.dtype: self, dtype, non_blocking=False, copy=False, memory_format=None
to.other: self, other, non_blocking=False, copy=False, memory_format=None
to.dtype_layout: self, *, dtype=None, layout=None, device=None, pin_memory=None, \
non_blocking=False, copy=False, memory_format=None
_to_copy: self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, \
memory_format=None

_assert_tensor_metadata: a, size=None, stride=None, dtype=None, *, device=None, layout=None
_assert_scalar _assert_async.msg: self, assert_msg
_assert_async: self
sym_size.int sym_stride.int: self, dim
sym_numel: self
sym_constrain_range sym_constrain_range_for_size: size, *, min=None, max=None
"""

# Python's own functions on sizes, as torch.export names them.
PYTHON = """
_operator.add _operator.sub _operator.mul _operator.floordiv _operator.truediv _operator.mod: a, b
_operator.pow _operator.eq _operator.ne _operator.lt _operator.le _operator.gt _operator.ge: a, b
_operator.and_ _operator.or_ torch.sym_max torch.sym_min: a, b
_operator.neg _operator.pos torch.sym_float torch.sym_int torch.sym_not torch.sym_sqrt: a
math.trunc math.floor math.ceil torch._sym_sqrt builtins.round: a
"""
