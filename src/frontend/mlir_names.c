/* StableHLO's enumerations and structures, as its text names them. */
#include "mlir.h"

const mlir_enum_row mlir_enums[MLIR_E_COUNT] = {
    [MLIR_E_BOOL] = {"bool", {"false", "true"}},
    [MLIR_E_DIRECTION] = {"comparison_direction",
                          {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    [MLIR_E_COMPARE] = {"comparison_type",
                        {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED",
                         "UNSIGNED"}},
    [MLIR_E_API] = {"custom_call_api_version",
                    {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
                     "API_VERSION_STATUS_RETURNING",
                     "API_VERSION_STATUS_RETURNING_UNIFIED",
                     "API_VERSION_TYPED_FFI"}},
    [MLIR_E_FFT] = {"fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"}},
    [MLIR_E_PRECISION] = {"precision", {"DEFAULT", "HIGH", "HIGHEST"}},
    [MLIR_E_RNG_ALGORITHM] = {"rng_algorithm",
                              {"DEFAULT", "THREE_FRY", "PHILOX"}},
    [MLIR_E_RNG_DISTRIBUTION] = {"rng_distribution",
                                 {NULL, "UNIFORM", "NORMAL"}},
    [MLIR_E_TRANSPOSE] = {"transpose",
                          {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE",
                           "ADJOINT"}},
    [MLIR_E_ACCURACY] = {"result_accuracy_mode",
                         {"DEFAULT", "HIGHEST", "TOLERANCE"}},
};

const mlir_struct_row mlir_structs[MLIR_S_COUNT] = {
    [MLIR_S_GATHER] = {"gather",
                       "dimension_numbers",
                       {"offset_dims", "collapsed_slice_dims",
                        "operand_batching_dims", "start_indices_batching_dims",
                        "start_index_map", "index_vector_dim"}},
    [MLIR_S_SCATTER] = {"scatter",
                        "scatter_dimension_numbers",
                        {"update_window_dims", "inserted_window_dims",
                         "input_batching_dims", "scatter_indices_batching_dims",
                         "scatter_dims_to_operand_dims", "index_vector_dim"}},
    [MLIR_S_RAGGED] = {"ragged_dot",
                       "ragged_dot_dimension_numbers",
                       {"lhs_ragged_dimensions", "rhs_group_dimensions",
                        "lhs_batching_dimensions", "rhs_batching_dimensions",
                        "lhs_contracting_dimensions",
                        "rhs_contracting_dimensions"}},
    [MLIR_S_DOT] = {"dot",
                    "dot_dimension_numbers",
                    {"lhs_batching_dimensions", "rhs_batching_dimensions",
                     "lhs_contracting_dimensions",
                     "rhs_contracting_dimensions"}},
    [MLIR_S_ALGORITHM] = {"dot_algorithm",
                          "algorithm",
                          {"lhs_precision_type", "rhs_precision_type",
                           "accumulation_type", "lhs_component_count",
                           "rhs_component_count", "num_primitive_operations",
                           "allow_imprecise_accumulation"}},
    [MLIR_S_CHANNEL] = {"channel_handle",
                        "channel_handle",
                        {"channel_id", "channel_type"}},
    [MLIR_S_CONV] = {"conv",
                     "dimension_numbers",
                     {"input_batch_dimension", "input_feature_dimension",
                      "input_spatial_dimensions",
                      "kernel_input_feature_dimension",
                      "kernel_output_feature_dimension",
                      "kernel_spatial_dimensions", "output_batch_dimension",
                      "output_feature_dimension", "output_spatial_dimensions"}},
    [MLIR_S_ACCURACY] = {"result_accuracy",
                         "result_accuracy",
                         {"atol", "rtol", "ulps", "mode"}},
};

const char *mlir_field_text(const char *field)
{
    if (strcmp(field, "channel_id") == 0)
        return "handle";
    return strcmp(field, "channel_type") == 0 ? "type" : field;
}
