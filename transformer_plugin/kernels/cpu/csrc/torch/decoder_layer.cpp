// A decoder layer in one step of a search. Between its operations nothing waits for Python's lock.

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <tuple>
#include <vector>

#include "../attention_step.h"

namespace {

using at::Tensor;
using c10::IValue;
using OptionalTensors = c10::List<std::optional<Tensor>>;

// Functions of the library without torch, for the type of the layer.
using AttendRows = void(const Attention& numbers, const void* q, void* out);
using PanelLinear = void(const void* x, int64_t rows, int64_t depth, const void* panels,
                         int64_t width, const float* bias, bool relu, void* out, void* parallel,
                         int64_t threads);
using Quantise = void(const void* x, int64_t size, uint8_t* steps, float* scale, int32_t* zero);
using Int8Linear = void(const void* x, int64_t rows, int64_t depth, const int8_t* weight,
                        int64_t width, const float* scales, const float* bias, bool relu,
                        void* out, void* parallel, int64_t threads);

// Up to this many 8-bit rows, our own loop takes less time than a call of oneDNN.
constexpr int64_t kFewRows = 16;

c10::OperatorHandle find(const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

Tensor call(const c10::OperatorHandle& operation, std::vector<IValue> arguments) {
    operation.callBoxed(&arguments);
    return arguments.at(0).toTensor();
}

// x W^T + b, or its ReLU, of a contiguous x, with the operands of packed_linear.py. With scales, x
// is rounded to 8 bits as in modules/int8_linear.py. `functions` are the addresses of OpenMP's
// parallel regions, panel_linear, quantise and int8_linear.
Tensor linear(const Tensor& x, const Tensor& matrix, const std::optional<Tensor>& bias,
              const std::optional<Tensor>& plain, const std::optional<Tensor>& scales, bool relu,
              at::IntArrayRef functions) {
    static const auto affine = find("mkldnn::_linear_pointwise");
    static const auto affine_int8 = find("onednn::qlinear_pointwise");
    const char* activation = relu ? "relu" : "none";
    const c10::List<std::optional<at::Scalar>> no_numbers;
    if (!plain) return call(affine, {x, matrix, bias, activation, no_numbers, ""});
    const int64_t depth = x.size(-1), width = plain->size(0), rows = x.numel() / depth;
    if (!scales || (rows <= kFewRows && width % 2 == 0)) {
        std::vector<int64_t> shape = x.sizes().vec();
        shape.back() = width;
        const Tensor y = at::empty(shape, x.options());
        const auto* b = bias ? bias->const_data_ptr<float>() : nullptr;
        const auto parallel = reinterpret_cast<void*>(functions[0]);
        const int64_t threads = at::get_num_threads();
        if (scales)
            reinterpret_cast<Int8Linear*>(functions[3])(
                x.data_ptr(), rows, depth, plain->data_ptr<int8_t>(), width,
                scales->data_ptr<float>(), b, relu, y.data_ptr(), parallel, threads);
        else
            reinterpret_cast<PanelLinear*>(functions[1])(x.data_ptr(), rows, depth,
                                                         matrix.data_ptr(), width, b, relu,
                                                         y.data_ptr(), parallel, threads);
        return y;
    }
    const Tensor steps = at::empty(x.sizes(), x.options().dtype(at::kByte));
    float scale;
    int32_t zero;
    reinterpret_cast<Quantise*>(functions[2])(x.data_ptr(), x.numel(), steps.data_ptr<uint8_t>(),
                                              &scale, &zero);
    const Tensor zeros = at::zeros({width}, at::kLong);  // the zero points of the matrix
    return call(affine_int8, {steps, double(scale), int64_t(zero), matrix, scales, zeros, bias, 1.0,
                              int64_t(0), x.scalar_type(), activation, no_numbers, ""});
}

// The layer of modules/layers.py. `own` and `encoder` are the addresses of an Attention each; the
// address of the newest keys is put into the former.
//
// Returns the output and the projected queries, keys and values, which the caller must keep.
std::tuple<Tensor, Tensor> decoder_layer(
    const Tensor& input, std::vector<Tensor> matrices, OptionalTensors biases,
    OptionalTensors plains, OptionalTensors scales, OptionalTensors norm_weights,
    OptionalTensors norm_biases, std::vector<double> eps, c10::List<bool> pre_norm, int64_t own,
    int64_t encoder, int64_t attend_rows, at::IntArrayRef functions) {
    const auto map = [&](int i, const Tensor& x, bool relu = false) {
        return linear(x, matrices[i], biases.get(i), plains.get(i), scales.get(i), relu, functions);
    };
    const auto attend = [&](const Tensor& q, const Attention& numbers) {
        Tensor out = at::empty({q.size(0), q.size(1), numbers.heads * numbers.d_v}, q.options());
        reinterpret_cast<AttendRows*>(attend_rows)(numbers, q.data_ptr(), out.data_ptr());
        return out;
    };
    const auto norm = [&](const Tensor& x, int i) {
        return at::layer_norm(x, x.sizes().slice(2), norm_weights.get(i), norm_biases.get(i),
                              eps[i]);
    };
    Tensor x = input, projected;
    const auto residual = [&](int i, auto sublayer) {
        x = pre_norm.get(i) ? sublayer(norm(x, i)).add_(x) : norm(sublayer(x).add_(x), i);
    };
    residual(0, [&](const Tensor& x) {
        const auto& numbers = *reinterpret_cast<const Attention*>(own);
        projected = map(0, x);
        const int64_t bytes_of_q = numbers.heads * numbers.d_k * projected.element_size();
        numbers.keys[numbers.positions - 1] = static_cast<char*>(projected.data_ptr()) + bytes_of_q;
        return map(1, attend(projected, numbers));
    });
    residual(1, [&](const Tensor& x) {
        return map(3, attend(map(2, x), *reinterpret_cast<const Attention*>(encoder)));
    });
    residual(2, [&](const Tensor& x) { return map(5, map(4, x, true)); });
    return {x, projected};
}

}  // namespace

TORCH_LIBRARY(transformer_plugin, library) {
    library.def("linear", TORCH_FN(linear));
    library.def("decoder_layer", TORCH_FN(decoder_layer));
}
