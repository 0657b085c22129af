"""Which function makes the programs of a row, and with which types."""
import calls
import elementwise
import numeric
import programs
import structured as st
import values

FUNCTIONS = {
    "complex": elementwise.complex_of, "compare": elementwise.compare,
    "select": elementwise.select, "clamp": elementwise.clamp,
    "convert": elementwise.convert,
    "bitcast-convert": elementwise.bitcast_convert,
    "reduce-precision": elementwise.reduce_precision,
    "stochastic-convert": elementwise.stochastic_convert,
    "parameter": st.parameter, "constant": st.constant, "iota": st.iota,
    "broadcast": st.broadcast, "reshape": st.reshape, "bitcast": st.bitcast,
    "transpose": st.transpose, "reverse": st.reverse, "slice": st.slice_of,
    "pad": st.pad, "concatenate": st.concatenate, "copy": st.copy,
    "dynamic-slice": st.dynamic_slice,
    "dynamic-update-slice": st.dynamic_update_slice, "gather": st.gather,
    "scatter": st.scatter, "reduce": st.reduce,
    "reduce-window": st.reduce_window,
    "select-and-scatter": st.select_and_scatter, "scan": st.scan,
    "map": st.map_of, "sort": st.sort, "topk": st.topk, "dot": st.dot,
    "convolution": st.convolution, "rng": numeric.rng,
    "rng-bit-generator": numeric.rng_bit_generator,
    "fft": numeric.fft, "cholesky": numeric.cholesky,
    "triangular-solve": numeric.triangular_solve,
    "batch-norm-training": numeric.batch_norm_training,
    "batch-norm-inference": numeric.batch_norm_inference,
    "batch-norm-grad": numeric.batch_norm_grad, "tuple": calls.tuple_of,
    "get-tuple-element": calls.get_tuple_element, "call": calls.call,
    "while": calls.while_of, "conditional": calls.conditional,
    "fusion": calls.fusion,
    "custom-call": calls.custom_call, "opt-barrier": calls.opt_barrier,
    "get-dimension-size": calls.get_dimension_size,
    "set-dimension-size": calls.set_dimension_size,
    "partition-id": calls.own_number, "replica-id": calls.own_number,
    "all-reduce": calls.collective, "all-gather": calls.collective,
    "all-to-all": calls.collective, "reduce-scatter": calls.collective,
    "collective-permute": calls.collective,
    "collective-broadcast": calls.collective,
    **{op: elementwise.unary for op in elementwise.UNARY},
    **{op: elementwise.binary for op in elementwise.BINARY},
}

# Rows without a value that a test could compare, and where they are tried.
ELSEWHERE = {
    "after-all": "tokens: tests/unit/test_hlo.c",
    "send": "tokens: tests/unit/test_frontend.c",
    "recv": "tokens: tests/unit/test_frontend.c",
    "send-done": "tokens: tests/unit/test_frontend.c",
    "recv-done": "tokens: tests/unit/test_frontend.c",
    "infeed": "refused by name: tests/unit/test_frontend.c",
    "outfeed": "refused by name: tests/unit/test_frontend.c",
}

# Where the table's types are of another operand than the one that varies here,
# or the op's rule is narrower than a kind.
TYPES = {
    "select": values.TYPES, "complex": ["f32", "f64"],
    "fft": ["f32", "f64", "c64", "c128"],
    "rng-bit-generator": ["u8", "u16", "u32", "u64"],   # the type of the bits
    "iota": values.of_kinds("sint", "uint", "float", "cplx"),
    "rng": values.of_kinds("sint", "uint", "float"),
    "topk": values.of_kinds("sint", "uint", "float"),
    "select-and-scatter": values.of_kinds("pred", "sint", "uint", "float"),
    # what there are narrower floats and random words for
    "stochastic-convert": ["bf16", "f16", "f32", "f64"],
    "partition-id": ["u32"], "replica-id": ["u32"],
}


def missing():
    """Rows of the op table that nothing here tests."""
    return [r.name for r in programs.table()
            if r.name not in FUNCTIONS and r.name not in ELSEWHERE]


def types_of(row):
    return TYPES.get(row.name, row.types)


def make(op, t, shape):
    p = programs.Program(op, t, shape)
    p.plain = FUNCTIONS[op](p, t, programs.SHAPES[shape])
    return p
